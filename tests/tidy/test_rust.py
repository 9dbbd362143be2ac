"""Rust sources: functions stay short, and files of a crate do not import each other in circles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))
ENGINE = CRATES
FUNCTION_LINES_MAX = 60
CYCLE_FILES_MAX = 3

FUNCTION = re.compile(
    r"^( *)(?:pub(?:\(\w+\))? )?(?:(?:const|unsafe|async|extern \"C\") )*fn (\w+)"
)
SIBLING = re.compile(r"\bsuper::(\w+)")
IMPORT = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?use crate::(\w+)|(?<!use )\bcrate::(\w+)::", re.M)


def long_functions(source: str) -> list[str]:
    """Return the functions of more than 60 lines, told by the indentation that rustfmt gives."""
    lines = source.split("\n")
    found = list[str]()
    for start, line in enumerate(lines):
        if not (match := FUNCTION.match(line)) or line.rstrip().endswith((";", "}")):
            continue
        # Of a method of a trait there may be the signature alone, which ends in a semicolon.
        last = re.compile(match[1] + r"(\}|\).*;)")
        end = next(n for n in range(start, len(lines)) if last.fullmatch(lines[n]))
        if end - start + 1 > FUNCTION_LINES_MAX:
            found.append(f"{match[2]}: {end - start + 1} lines")
    return found


def module_doc(source: str) -> str:
    return "\n".join(line for line in source.split("\n") if line.startswith("//!"))


@pytest.mark.parametrize("crate", ENGINE, ids=lambda crate: crate.name)
def test_functions_are_short(crate: Path) -> None:
    """A longer function is one pass over one input, and the doc of its file says so."""
    long = {
        f"{path.relative_to(ROOT)}: {function}"
        for path in crate.rglob("*.rs")
        if "target" not in path.parts
        and "one pass over one input" not in module_doc(path.read_text())
        for function in long_functions(path.read_text())
    }
    assert not long


def test_safety_notes_say_the_reason_at_the_place() -> None:
    pointers = re.compile(r"// SAFETY: (?:as |the same|likewise|see )[^\n]*", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {note}"
        for crate in CRATES
        for path in crate.rglob("*.rs")
        if "target" not in path.parts
        for note in pointers.findall(path.read_text())
    ]
    assert not found


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of ``graph``."""
    reached = dict[str, set[str]]()
    for start in graph:
        seen, stack = set[str](), [start]
        while stack:
            for name in graph[stack.pop()] - seen:
                seen.add(name)
                stack.append(name)
        reached[start] = seen
    return [{other for other in seen if name in reached[other]} for name, seen in reached.items()]


FOLDERS = sorted({path.parent for crate in CRATES for path in crate.glob("src/**/*.rs")})


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT / "crates"))
)
def test_no_large_import_cycle(folder: Path) -> None:
    """The files of a folder import each other in circles of at most three."""
    sources = {
        path.stem: "\n".join(
            line for line in path.read_text().split("\n") if not line.strip().startswith("//")
        )
        for path in folder.glob("*.rs")
    }
    pattern = IMPORT if folder.name == "src" else SIBLING
    graph = {
        name: {"".join(found) for found in pattern.findall(source)} & sources.keys() - {name}
        for name, source in sources.items()
    }
    assert not [sorted(cycle) for cycle in components(graph) if len(cycle) > CYCLE_FILES_MAX]
