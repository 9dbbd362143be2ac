"""``citius new``: a small project that runs, is tested, typed and containerised, from ``project/``.

Each file there ends in ``.in``. In their names ``PACKAGE`` stands for the package and ``DOT`` for a dot, in
their texts ``{{name}}`` and ``{{package}}`` for what the user has said. Tests: ``tests/cli/test_new.py``,
which runs the tests of a project and checks its types.
"""

from __future__ import annotations

import keyword
from pathlib import Path

from citius.errors import ConfigError

_FILES = Path(__file__).with_name("project")


def make(directory: Path) -> list[Path]:
    """Write a project into ``directory``, whose last part names it; returns its files.

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
    written: list[Path] = []
    for source in sorted(_FILES.rglob("*.in")):
        relative = source.relative_to(_FILES).as_posix().removesuffix(".in")
        path = directory / relative.replace("PACKAGE", package).replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        text = text.replace("{{name}}", name).replace("{{package}}", package)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
