"""How this process was started: in which directory, and by which other process.

``enter`` changes the directory once, at the start; ``started_in`` is the directory in which a new server is
started (a reload, or USR2).
"""

from __future__ import annotations

import os

from citius.errors import ConfigError

HANDOVER_ENV = "CITIUS_HANDOVER"
"""Set by a server that hands its sockets to the next one: a reload, or USR2."""

DEVELOPMENT_ENV = "_CITIUS_DEVELOPMENT"
"""Set for the server below a reloader: documentation and tracebacks are served."""


def enter(directory: str) -> None:
    """Change to the directory that all paths are relative to.

    Raises:
        ConfigError: It cannot be entered.
    """
    global _started_in
    _started_in = started_in()
    try:
        os.chdir(directory)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"chdir: cannot go to {directory}: {reason}") from None


def started_in() -> str:
    """The directory of the command as the shell names it, which may lead to another directory since."""
    if _started_in is not None:
        return _started_in
    named = os.environ.get("PWD", "")
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return named or "/"  # it has been removed since
    try:
        return named if named and os.path.samefile(named, here) else here
    except OSError:
        return here


_started_in: str | None = None
