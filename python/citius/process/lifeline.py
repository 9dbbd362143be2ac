"""Ends this process when another ends: this one has the reading end of a pipe, the other the writing end.

The kernel tells of the pipe's end by a signal of its own, not by TERM, which an application may take. Until a
host serves (`on_end`) the signal ends the process; then the host drains, and a process that has not ended in
time is ended with its stacks in the log. An application may block or ignore all signals, and keep the main
thread: so in a process that runs one a thread of the extension looks at the pipe as well (`hold`).
"""

from __future__ import annotations

import os
import signal
import sys
from threading import RLock
from time import sleep
from typing import TYPE_CHECKING

from citius.process import signals
from citius.process.early_exits import exit_at_once
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import Callable


def end_with(fd: int, within_s: float) -> None:
    """End this process when the last writer of the pipe has closed it.

    Args:
        fd: The reading end.
        within_s: How long the end may take.
    """
    global _fd, _within_s, _parent
    _fd, _within_s, _parent = fd, within_s, os.getppid()
    if sys.platform == "linux":
        _end_by_kernel(fd)
    else:
        _in_thread(lambda: os.read(fd, 1))


def hold() -> None:
    """See to it that the application, whose code runs from now on, cannot keep this process from ending."""
    if _fd < 0 or sys.platform != "linux":
        return
    from citius._core import end_behind
    from citius.observability.observe import without_signals

    within_s = (_within_s or 0.0) + 2 * signals.STUCK_S
    with without_signals():
        end_behind(_fd, round(1000 * within_s), _end_unheard)


def on_end(stop: Callable[[], object]) -> None:
    """Set what a host does when the other process has ended; it may be called in a signal handler."""
    global _stop
    _stop = stop
    if sys.platform == "linux":
        signal.signal(_NUMBER, lambda number, frame: _end())


def end_if_orphaned() -> None:
    """End this process if another one has become its parent since ``end_with``."""
    if _parent and os.getppid() != _parent:
        _end()


def end_with_parent() -> None:
    """End this process when the one that has started it ends; for Windows, which has no such pipe."""
    if sys.platform == "win32":
        import _winapi

        synchronize = 0x0010_0000
        try:
            parent = _winapi.OpenProcess(synchronize, False, os.getppid())
        except OSError:
            exit_at_once(0)  # it has ended already
        _in_thread(lambda: _winapi.WaitForSingleObject(parent, _winapi.INFINITE))


def _end() -> None:
    global _parent, _is_ending
    with _lock:
        is_first, _is_ending = not _is_ending, True
        _parent = 0
    if not is_first:
        return
    if _within_s is not None:
        signals.end_after(_within_s)
    _stop()


def _end_unheard() -> None:
    """In a thread: the signal's handler has had its time."""
    sleep(signals.STUCK_S)
    _end()


def _in_thread(wait: Callable[[], object]) -> None:
    def end() -> None:
        wait()
        signal.raise_signal(signal.SIGTERM if sys.platform != "win32" else signal.SIGBREAK)

    Thread(target=end, name="citius-lifeline", daemon=True).start()


def _end_by_kernel(fd: int) -> None:
    """By the kernel (fcntl(2), O_ASYNC)."""
    import fcntl
    import select

    signal.signal(_NUMBER, signal.SIG_DFL)
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, _NUMBER)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(0):
        exit_at_once(0)  # the other process ended before O_ASYNC was set


# A real-time signal, which programs take by agreement only; its default is to end the process.
_NUMBER = signal.SIGRTMIN + 7 if sys.platform == "linux" else 0
_stop: Callable[[], object] = lambda: exit_at_once(0)  # noqa: E731
_within_s: float | None = None
_parent = 0
_fd = -1
_is_ending = False
_lock = RLock()  # a handler of the signal may interrupt who holds it
