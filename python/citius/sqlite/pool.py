"""The pool: a database file, one connection that writes and several that read, in threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, overload

from citius.databases.statements import METHODS, Statements
from citius.errors import ConfigError
from citius.observability.clients import Client
from citius.process.processors import processors
from citius.sqlite.calls import ThreadCall
from citius.sqlite.cursors import Cursor
from citius.sqlite.engine import Engine
from citius.sqlite.errors import PoolClosed, SqliteError, statement_error
from citius.sqlite.methods import Methods, script
from citius.sqlite.sessions import KEPT_MAX, Session
from citius.sqlite.transactions import Transaction, check_isolation
from citius.unknown_options import check_value, known_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from citius.databases.templates import Statement
    from citius.sqlite.sync import SyncPool
    from citius.sqlite.transactions import Isolation

_Row = TypeVar("_Row")
Synchronous = Literal["off", "normal", "full", "extra"]
_SYNCHRONOUS: tuple[str, ...] = get_args(Synchronous)
_MEMORY = ":memory:"
_CLOSE_LOOK_S = 0.01


@known_options
class Pool(Statements):
    """Connections with one database file.

    Args:
        path: The file, made if it is not there; ``:memory:`` for a database that ends with the pool.
        readers: Connections that only read, each in a thread; by default as many as processors.
        queue_max: Statements and transactions that may wait; more fail at once.
        wait_s: How long they may wait; then they fail. Both raise ``PoolExhausted``, in a response 503.
        busy_s: How long a write waits for another process that writes; then it raises ``DatabaseBusy``.
        synchronous: When SQLite waits for the disk. With ``normal`` a commit may be lost when the power
            fails, and the database stays whole; ``full`` waits at each commit.
        pragmas: Settings of each connection, such as ``{"cache_size": -64000}``.
        name: What the pool is called in metrics; the name of the file without it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int | None = None,
        queue_max: int = 1000,
        wait_s: float = 10.0,
        busy_s: float = 5.0,
        synchronous: Synchronous = "normal",
        pragmas: Mapping[str, int | str] | None = None,
        name: str | None = None,
    ) -> None:
        if readers is not None and readers < 0:
            raise ConfigError(f"readers must be at least 0, got {readers}")
        if queue_max < 1:
            raise ConfigError(f"queue_max must be at least 1, got {queue_max}")
        if synchronous not in _SYNCHRONOUS:
            raise ConfigError(
                f"synchronous is one of {', '.join(_SYNCHRONOUS)}; got {synchronous!r}"
            )
        self.path = str(path)
        self._is_memory = is_memory = _is_in_memory(self.path)
        self._readers = 0 if is_memory else processors() if readers is None else readers
        self._pragmas = _checked_pragmas(pragmas or {})
        self._queue_max, self._wait_s, self._name = queue_max, wait_s, name
        self._busy_s, self._synchronous = busy_s, synchronous
        self._settings: dict[str, object] = {}
        self._engine: Engine | None = None
        self._closing: asyncio.Task[None] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that it is open on; ``None`` while it is not."""
        self.process = 0
        """The process that has opened it."""

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
        """Open the database.

        Raises:
            SqliteError: It cannot be opened.
        """
        self._leave_what_is_lost()
        if self._engine is not None:
            raise RuntimeError("the pool is open already")
        self.loop = loop = asyncio.get_running_loop()
        self.process = os.getpid()
        self._engine = engine = Engine(
            loop,
            self._connect,
            self._readers,
            self._queue_max,
            self._wait_s,
            Client("sqlite", self._name or Path(self.path).name, self.path, "", 0),
            self._restore if self._is_memory else None,
        )
        methods = Methods(engine, engine.reads, engine.writes)
        for name in METHODS:
            setattr(self, name, getattr(methods, name))
        try:
            # Others wait for the file to be there, and in WAL mode.
            await ThreadCall(engine, engine.writes, lambda _: None)
        except BaseException:
            await self.close()
            raise

    async def close(self, *, wait_s: float = 5.0) -> None:
        """Let statements that are under way end, for ``wait_s`` at most, and close all connections.

        A caller that is cancelled waits no more, nor do statements; the connections are closed all the same.
        """
        check_value("pool.close", "wait_s", wait_s, "float")
        self._leave_what_is_lost()
        engine = self._engine
        if engine is not None:
            engine.stop_taking()
            for name in METHODS:
                self.__dict__.pop(name, None)
            self._engine = self.loop = None
            self._closing = asyncio.create_task(_close(engine, wait_s))
        if (closing := self._closing) is not None:
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                # No time is left for statements that are under way.
                if engine is not None and not closing.done():
                    engine.interrupt_all()
                raise

    def _leave_what_is_lost(self) -> None:
        """Be closed in a child that was forked since it was opened, and where its loop has ended."""
        engine = self._engine
        if engine is None:
            return
        if self.process != os.getpid():
            # It has none of the threads; closed here, a connection would end what the parent's does with
            # the file.
            _of_parents.append(engine)
        elif engine.loop.is_closed():
            engine.leave()
        else:
            return
        for name in METHODS:
            self.__dict__.pop(name, None)
        self._engine = self.loop = self._closing = None

    def transaction(
        self,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
    ) -> Transaction:
        """``async with pool.transaction() as tx``: a connection of its own until the end of the block.

        Args:
            isolation: Checked, and otherwise without effect: transactions of SQLite are serializable.
            readonly: On a connection that reads: it sees one state of the database, and waits for no other.
            deferrable: Without effect.
        """
        check_isolation(isolation)
        check_value("pool.transaction", "deferrable", deferrable, "bool")
        return Transaction(self, readonly=readonly)

    async def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Execute a statement with each row of parameters in one transaction; the number of rows changed."""
        async with self.transaction() as transaction:
            return await transaction.execute_many(sql, rows)

    async def script(self, sql: str) -> None:
        """Execute several statements without parameters; each is a transaction unless they say otherwise."""
        engine = self.engine
        await ThreadCall(engine, engine.writes, script(sql), owns=True)

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the database into another file, while it is used."""
        target = str(path)

        def copy(connection: sqlite3.Connection) -> None:
            with contextlib.closing(sqlite3.connect(target)) as other:
                connection.backup(other)

        engine = self.engine
        await ThreadCall(engine, engine.reads, copy)

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
        transaction = self.transaction(readonly=True)
        return Cursor(transaction, (sql, *arguments), as_=as_, rows_max=rows_max, is_own=True)

    @property
    def sync(self) -> SyncPool:
        """This pool for code without ``await``: threads, greenlets, goroutines, WSGI, scripts."""
        from citius.sqlite.sync import SyncPool

        return SyncPool(self)

    @property
    def queued(self) -> int:
        """Statements and transactions that wait for a connection."""
        return self._engine.queued if self._engine is not None else 0

    @property
    def engine(self) -> Engine:
        """The queues and threads of an open pool."""
        if self._engine is None:
            raise self.not_open()
        return self._engine

    def not_open(self) -> BaseException:
        """What a method raises before the pool is opened and after it is closed."""
        return PoolClosed(
            "the pool is not open: use `async with pool`, or `App(lifespan=pool.lifespan)`"
        )

    def _connect(self, may_write: bool) -> Session:
        """A connection, in its thread; ``may_write`` is false for one that reads."""
        connection: Session | None = None
        try:
            connection = sqlite3.connect(
                self.path,
                timeout=self._busy_s,
                isolation_level=None,
                uri=self.path.startswith("file:"),
                cached_statements=KEPT_MAX,
                factory=Session,
            )
            connection.guard()
            self._set_up(connection)
            if may_write:
                self._log_ahead(connection)
            else:
                connection.execute("PRAGMA query_only = ON")
            if self._is_memory:
                self._settings = _settings_of(connection)
                connection.restorable = frozenset((*self._settings, *_UNREADABLE))
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            failure = statement_error(error)
            raise SqliteError(f"cannot open {self.path!r}: {failure}") from None
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        for name, value in self._pragmas.items():
            connection.execute(f"PRAGMA {name} = {value}")

    def _restore(self, connection: Session) -> None:
        """Undo what a block or a script has changed of the only connection with a database in memory."""
        for name, value in {**_UNREADABLE, **self._pragmas, **self._settings}.items():
            connection.execute(f"PRAGMA {name} = {value}")
        kinds = (
            "SELECT type, name FROM temp.sqlite_master WHERE type IN ('trigger', 'view', 'table')"
        )
        for kind, name in connection.execute(kinds).fetchall():
            if not name.startswith("sqlite_"):
                quoted = name.replace('"', '""')
                connection.execute(f'DROP {kind.upper()} IF EXISTS temp."{quoted}"')
        for _, name, _ in connection.execute("PRAGMA database_list").fetchall():
            if name not in ("main", "temp"):
                quoted = name.replace('"', '""')
                connection.execute(f'DETACH "{quoted}"')

    def _log_ahead(self, connection: sqlite3.Connection) -> None:
        """Have connections read while one writes; another process that does the same is waited for."""
        until = time.monotonic() + self._busy_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return


_of_parents: list[Engine] = []


async def _close(engine: Engine, wait_s: float) -> None:
    until = engine.loop.time() + wait_s
    try:
        while engine.is_busy and engine.loop.time() < until:
            await asyncio.sleep(_CLOSE_LOOK_S)
        engine.interrupt_all()
        while not engine.end():
            await asyncio.sleep(_CLOSE_LOOK_S)
    except asyncio.CancelledError:
        # The loop ends and cancels all tasks: the threads end by themselves.
        engine.interrupt_all()
        engine.release()
        raise


def _settings_of(connection: Session) -> dict[str, object]:
    """The settings that can be restored; those that this SQLite does not have are left out."""
    rows = {name: connection.execute(f"PRAGMA {name}").fetchone() for name in _RESTORABLE}
    return {name: row[0] for name, row in rows.items() if row is not None}


def _is_in_memory(path: str) -> bool:
    """Whether each connection would have a database of its own, which ends with it."""
    if not path.startswith("file:"):
        return path in ("", _MEMORY)
    name, _, query = path[len("file:") :].partition("#")[0].partition("?")
    options = query.split("&")
    return name in ("", _MEMORY) or "mode=memory" in options or "vfs=memdb" in options


def _checked_pragmas(pragmas: Mapping[str, int | str]) -> dict[str, int | str]:
    for name, value in pragmas.items():
        word = str(value).removeprefix("-").removeprefix("+")
        if not name.isidentifier() or not word.replace("_", "").isalnum():
            raise ConfigError(
                f"pragmas are names with numbers or words, such as {{'cache_size': -64000}}; "
                f"got {name!r}: {value!r}"
            )
    return dict(pragmas)


# Settings that are read from a new connection, to be what they were behind a block or a script.
_RESTORABLE = (
    "query_only", "analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cell_size_check",
    "checkpoint_fullfsync", "count_changes", "defer_foreign_keys", "empty_result_callbacks", "foreign_keys",
    "full_column_names", "fullfsync", "ignore_check_constraints", "journal_mode", "journal_size_limit",
    "legacy_alter_table", "locking_mode", "max_page_count", "read_uncommitted", "recursive_triggers",
    "reverse_unordered_selects", "secure_delete", "short_column_names", "synchronous", "temp_store",
    "threads", "trusted_schema", "wal_autocheckpoint", "writable_schema",
)  # fmt: skip
# It cannot be read; the value of a new connection.
_UNREADABLE = {"case_sensitive_like": "OFF"}
