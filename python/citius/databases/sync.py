"""The face of a pool for code that waits serially: threads, greenlets, goroutines, WSGI, scripts.

``pool.sync`` has the methods of a pool, and each returns its result. In a thread it blocks; in a greenlet of
gevent, and in a goroutine that is one, others run meanwhile. The connections are those of the pool, on the
event loop that has opened it; a pool that is not open is opened by the first call, on a loop in a thread of
its own (under gevent in a greenlet, for threads are greenlets there). What only one database has is in
``citius.pg.sync`` and ``citius.sqlite.sync``. Tests: ``tests/pg/test_sync.py``,
``tests/sqlite/test_sync.py``.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import selectors
import sys
import threading
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, overload

from citius.databases.commits import Commits, call_sync_hooks
from citius.databases.forks import OPENED_BEFORE
from citius.errors import ChannelMisuse
from citius.observability import logging
from citius.serial import is_serial, wait
from citius.threads import Thread, run_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from types import TracebackType

    from citius.databases.templates import Statement

    Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]

_T = TypeVar("_T")
_Row = TypeVar("_Row")
# How long the end of a process waits for the end of the connections.
_EXIT_S = 1.0


class Pool(Protocol):
    """What is asked of a pool."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that it is open on; ``None`` while it is not."""
        ...

    @property
    def process(self) -> int:
        """The process that has opened it."""
        ...

    async def open(self) -> None:
        """Open it."""
        ...

    async def close(self, *, wait_s: float = ...) -> None:
        """Close it."""
        ...


class SyncStatements:
    """Statements with parameters ``$1``, ``$2``, …, which travel beside the text and never in it."""

    def __init__(self, pool: Pool, owner: Any) -> None:
        self._pool, self._owner = pool, owner

    def _call(self, name: str, *arguments: object, **options: object) -> Any:
        def begin() -> Awaitable[Any]:
            # A pool has its methods once it is open.
            return getattr(self._owner, name)(*arguments, **options)

        return wait_for(self._pool, begin)

    @overload
    def fetch(self, sql: Statement, /, *arguments: object) -> list[tuple[Any, ...]]: ...
    @overload
    def fetch(self, sql: Statement, /, *arguments: object, as_: type[_Row]) -> list[_Row]: ...
    def fetch(self, sql: Statement, /, *arguments: object, as_: Any = None) -> Any:
        """All rows: as tuples; with ``as_`` as dicts or as objects of a class (a Struct, a dataclass)."""
        return self._call("fetch", sql, *arguments, as_=as_)

    @overload
    def fetch_many(
        self, sql: str, rows: Iterable[Sequence[object]], /
    ) -> list[tuple[Any, ...]]: ...
    @overload
    def fetch_many(
        self, sql: str, rows: Iterable[Sequence[object]], /, as_: type[_Row]
    ) -> list[_Row]: ...
    def fetch_many(self, sql: str, rows: Iterable[Sequence[object]], /, as_: Any = None) -> Any:
        """The rows of a statement that is executed once with each of ``rows``, one list for all."""
        return self._call("fetch_many", sql, rows, as_=as_)

    @overload
    def fetch_one(self, sql: Statement, /, *arguments: object) -> tuple[Any, ...] | None: ...
    @overload
    def fetch_one(self, sql: Statement, /, *arguments: object, as_: type[_Row]) -> _Row | None: ...
    def fetch_one(self, sql: Statement, /, *arguments: object, as_: Any = None) -> Any:
        """The first row, or ``None``."""
        return self._call("fetch_one", sql, *arguments, as_=as_)

    def fetch_value(self, sql: Statement, /, *arguments: object) -> Any:
        """The first column of the first row, or ``None``."""
        return self._call("fetch_value", sql, *arguments)

    def fetch_json(self, sql: Statement, /, *arguments: object, items: str | None = None) -> bytes:
        """All rows as a JSON array of objects, encoded without a Python object in between."""
        return self._call("fetch_json", sql, *arguments, items=items)

    def fetch_json_one(self, sql: Statement, /, *arguments: object) -> bytes:
        """The first row as a JSON object, or ``null``."""
        return self._call("fetch_json_one", sql, *arguments)

    def execute(self, sql: Statement, /, *arguments: object) -> int:
        """Execute without rows; the number of those changed."""
        return self._call("execute", sql, *arguments)

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Execute a statement with each row of parameters; the number of rows changed."""
        return self._call("execute_many", sql, list(rows))

    @overload
    def cursor(
        self, sql: Statement, /, *arguments: object, rows_max: int = 500
    ) -> SyncCursor[tuple[Any, ...]]: ...
    @overload
    def cursor(
        self, sql: Statement, /, *arguments: object, as_: type[_Row], rows_max: int = 500
    ) -> SyncCursor[_Row]: ...
    def cursor(
        self, sql: Statement, /, *arguments: object, as_: Any = None, rows_max: int = 500
    ) -> SyncCursor[Any]:
        """Rows in portions: ``with pool.sync.cursor(sql, …) as rows: for row in rows``."""
        open_pool(self._pool)
        made = self._owner.cursor(sql, *arguments, as_=as_, rows_max=rows_max)
        return SyncCursor(self._pool, made)


class SyncPool(SyncStatements):
    """What ``pool.sync`` is."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, pool)

    def open(self) -> None:
        """Connect, which the first call does otherwise."""
        open_pool(self._pool)

    def close(self) -> None:
        """Close a pool that was opened here; it may be opened again."""
        if self._pool.loop is not None:
            wait_for(self._pool, self._pool.close)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Block:
    """A block of a pool or a transaction."""

    def __init__(self, pool: Pool, block: Any) -> None:
        self._pool, self._block = pool, block

    def __enter__(self) -> Self:
        entry = _Entry(self._block)
        try:
            wait_for(self._pool, entry.enter)
        except BaseException as error:
            entry.abandon(self._pool.loop, error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        wait_for(self._pool, lambda: self._block.__aexit__(kind, error, trace))


class _Entry:
    """What a block has got on the loop of its pool, perhaps just as the wait for it was ended."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._is_entered = False

    async def enter(self) -> None:
        """Enter the block."""
        await self._block.__aenter__()
        self._is_entered = True

    def abandon(self, loop: asyncio.AbstractEventLoop | None, error: BaseException) -> None:
        """Leave it if it was entered all the same: the thread or greenlet was told to end."""

        async def leave() -> None:
            # This comes behind the cancellation: what is not entered now never is.
            if self._is_entered:
                await self._block.__aexit__(type(error), error, None)

        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and its connections
                asyncio.run_coroutine_threadsafe(leave(), loop)


class SyncTransaction(SyncStatements, Block, Commits):
    """A transaction, or a savepoint in one."""

    def __init__(self, pool: Pool, transaction: Any, outer: SyncTransaction | None = None) -> None:
        SyncStatements.__init__(self, pool, transaction)
        self._block = transaction
        self._outer = outer

    def transaction(self) -> Self:
        """A savepoint: what is done within it can be undone by itself."""
        return type(self)(self._pool, self._owner.transaction(), self)

    def _check_open(self) -> None:
        self._block._check_open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None and self._hooks:
            call_sync_hooks(self.take_hooks(self._outer))


class SyncCursor(Block, Generic[_Row]):
    """Rows in portions: ``with … as rows: for row in rows``."""

    def __iter__(self) -> Iterator[_Row]:
        while rows := self.fetch():
            yield from rows

    def fetch(self) -> list[_Row]:
        """The next portion of rows; an empty list at the end."""
        return wait_for(self._pool, self._block.fetch)


# --- the loop, and waiting for it ---------------------------------------------------------------


def open_pool(pool: Pool) -> asyncio.AbstractEventLoop:
    """The loop of a pool, which is opened if it is not."""
    loop = pool.loop
    if loop is None or (loop.is_closed() and pool.process == os.getpid()):
        if is_serial():
            raise ChannelMisuse(
                "pool.sync would connect here, which stops the event loop of this thread: open the pool "
                "before, with App(lifespan=pool.lifespan)"
            )
        with _opening:
            if (loop := pool.loop) is None or loop.is_closed():
                loop = _own_loop()
                _result(loop, pool.open())
                _opened.add(pool)
        return loop
    if pool.process != os.getpid():
        raise RuntimeError(OPENED_BEFORE)
    return loop


def wait_for(pool: Pool, begin: Callable[[], Awaitable[_T]]) -> _T:
    """The result of what ``begin`` starts on the loop of a pool."""
    if is_serial():
        return _parked(pool, begin)
    loop = open_pool(pool)
    if _is_running(loop):
        raise ChannelMisuse(
            "pool.sync waits, and this is the event loop of the pool: use `await pool.…` here, or a `def` "
            "with serial=True"
        )
    return _result(loop, _awaited(begin))


def _parked(pool: Pool, begin: Callable[[], Awaitable[_T]]) -> _T:
    """The result in a serial handler, whose task awaits it."""
    loop = open_pool(pool)
    if _is_running(loop):
        return wait(_awaited(begin))
    return wait(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(begin), loop)))


async def _awaited(begin: Callable[[], Awaitable[_T]]) -> _T:
    return await begin()


def _result(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, _T]) -> _T:
    future: Future[_T] = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        # The thread or greenlet is told to end: so is the statement.
        future.cancel()
        raise


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop() is loop
    return False


_opening = threading.RLock()
_opened: set[Pool] = set()
_own: dict[int, asyncio.AbstractEventLoop] = {}


def _own_loop() -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own, one for the process."""
    process = os.getpid()
    if process not in _own:
        aside = _Aside() if _is_patched() else None
        loop = _OwnLoop(aside)
        if aside is not None:
            aside.loop = loop
        _own.clear()
        _own[process] = loop
        Thread(
            target=run_on,
            args=(loop, bool, logging.log_exception),
            name="citius-databases",
            daemon=True,
        ).start()
    return _own[process]


def _is_patched() -> bool:
    """Whether threads are greenlets."""
    monkey: Any = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


class _OwnLoop(asyncio.SelectorEventLoop):
    """A loop beside the one that serves; under gevent a reactor may be on the same thread."""

    carried_by_reactor = False
    """Sessions on this loop are carried by it."""


class _Aside(selectors.DefaultSelector):
    """While the loop waits, other greenlets of its thread find no running loop."""

    loop: asyncio.AbstractEventLoop | None = None

    def select(self, timeout: float | None = None) -> Any:
        asyncio._set_running_loop(None)
        try:
            return super().select(timeout)
        finally:
            asyncio._set_running_loop(self.loop)


@atexit.register
def _close() -> None:
    """Close pools that were opened here."""
    loop = _own.get(os.getpid())
    pools = [pool for pool in _opened if pool.loop is loop]
    if loop is None or not pools:
        return

    async def close() -> None:
        await asyncio.gather(*(pool.close(wait_s=0) for pool in pools), return_exceptions=True)

    with contextlib.suppress(Exception):
        asyncio.run_coroutine_threadsafe(close(), loop).result(_EXIT_S)
