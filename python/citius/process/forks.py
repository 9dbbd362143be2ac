"""Child processes that application code forks: they keep no port, and end when the application returns.

Such a child has copies of the worker's sockets, and must neither serve nor clean up. A copy of a listening
socket would keep the port after the server's end, and clients in its queue; ``keep_from_children`` takes it.
``citius-base/src/fork.rs`` does the same for handlers; this module is for all other calls of the application
(import, hooks, readiness checks).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from citius.observability import logging

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def end_child(pid: int, error: BaseException | None = None) -> None:
    """End this process unless it is ``pid``; ``error`` is what the application has raised."""
    if os.getpid() == pid:
        return
    code = 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        how = "returned" if error is None else f"raised {error!r}"
        logging.error(
            f"a forked child ended (exit code 1), because it cannot serve: its function {how}; "
            "end a child with os._exit() or sys.exit()"
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def call_here(
    function: Callable[_Parameters, _Result],
    *arguments: _Parameters.args,
    **more: _Parameters.kwargs,
) -> _Result:
    """Call a function that runs code of the application; a child that it forks ends there."""
    home = os.getpid()
    try:
        result = function(*arguments, **more)
    except BaseException as error:
        end_child(home, error)
        raise
    end_child(home)
    return result


def keep_from_children(sockets: Iterable[socket.socket]) -> None:
    """Have every process that is forked from now on close these listening sockets, with all their copies.

    On Linux those of code in C too: the extension has the C library do it (``descriptor/unix/forks.rs``).
    Elsewhere those alone that Python forks.
    """
    if sys.platform == "linux":
        from citius import _core

        _core.keep_from_children([made.fileno() for made in sockets])
        return
    if not hasattr(os, "register_at_fork"):
        return
    if not _kept:
        os.register_at_fork(after_in_child=_leave)
    _kept.update({made.fileno(): _identity(made.fileno()) for made in sockets})


def _leave() -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd, identity in _kept.items():
        with suppress(OSError):
            if _identity(fd) == identity:
                # Not closed: its owner may be a reactor, which still has the number.
                os.dup2(null, fd, inheritable=False)
    os.close(null)


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


_kept: dict[int, tuple[int, int]] = {}
