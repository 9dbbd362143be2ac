"""Ends this process when another ends: this one has the reading end of a pipe, the other the writing end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def end_with(fd: int) -> None:
    """Send TERM to this process when the last writer of the pipe has closed it."""
    if sys.platform == "linux":
        _end_by_kernel(fd)
    else:
        _in_thread(lambda: os.read(fd, 1))


def end_with_parent() -> None:
    """End this process when the one that has started it ends; for Windows, which has no such pipe."""
    if sys.platform == "win32":
        import _winapi

        synchronize = 0x0010_0000
        try:
            parent = _winapi.OpenProcess(synchronize, False, os.getppid())
        except OSError:
            os._exit(0)  # it has ended already
        _in_thread(lambda: _winapi.WaitForSingleObject(parent, _winapi.INFINITE))


def _in_thread(wait: Callable[[], object]) -> None:
    def end() -> None:
        wait()
        signal.raise_signal(signal.SIGTERM if sys.platform != "win32" else signal.SIGBREAK)

    threading.Thread(target=end, name="citius-lifeline", daemon=True).start()


def _end_by_kernel(fd: int) -> None:
    """By the kernel (fcntl(2), O_ASYNC)."""
    import fcntl
    import select

    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGTERM)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(0):
        os._exit(0)  # the other process ended before O_ASYNC was set
