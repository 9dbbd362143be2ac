"""The pool: sessions that share statements, and those that a transaction owns."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

from citius._core import PgPool, PgTypes
from citius.databases.callbacks import call_back, refuse_coroutine
from citius.databases.forks import OPENED_BEFORE, is_lost
from citius.databases.statements import METHODS, Statements
from citius.errors import ConfigError
from citius.observability import logging
from citius.observability.clients import measured
from citius.pg import dsn as dsns
from citius.pg.cancelling import Cancelling
from citius.pg.connecting import first_use, keep_trying, open_session, refuse_other_texts
from citius.pg.copying import CopyOut, copy_in_alone
from citius.pg.cursors import Cursor
from citius.pg.errors import PoolClosed, PoolExhausted, PostgresError, SessionLost
from citius.pg.heartbeat import Heartbeat
from citius.pg.listening import Listener
from citius.pg.poolers import Pooler
from citius.pg.transactions import Transaction, refuse_reset_behind_pooler
from citius.pg.types import set_codecs
from citius.process import reactors
from citius.unknown_options import check_value, known_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence

    from citius._core import ClientMetrics, PgCall
    from citius.databases.templates import Statement
    from citius.pg.copying import CopySource
    from citius.pg.errors import ServerError
    from citius.pg.session import Session
    from citius.pg.sync import SyncPool
    from citius.pg.transactions import Isolation
    from citius.pg.types import Codec

_Row = TypeVar("_Row")
_LOOK_EVERY_S = 0.1
_ROLLBACKS_MAX = 3


@known_options
class Pool(Statements):
    """Sessions with one database.

    A pool that the application's start opens is there on the loop of each reactor (``--reactor-threads``),
    with as many sessions on each, as it would be in as many workers.

    Args:
        dsn: ``postgresql://user:password@host:port/database``, ``host=… dbname=…``, or empty for ``PG*``
            variables.
        size: Sessions.
        queue_max: Statements and transactions that may wait for a session; more fail at once.
        wait_s: How long they may wait; then they fail. Both raise ``PoolExhausted``, in a response 503.
        depth: Statements of one turn that share a session while others are idle. More are cheaper, and a slow
            one delays those behind it.
        named_statements: Statements are prepared once per session, under a name. Behind a pooler that changes
            the server process (pgbouncer in transaction mode) names get lost; the pool notices, and sends
            statements with their text from then on, as it does from the beginning with ``False``.
        name: What the pool is called in metrics; ``host:port/database`` without it.
        codecs: How values of some types are converted.
        on_notice: Called with each remark of the server's (``RAISE NOTICE``, ``WARNING: …``), which has the
            fields of a ``ServerError``. Without it warnings are logged as warnings, the rest as information.
        reset: Sessions are reset behind each statement and each block, because functions, views or triggers
            of the database change settings, take locks or make temporary tables. It costs the server about
            as much as a short statement.
    """

    shared_as: ClassVar = "pg"
    """How compiled code uses it, once ``citius.go.share`` has named it."""

    def __init__(
        self,
        dsn: str = "",
        size: int = 8,
        *,
        queue_max: int = 1000,
        wait_s: float = 10.0,
        depth: int = 8,
        named_statements: bool = True,
        name: str | None = None,
        codecs: Sequence[Codec[Any]] = (),
        on_notice: Callable[[ServerError], object] | None = None,
        reset: bool = False,
    ) -> None:
        for argument, value in (("size", size), ("queue_max", queue_max), ("depth", depth)):
            if value < 1:
                raise ConfigError(f"{argument} must be at least 1, got {value}")
        refuse_coroutine(on_notice, "on_notice")
        refuse_reset_behind_pooler(reset, is_pooled=not named_statements)
        # A function, so that `vars` does not show the password of the DSN.
        self._twin = lambda: Pool(
            dsn, size, queue_max=queue_max, wait_s=wait_s, depth=depth,
            named_statements=named_statements, name=name, codecs=codecs, on_notice=on_notice, reset=reset,
        )  # fmt: skip
        self.has_names, self._resets = named_statements, reset
        self.pooler: Pooler | None = None
        self._twins: dict[int, Pool] = {}  # those on the loops of other reactors, by their threads
        self.targets = dsns.parse_all(dsn)
        self._name, self._codecs, self._on_notice = name, tuple(codecs), on_notice
        self.types, self._has_codecs = PgTypes(), False
        self._metrics: ClientMetrics | None = None
        self._size, self._queue_max, self._wait_s, self._depth = size, queue_max, wait_s, depth
        self._core: PgPool | None = None
        self.loop: asyncio.AbstractEventLoop | None = None  # `None` while it is not open
        self.process = 0
        """The process that has opened it."""
        self._sessions: set[Session] = set()
        self._by_core: dict[int, Session] = {}
        self._waiting: deque[asyncio.Future[Session]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self.listeners: set[Listener] = set()
        self._is_looking = self.is_ending = False
        self._cancelling = Cancelling(self)
        self._heartbeat: Heartbeat | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """For ``App(lifespan=pool.lifespan)``: open while the application serves."""
        async with self:
            yield

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect all sessions.

        Raises:
            PostgresError: The first one could not be connected.
        """
        await self._open()
        reactors.share(self)

    async def open_on_loop(self) -> None:
        """Open the same for the running loop, whose thread uses it from then on."""
        twin = self._twin()
        await twin._open()
        self._twins[get_ident()] = twin
        for name in METHODS:
            setattr(self, name, self._by_thread(name))

    async def close_on_loop(self) -> None:
        """Undo ``open_on_loop``."""
        if (twin := self._twins.pop(get_ident(), None)) is not None:
            await twin.close()

    def _by_thread(self, name: str) -> Callable[..., Any]:
        own, twins = getattr(self.core, name), self._twins

        def call(*arguments: Any, **keywords: Any) -> Any:
            twin = twins.get(get_ident())
            return (own if twin is None else getattr(twin, name))(*arguments, **keywords)

        return call

    def _here(self) -> Pool:
        """The pool of this thread."""
        return self._twins.get(get_ident(), self)

    async def _open(self) -> None:
        self._leave_what_is_lost()
        if self._core is not None:
            raise RuntimeError("the pool is open already")
        self.loop = loop = asyncio.get_running_loop()
        self.process = os.getpid()
        self.is_ending = False
        # Another database may be where the last one was.
        self.types, self._has_codecs = PgTypes(), not self._codecs
        self._metrics = measured(self.targets[0].client(self._name), self._connections)
        self._core = core = PgPool(
            loop, self._listen, self._queue_max, self._depth, self.has_names, self.types,
            self._metrics, self._resets,
        )  # fmt: skip
        self.pooler = Pooler(self.types)
        # The methods are those of the extension: there is nothing in between.
        for name in METHODS:
            setattr(self, name, getattr(core, name))
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise
        self._heartbeat = Heartbeat(self, loop)
        # The others come while the first one serves.
        for _ in range(self._size - 1):
            self.spawn(keep_trying(self._connect, "trying again"))

    async def close(self, *, wait_s: float = 5.0) -> None:
        """Let statements and transactions end, for ``wait_s`` at most, and close all sessions."""
        self._leave_what_is_lost()
        core = self._core
        if core is None:
            return
        check_value("pool.close", "wait_s", wait_s, "float")
        now = asyncio.get_running_loop().time
        until = now() + wait_s
        reactors.unshare(self)
        self.is_ending = True
        if self._heartbeat is not None:
            self._heartbeat.end()
        core.stop_queueing()
        try:
            while now() < until and any(one.core.load or one.core.status for one in self._sessions):
                await asyncio.sleep(0.01)
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(list(self._tasks))
            for listener in list(self.listeners):
                await listener.close()
        finally:
            # Also if the code that closes it is cancelled.
            self._end(core)

    def _end(self, core: PgPool) -> None:
        for task in list(self._tasks):
            task.cancel()
        for listener in list(self.listeners):
            listener.close_now()
        for session in list(self._sessions):
            self._forget(session)
            session.close()
        core.expire(0, lambda: PoolClosed("the pool is closed"))
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(PoolClosed("the pool is closed"))
        self._waiting.clear()
        self._forget_core()

    def _forget_core(self) -> None:
        for name in METHODS:
            self.__dict__.pop(name, None)
        self._core = self.loop = None

    def _leave_what_is_lost(self) -> None:
        """Be closed in a child that was forked since it was opened, and where its loop has ended."""
        if self._core is None or not is_lost(self.process, self.loop):
            return
        for session in self._sessions:
            session.leave()
        reactors.unshare(self)
        self._forget_core()
        self._twins, self._sessions, self._by_core = {}, set(), {}
        self._waiting, self._tasks, self.listeners = deque(), set(), set()
        self._heartbeat, self._is_looking, self._cancelling = None, False, Cancelling(self)

    def transaction(
        self,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
        reset: bool = False,
    ) -> Transaction:
        """``async with pool.transaction() as tx``: a session of its own until the end of the block.

        Args:
            isolation: That of the transaction; the server's default without it.
            readonly: It writes nothing.
            deferrable: It waits until it cannot fail, if it is serializable and reads.
            reset: The session is reset at the end whatever the block does: functions that it calls may change
                settings, take locks or make temporary tables.
        """
        return Transaction(
            self._here(),
            isolation=isolation,
            readonly=readonly,
            deferrable=deferrable,
            reset=reset,
        )

    async def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Execute a statement with each row of parameters in one transaction; the number of rows changed."""
        async with self.transaction() as transaction:
            return await transaction.execute_many(sql, rows)

    @overload
    def cursor(
        self, sql: Statement, /, *arguments: object, rows_max: int = 500
    ) -> Cursor[tuple[Any, ...]]: ...
    @overload
    def cursor(
        self, sql: Statement, /, *arguments: object, as_: type[_Row], rows_max: int = 500
    ) -> Cursor[_Row]: ...
    def cursor(
        self, sql: Statement, /, *arguments: object, as_: Any = None, rows_max: int = 500
    ) -> Cursor[Any]:
        """Rows in portions: ``async with pool.cursor(sql, …) as rows: async for row in rows``."""
        return Cursor(
            self.transaction(), (sql, *arguments), as_=as_, rows_max=rows_max, is_own=True
        )

    def copy_out(self, sql: str) -> CopyOut:
        """Data of ``COPY … TO STDOUT``: ``async with pool.copy_out(sql) as chunks``."""
        return CopyOut(self._here(), sql)

    async def copy_in(self, sql: str, source: CopySource) -> int:
        """Do ``COPY … FROM STDIN``; the number of rows.

        Args:
            sql: With any format, if the source is bytes; rows are sent in the text format.
            source: Bytes; or an iterator, perhaps asynchronous, of bytes or of rows (tuples, lists).
        """
        return await copy_in_alone(self._here(), sql, source)

    def listen(
        self, *channels: str, queue_max: int = 1000, on_gap: Callable[[], None] | None = None
    ) -> Listener:
        """Notifications: ``async with pool.listen("channel") as notifications``.

        Args:
            channels: Their names; the case of letters counts.
            queue_max: Notifications that wait for the consumer; with more the oldest is dropped.
            on_gap: Called when notifications may have been missed: one was dropped, or the connection was
                lost and made again.
        """
        return Listener(self._here(), channels, queue_max, on_gap)

    @property
    def sync(self) -> SyncPool:
        """This pool for code without ``await``: threads, greenlets, goroutines, WSGI, scripts."""
        from citius.pg.sync import SyncPool

        return SyncPool(self)

    @property
    def sessions(self) -> int:
        """Sessions that are connected."""
        return len(self._sessions) + sum(twin.sessions for twin in list(self._twins.values()))

    @property
    def queued(self) -> int:
        """Statements and transactions that wait for a session."""
        core = self._core
        elsewhere = sum(twin.queued for twin in list(self._twins.values()))
        return (core.queued if core is not None else 0) + len(self._waiting) + elsewhere

    # --- what is measured ---

    def _connections(self) -> tuple[int, int, int]:
        """Sessions in use, idle ones, and what waits, on this loop."""
        used = sum(not session.is_idle for session in self._sessions)
        core = self._core
        queued = (core.queued if core is not None else 0) + len(self._waiting)
        return used, len(self._sessions) - used, queued

    def _count(self, counter: str) -> None:
        if self._metrics is not None:
            self._metrics.count(counter)

    # --- sessions ---

    async def _connect(self) -> None:
        if self.is_ending:
            return
        core = self.core
        try:
            session = await open_session(core, self.types, self.targets, self._lost, self._codecs)
        except PostgresError:
            self._count("connect_failed")
            raise
        if self.is_ending:
            return session.close()
        refuse_other_texts(session)
        self._count("opened")
        if self._on_notice is not None:
            session.on_notice = self._notice
        silence = SessionLost(f"{session.target}: no response to the first statement")
        async with first_use(session, silence):
            if self.pooler is not None and await self.pooler.look(session):
                core.set_pooled()
                refuse_reset_behind_pooler(self._resets, is_pooled=True)
            await self._set_codecs(session)
        if session.is_closed:
            # Behind the last reply, in one piece with it: `_lost` did not know it, and none would replace it.
            self._count("lost")
            raise SessionLost(f"{session.target}: the session has ended as soon as it was open")
        self._sessions.add(session)
        self._by_core[id(session.core)] = session
        self.release(session)

    async def _set_codecs(self, session: Session) -> None:
        if not self._has_codecs:
            await set_codecs(self.core, self.types, session.core, self._codecs)
            self._has_codecs = True

    def _notice(self, notice: ServerError) -> None:
        assert self._on_notice is not None
        call_back(self._on_notice, notice, name="PostgreSQL: on_notice")

    def _lost(self, session: Session) -> None:
        if session in self._sessions:
            self._forget(session)
            self._count("lost")
            if not self.is_ending:
                self.spawn(keep_trying(self._connect, "trying again"))

    def _forget(self, session: Session) -> None:
        self._sessions.discard(session)
        self._by_core.pop(id(session.core), None)
        if self._core is not None:
            self._core.unshare(session.core)

    @property
    def open_sessions(self) -> list[Session]:
        """Those that are connected, on this loop."""
        return list(self._sessions)

    def spawn(self, coroutine: Coroutine[object, None, None]) -> None:
        """Step a coroutine until it ends, or until the pool is closed."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def core(self) -> PgPool:
        """The extension's part of an open pool."""
        if self._core is None:
            raise self.not_open()
        if self.process != os.getpid():
            raise RuntimeError(OPENED_BEFORE)
        return self._core

    @property
    def core_here(self) -> PgPool:
        """The extension's part of the pool on the loop of this thread."""
        return self._here().core

    def not_open(self) -> BaseException:
        """What a method raises before the pool is opened and after it is closed."""
        return PoolClosed(
            "the pool is not open: use `async with pool`, or `App(lifespan=pool.lifespan)`"
        )

    async def acquire(self) -> Session:
        """A session for a transaction.

        Raises:
            PoolExhausted: None became free in time.
        """
        core = self.core
        until = asyncio.get_running_loop().time() + self._wait_s
        while True:
            if not self._waiting and (taken := core.unshare()) is not None:
                session = self._by_core[id(taken)]
            else:
                session = await self._next_released(until)
            if session.is_idle or await self._is_drained(session, until):
                if self._resets:
                    session.core.set_changed()
                return session
            if self.is_ending:
                raise PoolClosed("the pool is closed")

    async def _next_released(self, until: float) -> Session:
        if len(self._waiting) >= self._queue_max:
            self._count("refused")
            raise PoolExhausted(f"{self._queue_max} transactions wait for the database already")
        waiter: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout_at(until):
                return await waiter
        except TimeoutError:
            # A session can have come in the same turn as the end of the wait.
            if _has_session(waiter):
                return waiter.result()
            self._count("refused")
            raise self._exhausted() from None
        except BaseException:  # in the turn in which it came, maybe
            if _has_session(waiter):
                self.release(waiter.result())
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)

    async def _is_drained(self, session: Session, until: float) -> bool:
        """Wait for what others have under way on it: whether it is idle and open then.

        A cancel request for one of theirs could hit a statement of the new owner's.
        """
        try:
            async with asyncio.timeout_at(until):
                while not (session.is_idle or session.is_closed):
                    with contextlib.suppress(PostgresError):
                        # Done when all before it is.
                        await self.core.script("", session.core)
                    while session.is_cancelling:
                        await asyncio.sleep(0.01)
        except TimeoutError:
            if not session.is_idle:
                self.release(session)
                raise self._exhausted() from None
        except BaseException:
            self.release(session)
            raise
        return not session.is_closed

    def release(self, session: Session) -> None:
        """Give a session back."""
        if session.is_closed or self._core is None:
            return
        if session.core.status:
            # Nothing that the pool does ends within a transaction.
            return self.roll_back(session)
        if (reset := session.core.take_changes()) is not None:
            # Where no command undoes it, the pool connects another one.
            return self.spawn(self._reset(session, reset)) if reset else session.close()
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                # The transaction comes after the statements that wait already.
                self._core.serve_waiting(session.core)
                return waiter.set_result(session)
        self._core.share(session.core)

    async def _reset(self, session: Session, sql: str) -> None:
        """Give a session back as it was when it was connected."""
        try:
            await self.core.script(sql, session.core)
        except PostgresError:
            # The pool connects another one.
            return session.close()
        except BaseException:
            session.close()
            raise
        self.release(session)

    def roll_back(self, session: Session) -> None:
        """Give a session back when the server says that it is in no transaction."""
        if session.is_closed or self._core is None:
            return
        session.cut_copies()
        call = self._core.script("ROLLBACK", session.core)
        call.start()
        self.spawn(self._roll_back(session, call))

    async def _roll_back(self, session: Session, call: PgCall) -> None:
        with contextlib.suppress(PostgresError):
            await call
        for _ in range(_ROLLBACKS_MAX):
            while session.is_cancelling:
                await asyncio.sleep(0.01)  # its request may still hit what comes next
            if session.is_closed or not session.core.status:
                return self.release(session)
            with contextlib.suppress(PostgresError):
                await self.core.script("ROLLBACK", session.core)
        # The pool connects another one.
        session.close()

    def _exhausted(self) -> PoolExhausted:
        server, wait_s = self.targets[0], self._wait_s
        return PoolExhausted(f"no session with the {server} became free within {wait_s:g} s")

    # --- what the extension tells ---

    def _listen(self, kind: str, _value: object) -> None:
        if kind == "queued":
            self._look()
        elif kind == "abandoned":
            self._cancelling.watch()
        elif kind == "nameless":
            self.has_names = False
            why = "prepared statements get lost, as behind a pooler in transaction mode; they are sent with"
            logging.warning(
                f"PostgreSQL: {why} their text from now on, as with named_statements=False"
            )

    def _look(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._expire)

    def _expire(self) -> None:
        """Fail what has waited for too long."""
        self._is_looking = False
        if (core := self._core) is not None and core.queued:
            core.expire(int(self._wait_s * 1000), self._exhausted)
            self._look()


def _has_session(waiter: asyncio.Future[Session]) -> bool:
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None
