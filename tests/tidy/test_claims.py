"""Every figure in README and docs has a command that gives it: docs/internals/claims.md lists them.

A claim is a block (a paragraph, an item of a list, a table) outside of code with a measured quantity in it.
The page written from kept results names its commands itself.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs/internals/claims.md"
WRITTEN = {LIST, ROOT / "docs/must-you-leave-python.md"}
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - WRITTEN)]
FIGURE = re.compile(
    r"\d ?(?:µs|ns|instructions)\b|\d ?(?:requests|messages|calls)/s\b|\d times\b"
    r"|\b(?:twice|times) as (?:much|many|fast)|\b\d+(?:\.\d+)? % (?:of|more|less|faster|while)"
    r"|\u00d7\s?\d|\d(?:\.\d)? against \d|\(0\.\d\d\??\)"
)


def blocks(page: Path) -> list[str]:
    """The blocks of a page: cut at blank lines and at items of lists, without code."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.M | re.S)
    return [
        block for block in re.split(r"\n\s*\n|\n(?=- )", text) if not block.lstrip().startswith("#")
    ]


def listed() -> list[tuple[Path, str, str]]:
    """Page, words of the block, command."""
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) \| (.+?) \| (.+?) \|$", LIST.read_text(), re.M)
    return [(ROOT / page, words, command) for page, words, command in rows]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_claim_with_a_figure_has_a_command(page: Path) -> None:
    known = [words for own, words, _ in listed() if own == page]
    for block in blocks(page):
        if FIGURE.search(block):
            flat = " ".join(block.split())
            assert any(words in flat for words in known), (
                f"{page.name}: no command in docs/internals/claims.md for: {flat[:160]}"
            )


def test_the_list_names_nothing_that_is_gone() -> None:
    for page, words, _ in listed():
        flat = [" ".join(block.split()) for block in blocks(page)]
        assert any(words in block and FIGURE.search(block) for block in flat), (
            f"{page.name} has no figure beside {words!r} any more"
        )


def test_the_commands_exist() -> None:
    verbs = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    experiments = {path.stem for path in (ROOT / "lab/experiments").glob("*.toml")}
    for _, _, text in listed():
        commands = re.findall(r"`([^`]+)`", text)
        assert commands or text.startswith("a setting"), text
        for command in commands:
            first, *rest = shlex.split(command)
            if first == "make":
                assert rest[0] in verbs, command
                for word in rest[1:]:
                    name, _, value = word.partition("=")
                    assert name != "RUN" or value in experiments, command
            elif first == "citius":
                assert rest[:2] == ["lab", "run"], command
                assert rest[2] in experiments, command
            elif first == "cargo":
                assert rest[0] in ("run", "test"), command
            else:
                assert (ROOT / first).is_file(), command
