"""``citius new``: a small project that runs, is tested, typed and containerised, from ``project/``.

With a database the files of ``database/`` come in addition, or in place of those of the same name, and with
services of RPC those of ``rpc/``. Each file
there ends in ``.in``. In their names ``PACKAGE`` stands for the package and ``DOT`` for a dot, in their texts
``{{name}}`` and ``{{package}}`` for what the user has said. Tests: ``tests/cli/test_new.py``, which runs the
tests of a project and checks its types.
"""

from __future__ import annotations

import keyword
from pathlib import Path

from citius.errors import ConfigError

_FILES = Path(__file__).with_name("project")
_WITH_DATABASE = Path(__file__).with_name("database")
_WITH_RPC = Path(__file__).with_name("rpc")


def make(directory: Path, *, has_database: bool = False, has_rpc: bool = False) -> list[Path]:
    """Write a project into ``directory``, whose last part names it; returns its files.

    Args:
        directory: Where; it is made if it is not there.
        has_database: The items are kept in PostgreSQL, with migrations.
        has_rpc: The items are a service of Connect and gRPC, with a ``.proto``.

    Raises:
        ConfigError: There is something already, or the name is none.
    """
    name = directory.name
    package = name.replace("-", "_").lower()
    if not package.isidentifier() or keyword.iskeyword(package) or package in ("tests", "citius"):
        raise ConfigError(
            f"expected a name such as my-shop, of letters, digits and hyphens, got {name!r}"
        )
    if directory.exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory} exists and is not empty")
    if has_database and has_rpc:
        raise ConfigError("expected --db or --rpc, got both")
    sources = _sources(_FILES)
    if has_database:
        sources |= _sources(_WITH_DATABASE)
    if has_rpc:
        sources |= _sources(_WITH_RPC)
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
