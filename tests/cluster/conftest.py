"""What tests of clusters have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines_rig import Redis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path / "redis")
    yield made
    made.close()
