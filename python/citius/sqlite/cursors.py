"""Cursors: rows of a statement in portions, for results that are larger than memory should be."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from citius.sqlite.methods import refuse
from citius.sqlite.rows import make_rows
from citius.sqlite.sessions import User
from citius.sqlite.texts import change_of, prepare
from citius.unknown_options import known_options

if TYPE_CHECKING:
    import sqlite3
    from types import TracebackType

    from citius.sqlite.calls import ThreadCall
    from citius.sqlite.sessions import Session
    from citius.sqlite.transactions import Transaction

_Row = TypeVar("_Row")


@known_options
class Cursor(Generic[_Row]):
    """``async with pool.cursor(sql, *args) as rows: async for row in rows``.

    While a portion is worked on, the next one is fetched; there are never more than two.
    """

    def __init__(
        self,
        transaction: Transaction,
        arguments: tuple[object, ...],
        *,
        as_: type[_Row] | None,
        rows_max: int,
        is_own: bool,
    ) -> None:
        if rows_max < 1:
            raise ValueError(f"rows_max must be at least 1, got {rows_max}")
        self._transaction, self._is_own = transaction, is_own
        self._user = User.REQUEST if is_own else User.BLOCK
        self._text, self._values = prepare(arguments[0], arguments[1:])
        if (change := change_of(self._text)) is not None:
            refuse(change, self._user)
        self._as, self._rows_max = as_, rows_max
        self._cursor: sqlite3.Cursor | None = None
        self._next: ThreadCall | None = None
        self._is_entered = False
        self._rows: deque[_Row] = deque()

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise RuntimeError("a cursor is entered once")
        self._is_entered = True
        if self._is_own:
            await self._transaction.__aenter__()
        try:
            self._next = self._transaction.do(self._begin)
            self._next.start()
        except BaseException as error:
            if self._is_own:
                await self._transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        call, self._next = self._next, None
        if call is not None:
            call.close()
        try:
            self._transaction.do(self._close).start()
        finally:
            if self._is_own:
                await self._transaction.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Row:
        if not self._rows:
            self._rows.extend(await self.fetch())
            if not self._rows:
                raise StopAsyncIteration
        return self._rows.popleft()

    async def fetch(self) -> list[_Row]:
        """The next portion of at most ``rows_max`` rows; an empty list at the end."""
        if not self._is_entered:
            raise RuntimeError("use `async with pool.cursor(…) as rows`")
        if self._rows:
            rows = list(self._rows)
            self._rows.clear()
            return rows
        call, self._next = self._next, None
        if call is None:
            return []
        found: list[_Row] = await call
        if len(found) == self._rows_max:
            self._next = self._transaction.do(self._go_on)
            self._next.start()
        return found

    # --- in the thread of the connection ---

    def _begin(self, connection: Session) -> list[Any]:
        connection.user = self._user
        self._cursor = connection.execute(self._text, self._values)
        return self._go_on(connection)

    def _go_on(self, _connection: sqlite3.Connection) -> list[Any]:
        assert self._cursor is not None
        return make_rows(self._cursor, self._cursor.fetchmany(self._rows_max), self._as)

    def _close(self, _connection: sqlite3.Connection) -> None:
        if self._cursor is not None:
            self._cursor.close()
