"""A connection for one caller alone: to watch keys, or for what changes the state of a connection."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Generic

from citius.redis.commands import Commands
from citius.redis.commands.base import Data
from citius.redis.errors import BlockEnded, RedisError, ServerError
from citius.redis.serial import refuse_loop
from citius.redis.transactions import Transaction

if TYPE_CHECKING:
    from types import TracebackType

    from citius._core import RedisCall, RedisClient, RedisConnection
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
        self.check()
        return Transaction(self._core, self._connection, self.check)

    def call_script(
        self, script: Script[Data], arguments: tuple[Any, ...], is_read_only: bool, as_: Any
    ) -> Call[Any]:
        """Execute a script; what ``Script`` calls."""
        self.check()
        return self._core.script(
            script.source, script.sha, arguments,
            is_read_only=is_read_only, as_=as_, connection=self._connection,
        )  # fmt: skip

    def not_open(self) -> BaseException:
        """What a method raises behind the block."""
        return BlockEnded("the connection was given back: its block has ended")

    def check(self) -> None:
        """Refuse to send behind the end.

        Raises:
            BlockEnded: The block has ended.
        """
        if self._is_over:
            raise self.not_open()

    def end(self) -> None:
        """Send nothing more."""
        self._is_over = True
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

    def _acquire(self) -> RedisCall:
        return self._core.acquire(self._keys[0] if self._keys else None)

    def _enter(self, connection: RedisConnection) -> Session[Data]:
        self._connection = connection
        session: Session[Data] = Session(self._core, connection)
        self._session = session
        return session

    def _watch(self, session: Session[Data]) -> Call[Any]:
        return session.execute("WATCH", *self._keys)

    def _watching(self, session: Session[Data]) -> Session[Data]:
        """Others have the connection next: nothing else of it is changed from here on."""
        if self._is_kept and self._connection is not None:
            self._connection.watch()
        return session

    def _elsewhere(self, acquired: RedisCall, error: ServerError) -> RedisCall:
        """The connection that ``error`` leads to, not that of ``acquired``; raises it if it leads nowhere."""
        connection = self._connection
        self._leave()
        if connection is None:
            raise error
        said = f"{error.code} {error.message}"
        instead = self._core.acquire_instead(acquired, connection.node, said)
        if instead is None:
            raise error
        return instead

    def _leave(self) -> None:
        session, connection = self._session, self._connection
        if session is None or connection is None:
            return
        self._session = self._connection = None
        session.end()
        if self._is_kept:
            # What comes next on the connection comes behind it.
            with contextlib.suppress(RedisError):  # it has ended
                self._core.execute("UNWATCH", connection=connection).start()
        self._core.give_back(connection, is_kept=self._is_kept)

    async def __aenter__(self) -> Session[Data]:
        acquired = self._acquire()
        while True:
            session = self._enter(await acquired)
            try:
                if self._is_kept:
                    await self._watch(session)
                return self._watching(session)
            except ServerError as error:
                acquired = self._elsewhere(acquired, error)
            except BaseException:
                self._leave()
                raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def __enter__(self) -> Session[Data]:
        refuse_loop("with", "async with")
        acquired = self._acquire()
        while True:
            session = self._enter(acquired.wait())
            try:
                if self._is_kept:
                    self._watch(session).wait()
                return self._watching(session)
            except ServerError as error:
                acquired = self._elsewhere(acquired, error)
            except BaseException:
                self._leave()
                raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
