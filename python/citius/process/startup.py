"""How this process was started: in which directory, and by which other process.

``enter`` changes the directory once, at the start; ``started_in`` is where a new process begins that is to do
what this one did.
"""

from __future__ import annotations

import os

from citius.errors import ConfigError

HANDOVER_ENV = "CITIUS_HANDOVER"
"""Set by a server that hands its sockets to the next one: a reload, or USR2."""


def enter(directory: str) -> None:
    """Go to the directory that all paths are relative to.

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
    """Where the command was given, by the name the shell knows it by: that may lead elsewhere by now."""
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
