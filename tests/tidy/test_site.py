"""The navigation of the documentation's site names every page, once, and no page that there is not."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def site_module() -> Any:
    """scripts/site.py; the standard library has a module of the name `site`."""
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "scripts/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages() -> set[str]:
    """What scripts/site.py lays out."""
    module = site_module()
    return set(filter(module.is_page, module.tracked()))


def test_an_archive_of_the_source_has_no_repository(tmp_path: Path) -> None:
    """Newcomer C."""
    module = site_module()
    module.ROOT = tmp_path
    for place in ("README.md", "docs/a.md", "target/b.md", ".venv/c.md", "lab/node_modules/d.md"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    assert module.tracked() == ["README.md", "docs/a.md"]


def test_the_copy_button_leaves_prompts_and_output() -> None:
    """Newcomer C."""
    rules = (ROOT / "docs/site.css").read_text()
    assert "[data-md-copying] .gp, [data-md-copying] .go { display: none; }" in rules


def test_every_page_is_in_the_navigation_once() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    named = re.findall(r"(?:- |: )(\S+\.md)$", navigation, re.M)
    assert set(named) == pages()
    assert [page for page, count in Counter(named).items() if count > 1] == []
