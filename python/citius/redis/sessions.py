"""A connection for one caller alone: to watch keys, or for what changes the state of a connection."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic

from citius.redis.commands import Commands
from citius.redis.commands.base import Data
from citius.redis.serial import refuse_loop
from citius.redis.transactions import Transaction

if TYPE_CHECKING:
    from types import TracebackType

    from citius._core import RedisClient, RedisConnection
    from citius.redis.calls import Call
    from citius.redis.commands.base import Key
    from citius.redis.commands.scripting import Script


class Session(Commands[Data]):
    """Commands on a connection of their own, one after the other."""

    def __init__(self, core: RedisClient, connection: RedisConnection) -> None:
        self._core, self._connection = core, connection
        self._call = functools.partial(core.execute, connection=connection)
        self._is_over = False

    def transaction(self) -> Transaction[Data]:
        """Commands between ``MULTI`` and ``EXEC``.

        Raises:
            WatchFailed: At the end of its block: a watched key has changed.
        """
        return Transaction(self._core, self._connection)

    def call_script(
        self, script: Script[Data], arguments: tuple[Any, ...], is_read_only: bool, as_: Any
    ) -> Call[Any]:
        """Execute a script; what ``Script`` calls."""
        return self._core.script(
            script.source, script.sha, arguments,
            is_read_only=is_read_only, as_=as_, connection=self._connection,
        )  # fmt: skip

    def not_open(self) -> BaseException:
        """What a method raises behind the block."""
        return RuntimeError("the connection was given back: its block has ended")

    def end(self) -> None:
        """Send nothing more."""
        del self._call


class Acquiring(Generic[Data]):
    """``async with redis.connection() as connection``; ``with`` in a thread or a greenlet."""

    def __init__(
        self,
        core: RedisClient,
        keys: tuple[Key, ...] = (),
        *,
        is_kept: bool,
    ) -> None:
        self._core, self._keys, self._is_kept = core, keys, is_kept
        self._session: Session[Data] | None = None
        self._connection: RedisConnection | None = None

    def _acquire(self) -> Call[Any]:
        return self._core.acquire(self._keys[0] if self._keys else None)

    def _enter(self, connection: RedisConnection) -> Session[Data]:
        self._connection = connection
        session: Session[Data] = Session(self._core, connection)
        self._session = session
        return session

    def _leave(self) -> None:
        session, connection = self._session, self._connection
        if session is None or connection is None:
            return
        self._session = self._connection = None
        session.end()
        if self._is_kept:
            # What comes next on the connection comes behind it.
            self._core.execute("UNWATCH", connection=connection).start()
        self._core.give_back(connection, is_kept=self._is_kept)

    async def __aenter__(self) -> Session[Data]:
        session = self._enter(await self._acquire())
        try:
            if self._keys:
                await session.execute("WATCH", *self._keys)
        except BaseException:
            self._leave()
            raise
        return session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def __enter__(self) -> Session[Data]:
        refuse_loop("with", "async with")
        session = self._enter(self._acquire().wait())
        try:
            if self._keys:
                session.execute("WATCH", *self._keys).wait()
        except BaseException:
            self._leave()
            raise
        return session

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
