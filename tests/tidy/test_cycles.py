"""Files of a crate use each other in one direction; the few that do not are small groups, read together.

A file uses another when it names a path into it: `use crate::a::b`, `super::a`, or the same in the code.
Declaring a module (`mod a;`) is no use. A name that a file hands on (`pub use a::A`) counts as that of the
file which defines it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.name for path in (ROOT / "crates").iterdir() if (path / "src").is_dir())

# Files in one cycle, at most.
FILES_MAX = 5
# A name is handed on so often, at most.
HOPS_MAX = 4

USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([\w:][^;]*);", re.M)

Module = tuple[str, ...]


def modules(source: Path) -> dict[Module, Path]:
    """Files by the path of their module. Unit tests are no part of the crate's design."""
    found: dict[Module, Path] = {}
    for path in source.rglob("*.rs"):
        names = path.relative_to(source).with_suffix("").parts
        if names[-1] in {"mod", "lib", "main"}:
            names = names[:-1]
        if "tests" not in names and "bin" not in names:
            found[names] = path
    return found


def code_of(path: Path) -> str:
    text = re.sub(r"//[^\n]*", "", path.read_text())
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    return text.partition("#[cfg(test)]\nmod tests")[0]


def leaves(tree: str) -> list[str]:
    """`a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [re.sub(r"\s+as\s+\w+", "", tree).strip()]
    parts, depth, start = [], 0, 0
    body = rest[: rest.rindex("}")]
    for at, char in enumerate(body):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(body[start:at])
            start = at + 1
    parts.append(body[start:])
    return [head.strip() + leaf for part in parts if part.strip() for leaf in leaves(part.strip())]


def imports_in(code: str) -> list[str]:
    return [path for tree in USE.findall(code) for path in leaves(tree)]


def paths_in(code: str) -> list[str]:
    rest = USE.sub("", code)
    return imports_in(code) + re.findall(r"\b(?:crate|super|self)(?:::\w+)+", rest)


class Crate:
    """Which file of a crate uses which."""

    def __init__(self, source: Path) -> None:
        self.files = modules(source)
        self.paths = {module: paths_in(code_of(path)) for module, path in self.files.items()}
        self.handed_on = {
            module: {path.rpartition("::")[2]: path for path in imports_in(code_of(file))}
            for module, file in self.files.items()
        }

    def uses(self) -> dict[Module, set[Module]]:
        found: dict[Module, set[Module]] = {}
        for module, paths in self.paths.items():
            targets = {self.resolve(path, module) for path in paths}
            found[module] = {target for target in targets if target is not None} - {module}
        return found

    def resolve(self, path: str, module: Module, hops: int = 0) -> Module | None:
        """The file that defines what `path` names in `module`; `None` for another crate's."""
        names = path.split("::")
        base: Module = module
        if names[0] == "crate":
            base = ()
            names = names[1:]
        elif names[0] in {"super", "self"}:
            while names and names[0] in {"super", "self"}:
                base = base[:-1] if names[0] == "super" else base
                names = names[1:]
        elif (*module, names[0]) not in self.files:
            return None
        while names and (*base, names[0]) in self.files:
            base = (*base, names[0])
            names = names[1:]
        if names and hops < HOPS_MAX and (handed_on := self.handed_on[base].get(names[0])):
            followed = self.resolve(handed_on, base, hops + 1)
            return base if followed is None else followed
        return base


def cycles(edges: dict[Module, set[Module]]) -> list[list[Module]]:
    """Strongly connected components of more than one file, largest first (Tarjan)."""
    order: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for target in sorted(edges[module]):
            if target not in order:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], order[target])
        if low[module] == order[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(edges):
        if module not in order:
            visit(module)
    return sorted((group for group in found if len(group) > 1), key=len, reverse=True)


@pytest.mark.parametrize("crate", CRATES)
def test_no_large_cycle(crate: str) -> None:
    edges = Crate(ROOT / "crates" / crate / "src").uses()
    for group in cycles(edges):
        among = {
            "::".join(module): sorted("::".join(target) for target in edges[module] & set(group))
            for module in group
        }
        assert len(group) <= FILES_MAX, f"{len(group)} files use each other: {among}"
