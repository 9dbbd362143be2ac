"""Signals as bytes of a descriptor, which a poll can wait for."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from citius.serving.supervisor.worker import SIGNALS

if TYPE_CHECKING:
    from types import TracebackType


class Alarms:
    """Catches the supervisor's signals while it is entered; a context manager."""

    def __init__(self) -> None:
        self._fds = (-1, -1)
        self._before: dict[int, object] = {}
        self._fd_before = -1

    @property
    def fd(self) -> int:
        """Readable when a signal has come."""
        return self._fds[0]

    def __enter__(self) -> Alarms:
        self._fds = os.pipe()
        for fd in self._fds:
            os.set_blocking(fd, False)
        self._before = {number: signal.signal(number, _ignore) for number in SIGNALS}
        self._fd_before = signal.set_wakeup_fd(self._fds[1], warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]
        self.close()

    def take(self) -> bytes:
        """The numbers of the signals that have come."""
        return os.read(self.fd, 4096)

    def close(self) -> None:
        """Close the descriptors; in a worker they are copies of the supervisor's."""
        for fd in self._fds:
            os.close(fd)


def _ignore(number: int, frame: object) -> None:
    """Signals are read from the wake-up descriptor; a handler only makes them arrive there."""
