"""Every figure in README, docs and the lab's pages has a command that gives it: docs/internals/claims.md.

A claim is a block (a paragraph, an item of a list, a table) outside of code with a quantity in it: a time, a
size in decimal or binary units above the kilobyte, a rate, a ratio, a signed percentage, or a row of numbers.
What is no measurement but a setting names it, and the setting is in the sources. The page written from kept
results names its commands itself.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs/internals/claims.md"
WRITTEN = {LIST, ROOT / "docs/must-you-leave-python.md"}
LAB = {
    path
    for path in (ROOT / "lab").rglob("*.md")
    if not {".build", "build", "results", "target"} & set(path.parts)
}
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - WRITTEN), *sorted(LAB)]
# Between a number and its unit may be a space that does not break.
_COUNTS = "(?:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|a hundred|a thousand)"
_WORSE = "(?:as much|as many|as fast|faster|slower|cheaper|dearer|smaller|larger|fewer|lower|higher|less)"
FIGURE = re.compile(
    r"\d\s?(?:ns|µs|\u03bcs|us|ms|s|min|minutes|hours|instructions|kB|KB|MB|GB|MiB|GiB)\b"
    r"|\d\s?(?:requests|messages|calls|deliveries|events)/s\b|\d times\b"
    r"|[+\u2212-]\d+(?:\.\d+)?\s?%"
    r"|\b(?:twice|times) as (?:much|many|fast)|\b\d+(?:\.\d+)? % (?:of|more|less|faster|while)"
    r"|\u00d7\s?\d|\d(?:\.\d)? against \d|\(0\.\d\d\??\)"
    r"|\b\d[\d.]*\s?(?:x|\u00d7)(?!\w)|\d\s?percent\b|-?\bfold\b|\borders? of magnitude\b"
    rf"|\d\s?% {_WORSE}|\b{_COUNTS} times {_WORSE}"
    r"|\b(?:half|a third|a quarter|a fifth|a tenth) (?:of )?(?:the|its) (?:time|memory|cost|CPU|requests)\b"
)
# A cell of a table that is a number, perhaps with what it is beside in brackets.
NUMBER = re.compile(r"\**\d[\d\s.,]*\??\**(?: \([^)]*\))?")
SOURCES = ("python", "crates", "lab/citius_lab", "lab/load/src", "lab/workloads", "tests/cluster")
SOURCE_SUFFIXES = {".py", ".rs", ".toml"}


def blocks(page: Path) -> list[str]:
    """The blocks of a page: cut at blank lines and at items of lists, without code."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.M | re.S)
    return re.split(r"\n\s*\n|\n(?=- )", text)


def has_figure(block: str) -> bool:
    """Tell whether a block says a quantity, or is a table with a row of numbers."""
    return FIGURE.search(" ".join(block.split())) is not None or any(
        sum(NUMBER.fullmatch(cell.strip()) is not None for cell in line.split("|")) >= 2
        for line in block.splitlines()
        if line.lstrip().startswith("|")
    )


def listed() -> list[tuple[Path, str, str]]:
    """Page, words of the block, command."""
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\) \| (.+?) \| (.+?) \|$", LIST.read_text(), re.M)
    return [(ROOT / page, words, command) for page, words, command in rows]


def test_every_claim_with_a_figure_has_a_command() -> None:
    known = listed()
    missing: list[str] = []
    for page in PAGES:
        words = [words for own, words, _ in known if own == page]
        for block in filter(has_figure, blocks(page)):
            flat = " ".join(block.split())
            if not any(one in flat for one in words):
                missing.append(f"{page.relative_to(ROOT)}: {flat[:160]}")
    assert not missing, "no command in docs/internals/claims.md"


def test_the_list_names_nothing_that_is_gone() -> None:
    for page, words, _ in listed():
        flat = [(" ".join(block.split()), block) for block in blocks(page)]
        assert any(words in one and has_figure(block) for one, block in flat), (
            f"{page.name} has no figure beside {words!r} any more"
        )


def test_the_commands_exist() -> None:
    verbs = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    experiments = {path.stem for path in (ROOT / "lab/experiments").glob("*.toml")}
    for _, _, text in listed():
        if text.startswith("a setting: "):
            continue
        commands = re.findall(r"`([^`]+)`", text)
        assert commands, f"a command was expected, got: {text}"
        for command in commands:
            first, *rest = shlex.split(command)
            if first == "make":
                assert rest[0] in verbs, command
                for word in rest[1:]:
                    name, _, value = word.partition("=")
                    assert name != "RUN" or value in experiments, command
            elif first == "citius":
                assert rest[0] == "lab", command
                assert rest[1] in ("run", "count"), command
                assert rest[1] == "count" or rest[2] in experiments, command
            elif first == "cargo":
                assert rest[0] in ("run", "test"), command
            else:
                assert (ROOT / first).is_file(), command


def test_the_settings_exist() -> None:
    """A quantity that nothing measures is one that the code has: its name is in the sources."""
    sources = [
        path.read_text()
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SOURCE_SUFFIXES and "target" not in path.parts
    ]
    for _, _, text in listed():
        if not text.startswith("a setting: "):
            continue
        names = re.findall(r"`([^`]+)`", text)
        assert names, f"the name of a setting was expected, got: {text}"
        for name in names:
            word = re.compile(rf"\b{re.escape(name)}\b")
            assert any(word.search(one) for one in sources), f"{name} is in no source: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "takes 4.7\u00a0MB", "takes 182 kB", "64 KB each", "0.9 MiB more", "in 3 ms", "20 s", "5.4 µs",
        "7 ns", "changed by \u22127 %", "by +5 %", "| a | 12 | 13 |", "| a | 402 (389 to 426) | 330 |",
        "| `list` | 133 293 | 74 451 |", "# 10 times as fast", "1.5x faster", "3\u00d7 the requests",
        "40 % cheaper", "90 percent", "ten times faster", "a tenth of the cost", "a five-fold gain",
        "an order of magnitude", "12 us", "5 \u03bcs", "3 minutes",
    ],
)  # fmt: skip
def test_a_quantity_is_seen_in_every_unit(text: str) -> None:
    assert has_figure(text)


@pytest.mark.parametrize(
    "text",
    [
        "port 8000",
        "RFC 9110 §6.4.1",
        "| `--workers` | 4 | processes |",
        "status 503",
        "3.11 or later",
    ],
)
def test_a_number_alone_is_no_quantity(text: str) -> None:
    assert not has_figure(text)
