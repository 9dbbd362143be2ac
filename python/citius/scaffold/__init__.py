"""``citius new``: a small project that runs, is tested, typed and containerised, from ``project/``.

With a database the files of ``database/`` come in addition, or in place of those of the same name, and with
services of RPC those of ``rpc/``. Each file
there ends in ``.in``. In their names ``PACKAGE`` stands for the package and ``DOT`` for a dot, in their texts
``{{name}}`` and ``{{package}}`` for what the user has said. Tests: ``tests/cli/test_new.py``, which runs the
tests of a project and checks its types.
"""

from __future__ import annotations

import keyword
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from citius.errors import ConfigError

_FILES = Path(__file__).with_name("project")
_WITH_DATABASE = Path(__file__).with_name("database")
_WITH_RPC = Path(__file__).with_name("rpc")

_TAKEN = frozenset(
    ("alembic", "citius", "connectrpc", "google", "migrations", "msgspec", "mypy", "proto", "protobuf",
     "pytest", "setuptools", "sqlalchemy", "tests")
)  # fmt: skip
"""Packages and folders of the projects, and what they import."""


def make(directory: Path, *, has_database: bool = False, has_rpc: bool = False) -> list[Path]:
    """Write a project into ``directory``, whose last part names it; returns its files.

    Args:
        directory: Where; it is made if it is not there.
        has_database: The items are kept in PostgreSQL, with migrations.
        has_rpc: The items are a service of Connect and gRPC, with a ``.proto``.

    Raises:
        ConfigError: There is something already, or the name is none.
    """
    name = Path(os.path.abspath(directory)).name  # `.` has one, too
    package = name.replace("-", "_").lower()
    # That of a distribution (PEP 508), and of a package.
    is_name = name.isascii() and package.isidentifier() and name[0].isalpha() and name[-1].isalnum()
    if not is_name:
        raise ConfigError(
            f"expected a name such as my-shop, of ASCII letters, digits and hyphens, got {name!r}"
        )
    if why := _why_not(package):
        raise ConfigError(f"{name!r} {why}; expected another name, such as my-{name}")
    if has_database and has_rpc:
        raise ConfigError("expected --db or --rpc, got both")
    sources = _sources(_FILES)
    if has_database:
        sources |= _sources(_WITH_DATABASE)
    if has_rpc:
        sources |= _sources(_WITH_RPC)
    try:
        return _write(directory, sources, name, package)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be made: {error}") from None


def _why_not(package: str) -> str:
    """Why a name is none for a package; empty if it is one."""
    if keyword.iskeyword(package):
        return "is a keyword of Python, which cannot be imported"
    if package in _TAKEN or package in sys.stdlib_module_names:
        return "names a module that the project or Python itself imports, and would take its place"
    if _is_installed(package):
        return "names a package that is installed here, and would take its place"
    return ""


def _is_installed(package: str) -> bool:
    """Whether an environment has it; a folder beside the new one does not count."""
    spec = find_spec(package)
    if spec is None:
        return False
    places = spec.submodule_search_locations or [spec.origin or ""]
    return any("site-packages" in place or "dist-packages" in place for place in places)


def _write(directory: Path, sources: dict[str, Path], name: str, package: str) -> list[Path]:
    """Write what is there into a directory that has nothing in it but hidden files (.git, .venv)."""
    directory.mkdir(parents=True, exist_ok=True)
    targets = {
        relative.replace("PACKAGE", package).replace("DOT", "."): source
        for relative, source in sorted(sources.items())
    }
    for one in sorted(directory.iterdir()):
        if one.name in targets or not one.name.startswith("."):
            raise ConfigError(f"{directory} exists and is not empty: there is {one.name}")
    written: list[Path] = []
    for relative, source in targets.items():
        path = directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        text = text.replace("{{name}}", name).replace("{{package}}", package)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _sources(of: Path) -> dict[str, Path]:
    """Files by what they become."""
    return {
        source.relative_to(of).as_posix().removesuffix(".in"): source for source in of.rglob("*.in")
    }
