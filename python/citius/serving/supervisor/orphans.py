"""Processes whose parents have ended, where they come to the supervisor: as PID 1, and with ``--sandbox``.

A confined process that a worker has forked ends with its worker: otherwise code that has taken a worker over
would live on, with the server's sockets, when the worker is replaced and when the server stops. It cannot
leave: its parent is the worker, or one that the worker has forked, or the supervisor. What is not confined is
no business of the supervisor, but to be reaped. While no worker has ended, orphans live on: processes of an
executor whose forker was killed, say. Tests: ``tests/deploy/test_sandbox.py``.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


class Orphans:
    """Ends and reaps what workers have left."""

    def __init__(self) -> None:
        self._are_ours = os.getpid() == 1
        self._filters = 0
        self._are_to_end = False
        self.are_left = False
        """Whether some that have to end have not ended yet; a CHLD comes when they do."""

    def adopt(self) -> None:
        """Become the parent of orphans, and end those that are confined."""
        if self._filters:
            return
        from citius._core import adopt_orphans

        adopt_orphans()
        self._are_ours = True
        # Processes that an application starts before it is confined have one more than this one.
        self._filters = 2 + _filters("self")

    def end(self, known: set[int], *, has_worker_ended: bool) -> None:
        """End those that a worker has left; ``known`` are children that have a purpose."""
        if not self._are_ours:
            return
        self._are_to_end = self._filters > 0 and (self._are_to_end or has_worker_ended)
        if self._are_to_end:
            for pid in self._confined(known):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _reap(known)
        if self._are_to_end:
            # Those that one of them had forked come now.
            self.are_left = self._are_to_end = bool(self._confined(known))

    def _confined(self, known: set[int]) -> list[int]:
        return [pid for pid in _children() - known if _filters(pid) >= self._filters]


def _children() -> set[int]:
    found: set[int] = set()
    for _ in range(2):  # the kernel may leave one out while another one ends
        for task in os.listdir("/proc/self/task"):
            with suppress(OSError):
                text = Path(f"/proc/self/task/{task}/children").read_text()
                found.update(map(int, text.split()))
    return found


def _filters(pid: int | str) -> int:
    """How many filters of system calls a process has, which it cannot get rid of; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Seccomp_filters:")), 0)


def _reap(known: set[int]) -> None:
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in known:
            return  # one that is known has its turn in the next round, and the rest after it
        os.waitpid(found.si_pid, 0)
