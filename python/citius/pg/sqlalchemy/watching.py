"""The heartbeat of SQLAlchemy's sessions: a statement on one that is dead without an end fails.

Only those are looked at that something is waited for; idle ones are what ``pool_pre_ping`` is for.
Tests: ``tests/pg/test_heartbeat.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakSet

from citius._core import PgPool
from citius.pg.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from citius._core import PgTypes
    from citius.pg.dsn import Target
    from citius.pg.session import Session


class Watches:
    """Those of the engines that share a driver: one for each loop and DSN."""

    def __init__(self, types: PgTypes) -> None:
        self._types = types
        # Each lives as long as its timer, and with that its loop.
        self._all: WeakSet[_Watch] = WeakSet()

    def watch(self, session: Session, targets: list[Target]) -> None:
        """Watch a session of the running loop until it is closed."""
        loop = asyncio.get_running_loop()
        for one in list(self._all):
            if one.loop is loop and one.targets == targets:
                return one.add(session)
        made = _Watch(loop, self._types, targets)
        self._all.add(made)
        made.add(session)


class _Watch:
    """Sessions as their heartbeat knows a pool."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, types: PgTypes, targets: list[Target]
    ) -> None:
        self.loop, self.types, self.targets = loop, types, targets
        self.core = PgPool(loop, lambda _kind, _value: None, 1, 1, True, types, None)
        self._sessions: WeakSet[Session] = WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()
        self._heartbeat: Heartbeat | None = None

    def add(self, session: Session) -> None:
        """Watch a session."""
        self._sessions.add(session)
        if self._heartbeat is None:
            self._heartbeat = Heartbeat(self, self.loop, asks_idle=False)

    @property
    def open_sessions(self) -> list[Session]:
        """Those that are open; without one there is no heartbeat."""
        found = [session for session in self._sessions if not session.is_closed]
        if not found and self._heartbeat is not None:
            self._heartbeat.end()
            self._heartbeat = None
        return found

    def spawn(self, coroutine: Coroutine[object, None, None]) -> None:
        """Step a coroutine until it ends."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
