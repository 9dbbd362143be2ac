"""Who the workers are to be."""

from __future__ import annotations

import pytest
from citius.errors import ConfigError
from citius.process.privileges import Identity
from citius.settings.config import Config

UNKNOWN = 3_999_999_999


def test_a_number_without_an_entry_does_not_keep_the_group_of_root() -> None:
    with pytest.raises(ConfigError, match="--group"):
        Identity.of(Config(user=str(UNKNOWN)))
    assert Identity.of(Config(user=str(UNKNOWN), group="5")) == Identity(UNKNOWN, 5, None)


def test_a_user_brings_its_own_group() -> None:
    root = Identity.of(Config(user="root"))
    assert (root.uid, root.gid, root.name) == (0, 0, "root")
    assert Identity.of(Config(user="0")) == root
