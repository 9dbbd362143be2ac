"""Child processes that application code forks: they keep no port, and end when the application returns.

Such a child has copies of the worker's sockets, and must neither serve nor clean up. A copy of a listening
socket would keep the port after the server's end, and clients in its queue; ``keep_from_children`` takes it.
``citius-py/src/fork.rs`` does the same for handlers; this module is for all other calls of the application
(import, hooks, readiness checks).
"""

from __future__ import annotations

import os
import stat
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
    """Close listening sockets, with all their copies, in every process that Python forks from now on."""
    if not hasattr(os, "register_at_fork"):
        return
    if not _kept:
        os.register_at_fork(after_in_child=_leave)
    for made in sockets:
        found = os.fstat(made.fileno())
        _kept[found.st_dev, found.st_ino] = made.fileno()


def _leave() -> None:
    try:
        fds = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        fds = [*_kept.values()]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in fds:
        with suppress(OSError):
            found = os.fstat(fd)
            if stat.S_ISSOCK(found.st_mode) and (found.st_dev, found.st_ino) in _kept:
                # Not closed: its owner may be a reactor, which still has the number.
                os.dup2(null, fd, inheritable=False)
    os.close(null)


_kept: dict[tuple[int, int], int] = {}
