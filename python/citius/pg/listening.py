"""LISTEN and NOTIFY: a connection of its own, made again when it is lost."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from citius.databases.callbacks import call_back, refuse_coroutine
from citius.databases.wakeups import Wakeups
from citius.pg.connecting import first_use, keep_trying, open_session
from citius.pg.errors import PoolClosed, PostgresError, SessionLost, refused
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from citius.pg.pool import Pool
    from citius.pg.session import Session

# A connection that has silently gone is noticed after both.
_HEARTBEAT_S, _HEARTBEAT_WAIT_S = 30.0, 10.0


@dataclass(frozen=True, slots=True)
class Notification:
    """What ``NOTIFY channel, 'payload'`` has said."""

    channel: str
    payload: str
    process: int
    """The server process of the session that has said it."""


@known_options
class Listener:
    """``async with pool.listen("channel") as notifications: async for notification in notifications``."""

    def __init__(
        self,
        pool: Pool,
        channels: tuple[str, ...],
        queue_max: int,
        on_gap: Callable[[], None] | None,
    ) -> None:
        if not channels or any(not name or "\0" in name for name in channels):
            raise ValueError("expected names of channels, without a zero byte")
        if queue_max < 1:
            raise ValueError(f"queue_max must be at least 1, got {queue_max}")
        refuse_coroutine(on_gap, "on_gap")
        self._pool, self._on_gap = pool, on_gap
        # As names that are quoted: the case of letters counts.
        self._script = "; ".join(
            'LISTEN "' + channel.replace('"', '""') + '"' for channel in channels
        )
        self._queue: deque[Notification] = deque(maxlen=queue_max)
        self._session: Session | None = None
        self._lost = asyncio.Event()
        self._news = Wakeups()
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0
        """Notifications that were dropped because the consumer was too slow."""

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("a listener is entered once")
        await self._connect()
        self._task = asyncio.get_running_loop().create_task(self._keep())
        self._task.add_done_callback(lambda _: self._news.wake())
        self._pool.listeners.add(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; who iterates gets ``PoolClosed``."""
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait([self._task])
        finally:
            # Also if the code that closes it is cancelled.
            self.close_now()

    def close_now(self) -> None:
        """Close the connection without waiting for the task that reads it."""
        self._pool.listeners.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._session is not None:
            self._session.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        while not self._queue:
            if self._task is None:
                raise RuntimeError("use `async with pool.listen(…) as notifications`")
            if self._task.done():
                raise PoolClosed("the listener is closed")
            await self._news.wait()
        return self._queue.popleft()

    async def _connect(self) -> None:
        session = await open_session(
            self._pool.core, self._pool.types, self._pool.targets, self._ended
        )
        # Sessions with other hosts, or secured otherwise, have been tried and ended before this one.
        self._lost.clear()
        session.on_notification = self._take
        silence = SessionLost(f"{session.target}: no response to LISTEN")
        async with first_use(session, silence):
            pooler = self._pool.pooler
            if pooler is not None and await pooler.look(session):
                # No notification would come.
                raise refused(("listen", False))
            await self._pool.core.script(self._script, session.core)
        self._session = session

    async def _keep(self) -> None:
        """Connect again, each time the connection is lost."""
        while True:
            await self._until_lost()
            await keep_trying(self._connect, "trying to listen again")
            # What was said meanwhile is unknown.
            self._gap()

    async def _until_lost(self) -> None:
        session = self._session
        assert session is not None
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    await self._lost.wait()
            except TimeoutError:
                try:
                    async with asyncio.timeout(_HEARTBEAT_WAIT_S):
                        await self._pool.core.script("", session.core)
                except (TimeoutError, PostgresError):
                    session.close()
                    return

    def _ended(self, _session: Session) -> None:
        self._lost.set()

    def _take(self, channel: str, payload: str, process: int) -> None:
        is_full = len(self._queue) == self._queue.maxlen
        self._queue.append(Notification(channel, payload, process))
        if is_full:
            # The oldest one is gone.
            self.dropped += 1
            self._gap()
        self._news.wake()

    def _gap(self) -> None:
        if self._on_gap is not None:
            call_back(self._on_gap, name="PostgreSQL: on_gap")
