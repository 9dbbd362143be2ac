"""The face of PEP 249 around one session of ``citius.pg``, for SQLAlchemy's greenlets.

A statement waits once: ``BEGIN`` leaves in the same write as the first statement of a transaction, and
``ROLLBACK`` is not waited for, because whatever the session does next comes after it. Parameters travel
beside the statement (``$1``, ``$2``, …). Nothing here reads SQL.

What statements change of a session (settings, role, temporary tables, advisory locks) is undone when it goes
back to SQLAlchemy's pool, so that no other request has it.

A session that ends by itself is known to be dead at once: SQLAlchemy's entry for it is invalidated, so that
no other request gets it, and the one that has it is told at its next step, the end of its transaction too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet, ref

from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.util.concurrency import await_

from citius._core import PgPool, PgPortal, PgTypes
from citius.observability.clients import measured
from citius.pg import dsn as dsns
from citius.pg.connecting import cancel, first_use, open_session, refuse_other_texts
from citius.pg.errors import PostgresError, SessionLost
from citius.pg.poolers import Pooler
from citius.pg.sqlalchemy import errors
from citius.pg.sqlalchemy.watching import Watches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy.pool import ConnectionPoolEntry

    from citius._core import PgCall
    from citius.pg.session import Session

    Parameters = Sequence[object]

_IDLE, _FAILED = 0, 2
# json and jsonb. What has one of SQLAlchemy's types is encoded by it, and comes as bytes.
_JSON_TYPES = 114, 3802
_ROWS_MAX = 500
# Executions of `executemany` in one request.
_CHUNK = 1000


class DBAPI:
    """The module that PEP 249 describes, as an object."""

    paramstyle = "numeric_dollar"
    apilevel = "2.0"
    threadsafety = 0

    Error = errors.Error
    Warning = errors.Warning
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    STRING, NUMBER, DATETIME = "STRING", "NUMBER", "DATETIME"

    def __init__(self) -> None:
        self.sessions: WeakSet[Session] = WeakSet()
        """Those that are open, for metrics."""
        self.types = PgTypes()
        for oid in _JSON_TYPES:
            self.types.set_codec(oid, None, _json_of, False)
        self.watches = Watches(self.types)
        self.poolers: dict[tuple[str, ...], Pooler] = {}
        """What is known of poolers, by the servers of a DSN."""
        self.schema_version = 0
        """How often tables or types were changed: each makes prepared statements of all sessions doubtful."""

    def connect(self, **options: object) -> Connection:
        """A session, connected by the current greenlet.

        Args:
            options: Parameters of a DSN (libpq's); ``named_statements=False`` behind a pooler that changes
                the server process; ``keep_changes=True`` leaves what was changed of a session to the next
                one that has it.
        """
        is_named = _is_true(options.pop("named_statements", True))
        keeps_changes = _is_true(options.pop("keep_changes", False))
        try:
            return await_(_connect(self, pairs(options), is_named, keeps_changes))
        except errors.TRANSLATED as error:
            raise errors.translated(error) from error

    @staticmethod
    def Binary(value: bytes) -> bytes:  # noqa: N802 - the name that PEP 249 gives it
        """Return ``value``: bytes need no wrapper (PEP 249)."""
        return value


def pairs(options: Mapping[str, object]) -> str:
    """A DSN of ``key='value'`` pairs."""
    quoted = {
        key: str(value).replace("\\", "\\\\").replace("'", "\\'")
        for key, value in options.items()
        if value is not None
    }
    return " ".join(f"{key}='{value}'" for key, value in quoted.items())


def _is_true(value: object) -> bool:
    return str(value).lower() not in ("0", "false", "no", "off")


def _json_of(value: object) -> object:
    """The JSON that a parameter is: of a statement that is a text, which is written for any driver."""
    return value.encode() if isinstance(value, str) else value


def _ignore(_kind: str, _value: object) -> None:
    """What a pool of sessions would be told. Here a session that is abandoned is terminated by SQLAlchemy."""


async def _connect(dbapi: DBAPI, dsn: str, is_named: bool, keeps_changes: bool) -> Connection:
    def connections() -> tuple[int, int, int]:
        idle = sum(session.is_idle for session in dbapi.sessions)
        return len(dbapi.sessions) - idle, idle, 0

    def lost(session: Session) -> None:
        if session not in dbapi.sessions:
            return
        dbapi.sessions.discard(session)
        if metrics is not None:
            metrics.count("lost")
        connection.invalidate()

    targets = dsns.parse_all(dsn)
    metrics = measured(targets[0].client(), connections)
    core = PgPool(asyncio.get_running_loop(), _ignore, 1, 1, is_named, dbapi.types, metrics)
    pooler = dbapi.poolers.setdefault(tuple(map(str, targets)), Pooler(dbapi.types))
    try:
        session = await open_session(core, dbapi.types, targets, lost)
    except PostgresError:
        if metrics is not None:
            metrics.count("connect_failed")
        raise
    if keeps_changes:
        session.judges_texts = False
    else:
        refuse_other_texts(session)
        await _look_for_pooler(pooler, core, session)
    if metrics is not None:
        metrics.count("opened")
    connection = Connection(dbapi, core, session, None if keeps_changes else pooler)
    dbapi.sessions.add(session)
    dbapi.watches.watch(session, targets)
    return connection


async def _look_for_pooler(pooler: Pooler, core: PgPool, session: Session) -> None:
    silence = SessionLost(f"{session.target}: no response to the first statement")
    async with first_use(session, silence):
        if await pooler.look(session):
            core.set_pooled()


class Connection(AdaptedConnection):
    """A session that SQLAlchemy has checked out, and its transaction."""

    __slots__ = (
        "_begin",
        "_entry",
        "_has_changed_schema",
        "_is_begun",
        "_is_set_up",
        "_pooler",
        "_schema_version",
        "autocommit",
        "core",
        "dbapi",
        "deferrable",
        "isolation_level",
        "readonly",
        "session",
    )

    def __init__(self, dbapi: DBAPI, core: PgPool, session: Session, pooler: Pooler | None) -> None:
        self.dbapi, self.core, self.session = dbapi, core, session
        self._pooler = pooler
        """What may be known of one; ``None``: what was changed of a session is left."""
        self._is_set_up: bool | None = None  # not known before it is first had
        self._connection: Any = session
        self.isolation_level: str | None = None
        """One that ``BEGIN`` names; the server's default without."""
        self.autocommit = False
        """Whether each statement is a transaction of its own."""
        self.readonly = self.deferrable = False
        self._is_begun = self._has_changed_schema = False
        self._begin: PgCall | None = None
        self._schema_version = dbapi.schema_version
        self._entry: ref[ConnectionPoolEntry] | None = None

    def belong_to(self, entry: ConnectionPoolEntry) -> None:
        """Note the entry of SQLAlchemy's pool that this connection is in."""
        self._entry = ref(entry)

    def take(self) -> None:
        """Note, when it is first had, whether the application has changed it where it was connected."""
        if self._pooler is not None and self._pooler.is_found:
            # Maybe by another connection that was made at the same time.
            self.core.set_pooled()
        if self._is_set_up is None:
            self._is_set_up = self.session.core.take_changes() is not None

    def give_back(self, entry: ConnectionPoolEntry, commits: bool) -> None:
        """End the transaction, and undo what was changed of the session; where that cannot be, close it."""
        if self.session.is_closed:
            return
        if commits:
            self.commit()
        else:
            self.rollback()
        if self._pooler is None or (changes := self.session.core.take_changes()) is None:
            return
        if changes and not self._is_set_up:
            self.wait(self._script(changes))
        else:
            # A reset would undo what the application has set up, too: another one is connected.
            entry.invalidate()

    def invalidate(self) -> None:
        """Have SQLAlchemy connect anew for the next request that gets the entry."""
        entry: Any = self._entry() if self._entry is not None else None
        if entry is not None and entry.dbapi_connection is self:
            entry.invalidate(soft=True)

    # --- what SQLAlchemy calls ---

    def cursor(self, server_side: bool = False) -> Cursor:
        """A cursor, whose rows stay on the server until they are fetched if it is asked for."""
        # A portal lives as long as a transaction.
        return ServerCursor(self) if server_side and not self.autocommit else Cursor(self)

    def commit(self) -> None:
        """End the transaction, and wait until the server has."""
        core = self.session.core
        if self._is_in_transaction():
            self._is_begun = False
            if core.load:
                # The status is that of what has ended: this ends after all that has been started.
                self.wait(self._script(""))
            is_failed = core.status == _FAILED
            # The server takes the COMMIT of a failed transaction for a ROLLBACK.
            self.wait(self._script("COMMIT"))
            # What others have looked up meanwhile is as it was before.
            self._end_schema_change()
            if is_failed:
                raise errors.InternalError(
                    "a statement of the transaction has failed, so COMMIT has rolled it back: roll it back, "
                    "or do what may fail within begin_nested()"
                )

    def rollback(self) -> None:
        """End the transaction; whatever comes next comes after that."""
        # What this session has looked up is undone.
        self._end_schema_change()
        if self._is_in_transaction():
            self._is_begun = False
            try:
                self._script("ROLLBACK").start()
            except errors.TRANSLATED as error:  # the session has ended: SQLAlchemy drops it
                self.fail(error)

    def execute_alone(self, sql: str) -> None:
        """Execute what cannot be within a transaction."""
        self.rollback()
        self.wait(self._script(sql))

    def close(self) -> None:
        """Close the session."""
        self.dbapi.sessions.discard(self.session)
        self.session.close()

    def terminate(self) -> None:
        """Close the session at once; the server is told to cancel what it does for it."""
        request = self.session.core.cancel_request() if self.session.core.load else None
        if request is not None:
            with contextlib.suppress(RuntimeError):  # without a running loop nothing can be sent
                _cancelling.add(task := asyncio.ensure_future(cancel(self.session, request)))
                task.add_done_callback(_cancelling.discard)
        self.close()

    def ping(self) -> None:
        """Ask the server for nothing, outside of a transaction if there is none.

        One that does not respond within ``connect_timeout`` has lost the session.
        """

        async def pong() -> None:
            try:
                async with asyncio.timeout(self.session.target.connect_timeout_s):
                    await self._script("")
            except TimeoutError:
                self.session.give_up("no response to a ping")
                raise SessionLost("the server does not respond") from None

        try:
            await_(pong())
        except errors.TRANSLATED as error:
            self.fail(error)

    # --- what cursors and the dialect call ---

    def follow_schema(self) -> None:
        """Forget prepared statements if tables or types have been changed, as sessions of the engine know."""
        if self._schema_version != self.dbapi.schema_version:
            self._schema_version = self.dbapi.schema_version
            self.session.core.forget_statements()

    def change_schema(self) -> None:
        """Note that a statement of this session has changed a table or a type."""
        self.dbapi.schema_version += 1
        self.dbapi.types.forget()
        self._has_changed_schema = True

    def _end_schema_change(self) -> None:
        """Note it once more at the end of the transaction that has made it."""
        if self._has_changed_schema:
            self.change_schema()
            self._has_changed_schema = False

    def begin(self) -> None:
        """Begin a transaction if there is none; it is sent with the statement that comes next."""
        if self._is_begun or self.autocommit:
            return
        sql = "BEGIN"
        if self.isolation_level is not None:
            sql += f" ISOLATION LEVEL {self.isolation_level}"
        sql += " READ ONLY" if self.readonly else ""
        sql += " DEFERRABLE" if self.deferrable else ""
        self._begin = self._script(sql)
        try:
            self._begin.start()
        except errors.TRANSLATED as error:
            self.fail(error)
        self._is_begun = True

    def wait(self, call: PgCall) -> Any:
        """The result of a call, awaited by the current greenlet."""
        begin, self._begin = self._begin, None
        try:
            result = await_(call)
            if self._is_begun and self.session.core.status == _IDLE:
                # The text was COMMIT or the like, or BEGIN has failed: what comes next begins anew.
                self._is_begun = False
                if begin is not None:
                    await_(begin)
            return result
        except errors.TRANSLATED as error:
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        """Raise the exception of PEP 249 for one of the driver's."""
        if self.session.is_closed:
            self._is_begun = False
        elif errors.is_of_old_plan(error):
            # Changed by another program: the other sessions need not fail each.
            self.dbapi.schema_version += 1
        raise errors.translated(error) from error

    def _is_in_transaction(self) -> bool:
        core = self.session.core
        # With AUTOCOMMIT it is one of the application's own text.
        return self._is_begun or not (core.load or self.session.is_closed or core.status == _IDLE)

    def _script(self, sql: str) -> PgCall:
        return self.core.script(sql, self.session.core)


_cancelling: set[asyncio.Future[None]] = set()


class Cursor:
    """A cursor whose rows are here once a statement is executed."""

    __slots__ = ("_connection", "_rows", "arraysize", "description", "rowcount")

    server_side = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.description: Sequence[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self.arraysize = 1
        self._rows: deque[tuple[Any, ...]] = deque()

    def execute(self, operation: str, parameters: Parameters | None = None) -> None:
        """Execute a statement and fetch its rows."""
        connection = self._connection
        connection.begin()
        session = connection.session.core
        call = connection.core.fetch_described(operation, tuple(parameters or ()), session)
        self.description, rows, self.rowcount = connection.wait(call)
        self._rows = deque(rows)

    def executemany(self, operation: str, rows: Sequence[Parameters]) -> None:
        """Execute a statement with each of ``rows``; rows that come back are dropped."""
        connection = self._connection
        connection.begin()
        self.description, self._rows, self.rowcount = None, deque(), -1
        for at in range(0, len(rows), _CHUNK):
            chunk = map(tuple, rows[at : at + _CHUNK])
            session = connection.session.core
            connection.wait(connection.core.fetch_many(operation, chunk, session=session))

    def setinputsizes(self, *_sizes: object) -> None:
        """Types are in the statement, as casts."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or ``None``."""
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """At most ``size`` rows."""
        rows = self._rows
        return [rows.popleft() for _ in range(min(size or self.arraysize, len(rows)))]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        rows, self._rows = list(self._rows), deque()
        return rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Forget the rows."""
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        """SQLAlchemy calls it when a result goes to asynchronous code: there is nothing to wait for."""


class ServerCursor(Cursor):
    """A cursor whose rows stay on the server until they are fetched."""

    __slots__ = ("_portal",)

    server_side = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._portal: PgPortal | None = None

    def execute(self, operation: str, parameters: Parameters | None = None) -> None:
        """Execute a statement and fetch its first rows."""
        connection = self._connection
        connection.begin()
        core, session = connection.core, connection.session.core
        self._portal = portal = PgPortal(core, session, _ROWS_MAX, is_described=True)
        try:
            call = portal.open(operation, *(parameters or ()))
        except errors.TRANSLATED as error:
            connection.fail(error)
        self.description, rows, _ = connection.wait(call)
        self._rows = deque(rows)
        self.rowcount = -1

    def executemany(self, operation: str, rows: Sequence[Parameters]) -> None:
        """Not for cursors of the server."""
        raise errors.NotSupportedError("a server-side cursor executes one statement")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or ``None``."""
        self._fetch(1)
        return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """At most ``size`` rows; all of them without a size."""
        if size is None:
            return self.fetchall()
        self._fetch(size)
        return super().fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        self._fetch(None)
        return super().fetchall()

    def close(self) -> None:
        """End it on the server too."""
        super().close()
        portal, self._portal = self._portal, None
        if portal is not None and not self._connection.session.is_closed:
            portal.close()

    def _fetch(self, wanted: int | None) -> None:
        portal = self._portal
        while portal is not None and not portal.is_done:
            if wanted is not None and len(self._rows) >= wanted:
                return
            _, rows, _ = self._connection.wait(portal.next())
            self._rows.extend(rows)
