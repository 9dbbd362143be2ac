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
    if not is_name or keyword.iskeyword(package):
        raise ConfigError(
            f"expected a name such as my-shop, of ASCII letters, digits and hyphens, got {name!r}"
        )
    if package in _TAKEN or package in sys.stdlib_module_names:
        raise ConfigError(
            f"{name!r} names a module that the project or Python itself imports, and would take its place; "
            f"expected another name, such as my-{name}"
        )
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


def _write(directory: Path, sources: dict[str, Path], name: str, package: str) -> list[Path]:
    """Write what is there into a directory that has nothing in it."""
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise ConfigError(f"{directory} exists and is not empty")
    written: list[Path] = []
    for relative, source in sorted(sources.items()):
        path = directory / relative.replace("PACKAGE", package).replace("DOT", ".")
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
