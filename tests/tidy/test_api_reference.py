"""docs/reference/api/ names every public name once, and hides no member that there is not."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs/reference/api"
TEXT = "\n".join(page.read_text() for page in sorted(PAGES.glob("*.md")))
NAMED = re.findall(r"^::: (\S+)$", TEXT, re.M)
MODULES = [
    "citius", "citius.cluster", "citius.go", "citius.http", "citius.http.gateway", "citius.mcp",
    "citius.pg", "citius.redis",
    "citius.rpc", "citius.serial", "citius.sqlite", "citius.testing", "citius.web.interop",
    "citius.web.middleware",
    "citius.web.security",
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_there(module: str) -> None:
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert public - {"citius.__version__"} <= set(NAMED)


def test_names_are_there_once() -> None:
    assert [name for name, count in Counter(NAMED).items() if count > 1] == []


def test_what_is_hidden_exists() -> None:
    """A member that is renamed would otherwise appear."""
    hidden = re.findall(
        r'^::: (\S+)\n    options:\n        filters: .*"!\^\((.+?)\)\$"', TEXT, re.M
    )
    assert hidden
    for name, members in hidden:
        module, _, attribute = name.rpartition(".")
        owner = getattr(importlib.import_module(module), attribute)
        assert [member for member in members.split("|") if not hasattr(owner, member)] == [], name
