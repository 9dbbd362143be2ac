"""The navigation of the documentation's site names every page, once, and no page that there is not."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pages() -> set[str]:
    """What scripts/site.py lays out; the standard library has a module of the name `site`."""
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "scripts/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return set(filter(module.is_page, module.tracked()))


def test_every_page_is_in_the_navigation_once() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    named = re.findall(r"(?:- |: )(\S+\.md)$", navigation, re.M)
    assert set(named) == pages()
    assert [page for page, count in Counter(named).items() if count > 1] == []
