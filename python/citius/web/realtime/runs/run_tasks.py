"""``Run``: the task that takes the events of a generator into the store, and what ends it.

```text
generator ── Run.go ── store (memory of all workers, or Redis) ── readers of any worker (run_readers.py)
                └── bus: "there is more" ── workers that follow
```

An event is part of a run when the store has it; only then readers are told. run_keeper.py looks after all
runs of a process. Tests: ``tests/runs/``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from citius.cluster.engines import EngineAway
from citius.cluster.runstores import RunRecord, TableRuns, TooLong
from citius.errors import HTTPError
from citius.observability.logging import log_exception, warning
from citius.web.declarations.codecs import encode_json
from citius.web.realtime.events import Event

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task, TimerHandle
    from collections.abc import AsyncIterator

    from citius.web.realtime.runs.run_keeper import RunKeeper

END: Final = "end"
"""The type of a run's last event."""
GAP: Final = "gap"
"""That of an event in place of those that are no longer kept."""

PENDING_BYTES_MAX: Final = 1024 * 1024
"""Bytes of events that wait for the store. Exceeded: the generator waits."""
EVENT_BYTES_MAX: Final = 1024 * 1024
"""Bytes that one event may have. Exceeded: the run fails."""
CLOSE_S: Final = 5.0
"""How long the ``finally`` blocks of a generator may take. Exceeded: they are left behind, and logged."""

# So many events are taken without letting others have the loop.
_EVENTS_AT_ONCE = 64
# Workers that follow are told of more at most this often.
_TELL_S = 0.01
# An engine that is away is asked again so soon.
_RETRY_S = 0.2


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What bounds the runs of one declaration; ``Router.run`` says what each is."""

    lasts_s: float
    grace_s: float | None
    keep_s: float
    history: int
    history_bytes_max: int
    runs_max: int
    owner_runs_max: int
    kind: str = "runs"
    """What is counted together for ``runs_max``."""


class RunOver(Exception):
    """The run is over for its readers: another worker has ended it, or the store has lost it."""


def packed(event: str, data: str) -> bytes:
    """An event as it is kept: its type, and its data."""
    return f"{event}\n{data}".encode("utf-8", "replace")


def end_event(state: str, **more: object) -> bytes:
    """The last event of a run."""
    return packed(END, encode_json({"state": state, **more}).decode())


def packed_event(event: object) -> bytes:
    """What a generator has yielded, as it is kept.

    Raises:
        TypeError: The event says what only the run can say.
        TooLong: It has too many bytes.
    """
    made = event if isinstance(event, Event) else Event(event)
    if made.id is not None or made.retry_ms is not None:
        raise TypeError("events of a run have the run's identifiers: leave id= and retry_ms= out")
    if made.event in (END, GAP):
        raise TypeError(f"the event type {made.event!r} is the run's own; call it something else")
    data = made.data if isinstance(made.data, str) else encode_json(made.data).decode()
    kept = packed(made.event or "", data)
    if len(kept) > EVENT_BYTES_MAX:
        raise TooLong(f"an event of a run has {len(kept)} bytes, and may have {EVENT_BYTES_MAX}")
    return kept


class Follower:
    """A reader that waits on an event loop."""

    __slots__ = ("_loop", "wake")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()

    def tell(self) -> None:
        """Wake it, from any thread."""
        if self._loop is running_loop():
            self.wake.set()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.wake.set)


class Run:
    """A run of this process."""

    def __init__(
        self, keeper: RunKeeper, identifier: str, record: RunRecord, limits: RunLimits, what: str
    ) -> None:
        self.identifier = identifier
        self.record = record
        self.limits = limits
        self.task: Task[None] | None = None
        self.remote: dict[str, float] = {}
        """Workers with readers, and until when that is taken to be so."""
        self._keeper = keeper
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._began_at = self.read_at = self._loop.time()
        self._why: tuple[str, str] | None = None
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._sizes: list[int] = []
        self._kept_bytes = 0
        self._writer: Task[None] | None = None
        self._failure: BaseException | None = None
        self._telling: TimerHandle | None = None
        self._has_begun = self._is_ending = False
        """Whether it has had a step; whether its end is being kept, which no cancellation breaks off."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The loop that it runs on."""
        return self._loop

    @property
    def _ttl_s(self) -> float:
        return self.limits.lasts_s + self.limits.keep_s

    async def go(self, events: AsyncIterator[object]) -> None:
        """Take events until there are no more, or it is stopped."""
        self._has_begun = True
        state, more = "done", dict[str, object]()
        try:
            count = 0
            async for event in events:
                await self._put(packed_event(event))
                count += 1
                if count % _EVENTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            await self._flushed()
        except RunOver:
            state = ""
        except BaseException as error:
            state, more = self._outcome(error)
        await self._close(events)
        self._is_ending = True
        if state:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await self._flushed()
            if self._writer is not None:
                self._writer.cancel()
            await self._keeper.finish(self, state, end_event(state, **more))
        else:
            await self._keeper.left(self)

    def _outcome(self, error: BaseException) -> tuple[str, dict[str, object]]:
        """What an exception makes of a run."""
        task = asyncio.current_task()
        if self._why is not None:
            return self._why[0], {"reason": self._why[1]}
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            return "cut_off", {"reason": "shutdown"}
        if isinstance(error, HTTPError):
            return "failed", {"status": error.status_code, "detail": error.detail}
        log_exception(f"the run {self._what} failed", error)
        return "failed", {"detail": "the run failed"}

    async def _close(self, events: AsyncIterator[object]) -> None:
        """Run the ``finally`` blocks of the generator and of its dependencies."""
        aclose = getattr(events, "aclose", None)
        if aclose is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await aclose()
        except TimeoutError:
            warning(f"the run {self._what} did not end within {CLOSE_S:g} s; left behind")
        except BaseException as error:
            if self._why is None or not isinstance(error, asyncio.CancelledError):
                log_exception(f"the run {self._what} failed at its end", error)

    def stop(self, state: str, reason: str) -> None:
        """End it, from any thread."""
        if self._why is None:
            self._why = state, reason
        if self._loop is running_loop():
            self._cancel()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if not self._has_begun:
            self._loop.call_soon(self._cancel)  # a task that has not begun would end without a word
        elif self.task is not None and not self._is_ending:
            self.task.cancel()

    def look(self, now: float) -> None:
        """End it if its time is over, or if nothing has read it for too long."""
        if self._why is not None:
            self._cancel()  # it has caught the first cancellation
            return
        if self._keeper.has_followers(self.identifier) or any(
            until > now for until in self.remote.values()
        ):
            self.read_at = now
        grace_s = self.limits.grace_s
        if now - self._began_at >= self.limits.lasts_s:
            self.stop("cancelled", "deadline")
        elif grace_s is not None and now - self.read_at >= grace_s:
            self.stop("cancelled", "no_reader")

    # --- events -----------------------------------------------------------------------------------------

    async def _put(self, kept: bytes) -> None:
        if self._why is not None or self._failure is not None:
            raise self._failure or asyncio.CancelledError
        self._pending.append(kept)
        self._pending_bytes += len(kept)
        if self._writer is not None and not self._writer.done():
            if self._pending_bytes > PENDING_BYTES_MAX:
                await self._flushed()
            return
        if isinstance(self._keeper.store, TableRuns):
            await self._write()  # which does not wait
        else:
            self._writer = self._loop.create_task(self._write_apart())

    async def _flushed(self) -> None:
        if self._writer is not None:
            await asyncio.shield(self._writer)
        if self._failure is not None:
            raise self._failure

    async def _write_apart(self) -> None:
        try:
            await self._write()
        except BaseException as error:
            self._failure = error

    async def _write(self) -> None:
        """Hand over what is pending, and go on until nothing is."""
        record, store = self.record, self._keeper.store
        while self._pending:
            events, self._pending, self._pending_bytes = self._pending, [], 0
            self._make_room(events)
            while True:
                try:
                    taken = await store.append(self.identifier, record, events, self._ttl_s)
                    break
                except EngineAway:
                    await asyncio.sleep(_RETRY_S)
            if not taken:
                raise RunOver
            record.last += len(events)
            self.tell()

    def _make_room(self, events: list[bytes]) -> None:
        """Say what is no longer kept once these are."""
        self._sizes += map(len, events)
        self._kept_bytes += sum(map(len, events))
        gone = 0
        while len(self._sizes) - gone > 1 and (
            len(self._sizes) - gone > self.limits.history
            or self._kept_bytes > self.limits.history_bytes_max
        ):
            self._kept_bytes -= self._sizes[gone]
            gone += 1
        if gone:
            del self._sizes[:gone]
            self.record.first += gone

    def tell(self) -> None:
        """Tell readers that there is more."""
        self._keeper.wake(self.identifier)
        if self.remote and self._telling is None:
            self._keeper.bus.send({"more": self.identifier})
            self._telling = self._loop.call_later(_TELL_S, self._tell_again, self.record.last)

    def _tell_again(self, last: int) -> None:
        self._telling = None
        if self.record.last != last:
            self.tell()


def running_loop() -> AbstractEventLoop | None:
    """The loop of this thread, if it has one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
