"""Where the lab's own files are: its definitions, what it builds, and the programs it ships."""

from __future__ import annotations

import os
from pathlib import Path

from citius_lab.errors import DefinitionError

# The package's own directory.
PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Return the lab's own folder of definitions: beside the package, or within an installed one."""
    installed = PACKAGE / "data"
    return (installed if installed.is_dir() else PACKAGE.parent) / name


def in_checkout() -> bool:
    """Tell whether the lab runs from a checkout of Citius, not from an installed wheel."""
    return folder("contestants").parent.name != "data"


def lab_root() -> Path:
    """Return the folder with the definitions: ``lab`` of a checkout, or the installed package's ``data``.

    Raises:
        DefinitionError: The package was installed without them.
    """
    root = folder("contestants").parent
    if not (root / "contestants").is_dir():
        raise DefinitionError(
            f"the contestants' definitions are not in {root}; install citius-lab again"
        )
    return root


def default_build_root() -> Path:
    """Return where everything that the lab builds lies: in the checkout, else in the user's cache."""
    if in_checkout():
        return lab_root() / ".build"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "citius-lab")
