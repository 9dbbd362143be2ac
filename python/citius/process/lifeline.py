"""Ends this process when another ends: this one has the reading end of a pipe, the other the writing end."""

from __future__ import annotations

import fcntl
import os
import select
import signal


def end_with(fd: int) -> None:
    """Have the kernel send TERM when the last writer of the pipe has closed it (fcntl(2), O_ASYNC)."""
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGTERM)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(0):
        os._exit(0)  # the other process ended before O_ASYNC was set
