"""The methods of an open pool or transaction: each makes a call of what is done with a connection."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from citius.sqlite.calls import ThreadCall
from citius.sqlite.rows import encode_rows, json_of, make_rows
from citius.sqlite.sessions import SAVEPOINT_PREFIX, User, refusal
from citius.sqlite.texts import Change, change_of, may_only_read, parameters, prepare

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterable
    from queue import SimpleQueue

    from citius.sqlite.calls import Block, Work
    from citius.sqlite.engine import Engine
    from citius.sqlite.sessions import Session
    from citius.sqlite.threads import Lease

    Queue = SimpleQueue[ThreadCall | None]


class Methods:
    """Statements by connections that read ``reads`` or ``writes``; of a transaction by its ``lease``."""

    def __init__(
        self,
        engine: Engine,
        reads: Queue,
        writes: Queue,
        lease: Lease | None = None,
        block: Block | None = None,
    ) -> None:
        self._engine, self._reads, self._writes = engine, reads, writes
        self._lease, self._block = lease, block

    def fetch(self, sql: Any, /, *arguments: object, as_: Any = None) -> ThreadCall:
        """All rows."""
        return self._query(sql, arguments, partial(_all, as_))

    def fetch_one(self, sql: Any, /, *arguments: object, as_: Any = None) -> ThreadCall:
        """The first row, or ``None``."""
        return self._query(sql, arguments, partial(_first, as_))

    def fetch_value(self, sql: Any, /, *arguments: object) -> ThreadCall:
        """The first column of the first row, or ``None``."""
        return self._query(sql, arguments, _value)

    def fetch_json(self, sql: Any, /, *arguments: object, items: str | None = None) -> ThreadCall:
        """All rows as JSON."""
        return self._query(sql, arguments, partial(_json, items))

    def fetch_json_one(self, sql: Any, /, *arguments: object) -> ThreadCall:
        """The first row as JSON, or ``null``."""
        return self._query(sql, arguments, _json_one)

    def fetch_many(self, sql: Any, rows: Iterable[Any], /, as_: Any = None) -> ThreadCall:
        """The rows of one execution for each of ``rows``."""
        text, _ = prepare(sql, ())
        values = [parameters(row) for row in rows]
        return self._call(text, partial(_each, text, values, as_), batch=len(values))

    def execute(self, sql: Any, /, *arguments: object) -> ThreadCall:
        """Execute; the number of rows changed."""
        text, values = prepare(sql, arguments)
        return self._made(self._writes, partial(_execute, text, values), text)

    def execute_each(self, sql: Any, rows: Iterable[Any]) -> ThreadCall:
        """Execute with each row of parameters, within a transaction; the number of rows changed."""
        text, _ = prepare(sql, ())
        return self._made(self._writes, partial(_execute_each, text, map(parameters, rows)), text)

    def _query(
        self,
        sql: Any,
        arguments: tuple[object, ...],
        make: Callable[[sqlite3.Cursor], Any],
    ) -> ThreadCall:
        text, values = prepare(sql, arguments)
        return self._call(text, partial(_query, text, values, make))

    def _call(self, text: str, work: Work, batch: int = 1) -> ThreadCall:
        queue = self._reads if may_only_read(text) else self._writes
        return self._made(queue, work, text, batch)

    def _made(self, queue: Queue, work: Work, text: str, batch: int = 1) -> ThreadCall:
        change = change_of(text)
        if change is not None:
            refuse(change, User.REQUEST if self._lease is None else User.BLOCK)
        return ThreadCall(
            self._engine, queue, work, text=text, batch=batch, lease=self._lease, block=self._block,
        )  # fmt: skip


def refuse(change: Change, user: User) -> None:
    """Refuse what changes a connection that others use, and what ends the transaction of a block.

    Raises:
        StatementRefused: It does; the message says what to write.
    """
    if (error := refusal(change, user)) is not None:
        raise error


def script(sql: str) -> Work:
    """Several statements without parameters."""

    def work(connection: sqlite3.Connection) -> None:
        connection.executescript(sql)

    return work


# --- in the thread of a connection ---


def _query(
    text: str,
    values: tuple[object, ...],
    make: Callable[[sqlite3.Cursor], Any],
    connection: sqlite3.Connection,
) -> Any:
    cursor = connection.execute(text, values)
    try:
        return make(cursor)
    finally:
        # A statement that is not read to its end would hold its transaction open.
        cursor.close()


def _all(as_: Any, cursor: sqlite3.Cursor) -> list[Any]:
    return make_rows(cursor, cursor.fetchall(), as_)


def _first(as_: Any, cursor: sqlite3.Cursor) -> Any:
    row = cursor.fetchone()
    return None if row is None else make_rows(cursor, [row], as_)[0]


def _value(cursor: sqlite3.Cursor) -> Any:
    row = cursor.fetchone()
    return None if row is None else row[0]


def _json(items: str | None, cursor: sqlite3.Cursor) -> bytes:
    rows = encode_rows(cursor, cursor.fetchall())
    return json_of(rows if items is None else {items: rows, "count": len(rows)})


def _json_one(cursor: sqlite3.Cursor) -> bytes:
    row = cursor.fetchone()
    return b"null" if row is None else json_of(encode_rows(cursor, [row])[0])


def _execute(text: str, values: tuple[object, ...], connection: sqlite3.Connection) -> int:
    cursor = connection.execute(text, values)
    try:
        if cursor.description is not None:
            # With RETURNING, rows are changed as they are read.
            cursor.fetchall()
        return max(cursor.rowcount, 0)
    finally:
        cursor.close()


def _execute_each(text: str, rows: Iterable[Any], connection: Session) -> int:
    with _all_or_nothing(connection):
        return max(connection.executemany(text, rows).rowcount, 0)


def _each(text: str, rows: list[tuple[object, ...]], as_: Any, connection: Session) -> list[Any]:
    found: list[Any] = []
    with _all_or_nothing(connection):
        for values in rows:
            found += _query(text, values, partial(_all, as_), connection)
    return found


@contextlib.contextmanager
def _all_or_nothing(connection: Session) -> Generator[None]:
    """A transaction, or a savepoint in that of a block: the executions of a batch are one statement."""
    if connection.in_transaction:
        begin, commit, undo = f"SAVEPOINT {_BATCH}", f"RELEASE {_BATCH}", f"ROLLBACK TO {_BATCH}"
    else:
        begin, commit, undo = "BEGIN", "COMMIT", "ROLLBACK"
    connection.control(begin)
    try:
        yield
    except BaseException:
        # SQLite may have rolled back all of it.
        if connection.in_transaction:
            connection.control(undo)
            if connection.in_transaction:
                connection.control(commit)
        raise
    connection.control(commit)


_BATCH = f"{SAVEPOINT_PREFIX}batch"
