"""A pool for asyncpg's connections: a free list, and a reset only where there is something to reset.

    from citius.pg.asyncpg import create_pool

    pool = await create_pool("postgresql://app@localhost/shop")

It is an ``asyncpg.Pool`` with the arguments and methods of one. What differs:

- ``acquire`` gives the connection itself, not a proxy: using it after its release is not noticed.
- asyncpg resets a connection at each release, by four statements and a round trip. Here it is reset if a
  statement could have changed the session, by the rule of ``citius.pg`` (``citius-pg/src/change.rs``), if a
  transaction is open, or if it has listeners. Its role, its temporary tables and what ``PREPARE`` has named
  are reset too; where no command undoes it, or ``init`` has set up the session by statements, the connection
  is closed. A *function* of the database that changes the session is not recognised:
  ``create_pool(…, always_reset=True)`` is for those.

Tests: ``tests/pg/test_asyncpg_pool.py``; asyncpg's own tests of its pool: ``scripts/asyncpg-suite --pool``.
"""

# asyncpg has no types for much of this.
# pyright: basic

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import asyncpg
from asyncpg.pool import Pool as _TheirPool
from asyncpg.pool import logger

from citius._core import pg_reset_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from asyncpg import Connection

_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 1.0, 60.0
# A longer text is mostly made for one request.
_TEXTS_MAX, _TEXT_LENGTH_MAX = 10_000, 8192
# By text: what undoes what it leaves of a session, and whether it ends prepared statements; `False`: nothing.
_known: dict[str, tuple[str, bool] | Literal[False]] = {}
_ANY_RESET = pg_reset_of("DO ''")[0] or ""
"""Undoes what code may have done of which nothing is known."""


def _change_of(text: str) -> tuple[str, bool] | Literal[False]:
    known = _known.get(text)
    if known is None:
        reset, ends_names = pg_reset_of(text)
        known = reset is not None and (reset, ends_names)
        if len(text) <= _TEXT_LENGTH_MAX:
            if len(_known) >= _TEXTS_MAX:
                _known.clear()
            _known[text] = known
    return known


class _Watched:
    """What a connection notes of texts, those of COPY among them, which are no prepared statements."""

    __slots__ = ()

    if TYPE_CHECKING:
        _left: str | None

        def _drop_local_statement_cache(self) -> None: ...
        def is_closed(self) -> bool: ...

    def note(self, text: str) -> None:
        """Note what a text leaves of the session that is about to be executed."""
        if not (change := _change_of(text)):
            return
        (reset, ends_names), left = change, self._left
        if left is None or (left and not reset) or (left and len(reset) > len(left)):
            self._left = reset
        if ends_names:
            # What is prepared anew is there.
            self._drop_local_statement_cache()

    def heed(self, error: BaseException | None) -> None:
        """Forget prepared statements if the server does: a function may have deallocated them."""
        if isinstance(error, asyncpg.InvalidSQLStatementNameError) and not self.is_closed():
            self._drop_local_statement_cache()

    async def _introspect_types(self, *arguments: Any, **keywords: Any) -> Any:
        left = self._left
        found = await super()._introspect_types(*arguments, **keywords)  # type: ignore[misc]
        # The setting that it has changed is what it was.
        self._left = left
        return found

    def _copy_out(self, copy_stmt: str, *arguments: Any) -> Any:
        self.note(copy_stmt)
        return super()._copy_out(copy_stmt, *arguments)  # type: ignore[misc]

    def _format_copy_where(self, where: str | None) -> str:
        self.note(f"SELECT {where or ''}")
        return super()._format_copy_where(where)  # type: ignore[misc]


@functools.cache
def _pooled(base: type[Connection]) -> type[Any]:
    """A class of connections that know whether there is something to reset."""
    # What is called for each statement is neither looked up by `super` nor wrapped in functions of ours.
    get_statement: Any = base._get_statement
    is_known = _known.get

    class PooledConnection(_Watched, base):
        __slots__ = ("_epoch", "_generation", "_is_set_up", "_left", "_pool")

        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            # What undoes what its statements have left; empty if nothing does.
            self._left: str | None = None
            self._is_set_up = False
            self._pool: Pool | None = None
            self._epoch = self._generation = 0

        @functools.wraps(base.execute)
        def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> Any:
            self.note(query)
            return super().execute(query, *arguments, timeout=timeout)

        def _get_statement(self, query: str, *arguments: Any, **keywords: Any) -> Any:
            if is_known(query) is not False:
                self.note(query)
            return get_statement(self, query, *arguments, **keywords)

        def _cleanup(self) -> None:
            super()._cleanup()
            pool, self._pool = self._pool, None
            if pool is not None:
                pool._forget(self)

        def _drop_global_statement_cache(self) -> None:
            if self._pool is not None:
                self._pool._drop_statement_cache()
            else:
                self._drop_local_statement_cache()

        def _drop_global_type_cache(self) -> None:
            if self._pool is not None:
                self._pool._drop_type_cache()
            else:
                self._drop_local_type_cache()

    PooledConnection.__module__, PooledConnection.__name__ = base.__module__, base.__name__
    PooledConnection.__qualname__ = base.__qualname__
    return PooledConnection


def _on_any(name: str) -> Any:
    """A method of a pool: that of a connection, on whichever is free."""

    @functools.wraps(getattr(asyncpg.Connection, name))
    async def run(self: Pool, query: str, *arguments: Any, **keywords: Any) -> Any:
        # As `async with self.acquire()`, without the two coroutines of that.
        connection = self._take_idle() or await self._acquire(None)
        try:
            return await getattr(connection, name)(query, *arguments, **keywords)
        except BaseException as error:
            connection.heed(error)
            raise
        finally:
            if connection in self._used and not self._give_back(connection):
                await self.release(connection)

    return run


class Pool(_TheirPool):
    """Connections that are free, connections in use, and the callers that wait for one."""

    __slots__ = (
        "__weakref__", "_all", "_always_reset", "_epoch", "_gives_idle", "_idle", "_maintenance_task",
        "_size", "_sweeper", "_used", "_waiting",
    )  # fmt: skip

    def __init__(self, *arguments: Any, always_reset: bool = False, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._connection_class = _pooled(self._connection_class)
        self._always_reset = always_reset or self._reset is not None
        # It is open, and `setup` has nothing to do for a connection that was free.
        self._gives_idle = False
        self._all: set[Any] = set()
        self._idle: list[Any] = []
        self._used: dict[Any, float | None] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._epoch = self._size = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._maintenance_task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """For ``App(lifespan=pool.lifespan)``: open while the application serves."""
        self._loop = asyncio.get_running_loop()
        async with self:
            yield

    async def _initialize(self) -> None:
        self._loop = asyncio.get_running_loop()
        count: Any = getattr(self, "_initsize", self._minsize)
        try:
            # The first one alone, so that an error is seen early.
            if count:
                self._idle.append(await self._connected())
            made = await asyncio.gather(*(self._connected() for _ in range(count - 1)))
            self._idle.extend(made)
        except BaseException:
            for connection in list(self._all):
                connection.terminate()
            raise
        self._gives_idle = self._setup is None
        if self._max_inactive_connection_lifetime:
            self._sweep_later()

    # --- getting a connection ---

    def acquire(self, *, timeout: float | None = None) -> Any:
        """A connection: ``async with pool.acquire() as connection``, or ``await`` and ``release``."""
        return _Acquiring(self, timeout)

    def _take_idle(self) -> Any:
        """A connection that is free, if that is all there is to it."""
        if not self._gives_idle or self._waiting:
            return None
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection._generation == self._generation and not connection.is_closed():
                self._used[connection] = None
                return connection
            connection.terminate()
        return None

    async def _acquire(self, timeout: float | None) -> Any:
        if self._closing:
            raise asyncpg.InterfaceError("pool is closing")
        self._check_init()
        connection = self._take_idle()
        if connection is None:
            async with asyncio.timeout(timeout):
                connection = await self._take()
        self._used[connection] = timeout
        return connection

    async def _take(self) -> Any:
        is_first = False
        while not (self._size < self._maxsize or self._idle) or (self._waiting and not is_first):
            turn = self._loop.create_future()
            # One that had its turn and found nothing goes before the others.
            (self._waiting.appendleft if is_first else self._waiting.append)(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._next()
                raise
            finally:
                with contextlib.suppress(ValueError):
                    self._waiting.remove(turn)
            is_first = True
            if self._closed or self._closing:
                raise asyncpg.InterfaceError("pool is closing")
        connection = None
        while self._idle and connection is None:
            connection = self._idle.pop()
            if connection._generation != self._generation or connection.is_closed():
                connection.terminate()
                connection = None
        if connection is None:
            connection = await self._connected()
        self._used[connection] = None
        if self._setup is not None:
            try:
                await self._setup(connection)
            except BaseException:
                # Whether it can be used again is not known.
                await connection.close()
                raise
        return connection

    async def _connected(self) -> Any:
        self._size += 1
        generation = self._generation
        try:
            connection: Any = await self._get_new_connection()
            if connection.is_closed():
                raise asyncpg.ConnectionDoesNotExistError(
                    "connection was closed during pool initialization"
                )
        except BaseException:
            self._size -= 1
            self._next()
            raise
        connection._pool, connection._generation = self, generation
        connection._is_set_up = connection._left is not None
        connection._left, connection._epoch = None, self._epoch
        self._all.add(connection)
        return connection

    # --- giving it back ---

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Give a connection back; one that is free already is left so.

        Called twice, it takes the connection from a task that has got it between the calls.
        """
        if getattr(connection, "_pool", self) is not self or not isinstance(
            connection, asyncpg.Connection
        ):
            raise asyncpg.InterfaceError(
                f"Pool.release() received invalid connection: {connection!r} is not a member of this pool"
            )
        if connection not in self._used or self._give_back(connection):
            return
        self._check_init()
        if timeout is None:
            timeout = self._used[connection]
        # A caller that is cancelled still gives it back.
        await asyncio.shield(self._clean(connection, timeout))

    def _give_back(self, connection: Any) -> bool:
        """Give a connection back at once, if there is nothing to clean up."""
        protocol = connection._protocol
        if (
            connection._left is not None
            or self._always_reset
            or connection.is_closed()
            or protocol.is_in_transaction()
            or connection._top_xact is not None
            or connection._listeners
            or connection._log_listeners
            or protocol._is_cancelling()
            or connection._generation != self._generation
            or protocol.queries_count >= self._max_queries
        ):
            return False
        # Prepared statements and cursors of this use end here.
        connection._pool_release_ctr += 1
        del self._used[connection]
        connection._epoch = self._epoch
        self._idle.append(connection)
        if self._waiting:
            self._next()
        return True

    async def _clean(self, connection: Any, timeout: float | None) -> None:
        if not connection.is_closed():
            connection._on_release()
        try:
            if connection.is_closed():
                return connection.terminate()
            is_expired = connection._generation != self._generation
            if is_expired or connection._protocol.queries_count >= self._max_queries:
                return await connection.close(timeout=timeout)
            if connection._protocol._is_cancelling():
                timeout = await connection._protocol._wait_for_cancellation(timeout)
            if connection.is_closed():
                return connection.terminate()
            left = connection._left
            if self._reset is None and (left == "" or (left and connection._is_set_up)):
                # A reset would leave it, or undo what `init` has set up.
                return await connection.close(timeout=timeout)
            async with asyncio.timeout(timeout):
                await self._reset_session(connection)
        except BaseException:
            connection.terminate()
            raise
        connection._left = None
        connection._epoch = self._epoch
        self._used.pop(connection, None)
        if connection.is_closed():
            return connection.terminate()
        self._idle.append(connection)
        self._next()

    async def _reset_session(self, connection: Any) -> None:
        if self._reset is not None:
            await connection._reset()
            await self._reset(connection)
        elif connection._left is None and not self._always_reset:
            await connection._reset()
        elif connection._is_set_up or not connection._server_caps.plpgsql:
            await connection.reset()
        else:
            await connection._reset()
            left = connection._left or _ANY_RESET
            await connection.execute(f"{connection.get_reset_query()}\n{left}")

    def _next(self) -> None:
        """Tell who has waited longest that there may be a connection."""
        for turn in self._waiting:
            if not turn.done():
                return turn.set_result(None)

    def _forget(self, connection: Any) -> None:
        """A connection is closed, by whatever."""
        if connection in self._all:
            self._all.discard(connection)
            self._size -= 1
        self._used.pop(connection, None)
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)
        self._next()
        self._schedule_min_size_maintenance()

    # --- as many as there should be ---

    def _schedule_min_size_maintenance(self) -> None:
        if not self._initialized or self._closing or self._closed or self._size >= self._minsize:
            return
        if self._maintenance_task is None or self._maintenance_task.done():
            self._maintenance_task = self._loop.create_task(self._maintain())

    async def _maintain(self) -> None:
        pause_s = _BACKOFF_FIRST_S
        while self._size < self._minsize and not self.is_closing():
            try:
                self._idle.append(await self._connected())
                self._next()
                pause_s = _BACKOFF_FIRST_S
            except (
                Exception
            ) as error:  # of any kind: without a new attempt there would be none for ever
                logger.warning("Failed to connect again: %s; trying again in %g s", error, pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _BACKOFF_MAX_S)

    def _sweep_later(self) -> None:
        half_s = self._max_inactive_connection_lifetime / 2
        self._sweeper = self._loop.call_later(half_s, self._sweep)

    def _sweep(self) -> None:
        """Close connections that were free for the whole of their lifetime, down to the least number."""
        self._epoch += 1
        for connection in list(self._idle):
            # In halves of the lifetime, so that a release reads no clock.
            if self._size > self._minsize and self._epoch - connection._epoch > 2:
                connection.terminate()
        self._sweep_later()

    # --- asyncpg's own, without its holders ---

    def get_size(self) -> int:
        """How many connections there are."""
        return sum(not connection.is_closed() for connection in self._all)

    def get_idle_size(self) -> int:
        """How many of them are free."""
        return sum(not connection.is_closed() for connection in self._idle)

    def _drop_statement_cache(self) -> None:
        for connection in self._all:
            connection._drop_local_statement_cache()

    def _drop_type_cache(self) -> None:
        for connection in self._all:
            connection._drop_local_type_cache()

    async def close(self) -> None:
        """Wait until all connections are given back, and close them."""
        if self._closed:
            return
        self._check_init()
        self._closing, self._gives_idle = True, False
        self._stop()
        warning = self._loop.call_later(60, self._warn_on_long_close)
        try:
            while self._used:
                turn = self._loop.create_future()
                self._waiting.append(turn)
                await turn
            await asyncio.gather(*(connection.close() for connection in list(self._all)))
        except BaseException:
            self.terminate()
            raise
        finally:
            warning.cancel()
            self._closed, self._closing = True, False

    def terminate(self) -> None:
        """Close all connections at once."""
        if self._closed:
            return
        self._check_init()
        self._closed, self._gives_idle = True, False
        self._stop()
        for connection in list(self._all):
            connection.terminate()

    def _stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._maintenance_task is not None:
            self._maintenance_task.cancel()
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    # --- statements on whichever connection is free ---

    execute = _on_any("execute")
    fetch = _on_any("fetch")
    fetchval = _on_any("fetchval")
    fetchrow = _on_any("fetchrow")


class _Acquiring:
    """What ``acquire`` returns: to be awaited, or entered."""

    __slots__ = ("_connection", "_is_done", "_pool", "_timeout", "_use")

    def __init__(self, pool: Pool, timeout: float | None) -> None:
        self._pool, self._timeout = pool, timeout
        self._connection: Any = None
        self._is_done = False

    def __await__(self) -> Generator[Any, Any, Any]:
        self._is_done = True
        return self._pool._acquire(self._timeout).__await__()

    async def __aenter__(self) -> Any:
        if self._is_done:
            raise asyncpg.InterfaceError("a connection is already acquired")
        self._is_done = True
        connection = self._pool._take_idle()
        if connection is None:
            connection = await self._pool._acquire(self._timeout)
        elif self._timeout is not None:
            self._pool._used[connection] = self._timeout
        self._connection, self._use = connection, connection._pool_release_ctr
        return connection

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        connection, self._connection = self._connection, None
        pool = self._pool
        if error is not None:
            connection.heed(error)
        if connection._pool_release_ctr != self._use:
            return  # it was given back within the block, and may be another one's by now
        if connection in pool._used and not pool._give_back(connection):
            await pool.release(connection)


def create_pool(
    dsn: str | None = None,
    *,
    min_size: int = 10,
    max_size: int = 10,
    max_queries: int = 50_000,
    max_inactive_connection_lifetime: float = 300.0,
    always_reset: bool = False,
    loop: asyncio.AbstractEventLoop | None = None,
    connection_class: type[Connection] = asyncpg.Connection,
    record_class: type[asyncpg.Record] = asyncpg.Record,
    **keywords: Any,
) -> Pool:
    """``asyncpg.create_pool`` with this pool.

    Args:
        dsn: Where the database is.
        min_size: Connections that there always are.
        max_size: Connections at most.
        max_queries: Statements after which a connection is replaced.
        max_inactive_connection_lifetime: Seconds after which one that is free is closed; 0: never.
        always_reset: Reset a connection at each release, as asyncpg does.
        loop: The event loop; the one that runs when the pool is opened without it.
        connection_class: The class of connections.
        record_class: The class of rows.
        keywords: ``init_size``, ``setup``, ``init``, ``reset``, ``connect``, those of ``asyncpg.connect``.
    """
    if loop is None:
        # Opened later: a pool at the top of a module has no loop yet.
        with contextlib.suppress(RuntimeError):
            loop = asyncio.get_running_loop()
    return Pool(
        dsn,
        min_size=min_size,
        max_size=max_size,
        max_queries=max_queries,
        max_inactive_connection_lifetime=max_inactive_connection_lifetime,
        always_reset=always_reset,
        loop=loop or _NO_LOOP,
        connection_class=connection_class,
        record_class=record_class,
        **keywords,
    )


# asyncpg asks for a loop where there is none yet; `_initialize` replaces it.
_NO_LOOP: Any = object()
