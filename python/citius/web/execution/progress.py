"""How a body that runs on an executor tells how far it is: a parameter ``progress: Progress``.

The body may be in a thread, another process, a sub-interpreter or on another machine; a
:class:`ProgressReporter` is sent there with the other arguments. Sub-interpreters cannot load the
extension of Citius, and so this module works without it: a module that has bodies for them imports
this one, and nothing else of Citius. Tests: ``tests/server/test_executors.py``.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, TypeAlias, cast

from citius.web.declarations.parameters.sources import Depends

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from citius._core import Request
else:
    try:
        from citius._core import Request  # dependencies are read at run time
    except ImportError:  # in a sub-interpreter, where no route is declared
        Request = object

REPORT_BYTES_MAX: Final = 32 * 1024
"""A report of another process or interpreter; a longer one raises ValueError."""
# How often a body on another machine asks whether it is cancelled.
_ASK_S: Final = 0.5

Way = Literal["thread", "process", "socket", "dask", "none"]


class Channel(Protocol):
    """How a process of ``processes=`` talks to its worker."""

    def is_cancelled(self) -> bool:
        """Whether nothing waits for the call that runs."""
        ...

    def report(self, data: bytes) -> None:
        """Send a report."""
        ...


channel: Channel | None = None
"""Set in such a process."""


class JobCancelled(Exception):
    """Raised in a body whose client has left, or whose deadline has passed."""


class ProgressReporter:
    """How a body tells how far it is: ``progress(0.3)``, ``progress(0.3, {"row": 7})``.

    It can be sent to other interpreters, processes and machines.
    """

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self.job = secrets.token_hex(8)
        # What the executor sets before it sends the reporter away: how reports come back, and where to.
        self.way: Way = "none"
        self.where = ""
        self.told: Told | None = None
        self._asked_at = 0.0
        self._socket: socket.socket | None = None

    def __call__(self, done: float, data: object = None) -> None:
        """Say that a share of the work is done, from 0 to 1.

        Raises:
            JobCancelled: Nothing waits for the result any more.
        """
        if self._is_cancelled():
            raise JobCancelled(self.job)
        if not self.is_wanted:
            return
        if self.told is not None:
            self.told.tell(done, data)
        elif self.way in ("process", "socket"):
            self._send(done, data)
        elif self.way == "dask":
            import distributed

            distributed.get_worker().log_event(self.where, [self.job, done, data])

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "told": None, "_socket": None}

    def _is_cancelled(self) -> bool:
        if self.told is not None:
            return self.told.is_cancelled
        if self.way == "process":
            return channel is not None and channel.is_cancelled()
        if self.way == "socket":
            return Path(self.where, self.job).exists()
        if self.way == "dask":
            return self._is_cancelled_in_dask()
        return False

    def _is_cancelled_in_dask(self) -> bool:
        from time import monotonic

        import distributed

        now = monotonic()
        if now - self._asked_at < _ASK_S:
            return False
        self._asked_at = now
        return bool(cast("Any", distributed.Event(f"citius-cancelled-{self.job}")).is_set())

    def _send(self, done: float, data: object) -> None:
        report = _encode((self.job, done, data))
        if len(report) > REPORT_BYTES_MAX:
            raise ValueError(f"a report has {len(report)} bytes, {REPORT_BYTES_MAX} are taken")
        if self.way == "process":
            if channel is not None:
                channel.report(report)
            return
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        with suppress(OSError):  # its way is full, or nothing listens any more
            self._socket.sendto(report, f"{self.where}/reports")


def _encode(report: tuple[str, float, object]) -> bytes:
    try:
        import msgspec
    except ImportError:  # in a sub-interpreter, which its extension refuses
        import json

        return json.dumps(report).encode()
    return msgspec.json.encode(report)


def _reporter(request: Request) -> ProgressReporter:
    return ProgressReporter("text/event-stream" in request.header("accept", ""))


Progress: TypeAlias = Annotated[ProgressReporter, Depends(_reporter)]
"""The annotation of a handler's parameter that reports progress."""


class Told:
    """What a body tells that runs in a thread of this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_report: Callable[..., object]) -> None:
        self._loop = loop
        self._on_report = on_report
        self.is_cancelled = False

    def tell(self, done: float, data: object) -> None:
        """Pass a report on to the event loop."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._on_report, done, data)
