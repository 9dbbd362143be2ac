"""The packages of python/citius keep to one direction: who may import whom; no cycles of modules.

Imports in functions count; those under ``TYPE_CHECKING`` do not, as they never happen. ARCHITECTURE.md shows
the same picture.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python/citius"

# An edge that is not here does not exist.
BASE = {"_core", "coroutines", "errors", "option_values", "records", "threads", "unknown_options"}
FOR_WEB = {"cluster", "go", "lazy", "observability", "process", "serial", "settings", "waiting"}
MAY_IMPORT = {
    "coroutines": set[str](),
    "errors": set[str](),
    "lazy": {"names_elsewhere"},
    "names_elsewhere": set[str](),
    "records": set[str](),
    "threads": set[str](),
    "observability": BASE,
    "process": BASE | {"observability"},
    "settings": BASE | {"observability", "process"},
    "cluster": BASE | {"lazy", "observability", "process", "redis"},
    "web": BASE | FOR_WEB,
    "mcp": BASE | {"cluster", "lazy", "process", "settings", "waiting", "web"},
    "serving": BASE | {"observability", "process", "settings", "waiting", "web"},
    "http": BASE
    | {
        "cluster",
        "databases",
        "lazy",
        "observability",
        "process",
        "serial",
        "settings",
        "unknown_options",
        "web",
    },
    "testing": BASE | {"databases", "http", "lazy", "pg", "process", "redis", "settings", "web"},
    "rpc": BASE | {"observability", "process"},
    "databases": BASE | {"observability", "serial"},
    "pg": BASE | {"databases", "observability", "process"},
    "sqlite": BASE | {"databases", "observability", "process"},
    "redis": BASE | {"databases", "go", "observability", "process", "serial"},
    "go": BASE | {"serial"},
    "serial": BASE,
    "option_values": set[str](),
    "unknown_options": {"errors", "option_values"},
    "waiting": BASE | {"serial"},
    "msgpack": BASE,
    "scaffold": BASE,
    "cli": BASE | {"mcp", "settings", "scaffold", "serving", "web"},
    "__main__": {"cli", "errors", "process", "settings", "serving"},
    "__init__": {"lazy"},
}

# Methods for users that belong above their package, and tools that are made of routes: they call `serve`,
# make an `MCPServer` and its tools.
EXCEPTIONS = {
    ("web.application.app", "serving.server"),
    ("web.application.app", "mcp.server"),
    ("web.routing.router", "http.gateway.declared"),
    ("web.application.gateway", "mcp.route_tools"),
}


def modules() -> dict[str, Path]:
    """Every module by its name below ``citius``."""
    found: dict[str, Path] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


MODULES = modules()


class Imports(ast.NodeVisitor):
    """The modules of the package that a module imports at run time, in functions too."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.startswith("citius."):
                self.found.add(alias.name.removeprefix("citius."))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        name = node.module or ""
        if name.partition(".")[0] != "citius":
            return
        base = name.removeprefix("citius").removeprefix(".")
        for alias in node.names:
            inner = f"{base}.{alias.name}".removeprefix(".")
            self.found.add(inner if inner in MODULES or not base else base)


def imported_by(name: str) -> set[str]:
    imports = Imports()
    imports.visit(ast.parse(MODULES[name].read_text()))
    return {one for one in imports.found if (name, one) not in EXCEPTIONS and one != name}


def test_every_package_is_in_the_table() -> None:
    assert {name.partition(".")[0] for name in MODULES} == set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_direction(package: str) -> None:
    for name in MODULES:
        if name.partition(".")[0] == package:
            used = {one.partition(".")[0] for one in imported_by(name)} - {package, "citius"}
            assert used <= MAY_IMPORT[package], f"{name} imports {used - MAY_IMPORT[package]}"


def test_no_module_is_part_of_a_cycle() -> None:
    graph = {name: imported_by(name) & set(MODULES) for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' -> '.join(error.args[1])}")


def test_exceptions_are_needed() -> None:
    for name, target in EXCEPTIONS:
        assert f"from citius.{target} import" in MODULES[name].read_text()


def test_the_picture_has_every_package() -> None:
    """Review (list): `redis/` was missing."""
    text = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text()
    _, _, table = text.partition("| package in `python/citius/` |")
    named = set(re.findall(r"[\w]+", " ".join(re.findall(r"^\| `(.*?)` \|", table, re.M))))
    inner = [*PACKAGE.iterdir(), *(PACKAGE / "web").iterdir()]
    packages = {path.name for path in inner if (path / "__init__.py").exists()}
    assert packages - named == set()
