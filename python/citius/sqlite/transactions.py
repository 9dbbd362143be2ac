"""Transactions: a connection of their own, and savepoints within them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, overload

from citius.databases.statements import METHODS, Statements
from citius.sqlite.calls import ThreadCall
from citius.sqlite.cursors import Cursor
from citius.sqlite.errors import SqliteError
from citius.sqlite.methods import Methods

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from citius.databases.templates import Statement
    from citius.sqlite.engine import Engine
    from citius.sqlite.pool import Pool
    from citius.sqlite.threads import ConnectionThread

Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]
_ISOLATIONS: tuple[str, ...] = get_args(Isolation)
_Row = TypeVar("_Row")


def check_isolation(isolation: str | None) -> None:
    """Refuse a level of isolation that does not exist.

    Raises:
        ValueError: It does not.
    """
    if isolation is not None and isolation not in _ISOLATIONS:
        raise ValueError(f"isolation is one of {', '.join(_ISOLATIONS)}; got {isolation!r}")


class Transaction(Statements):
    """``async with pool.transaction() as tx``: committed at the end, rolled back if an exception leaves it.

    It has the methods of a pool. ``tx.transaction()`` is a savepoint. A statement that fails changes nothing,
    and the transaction goes on without it.
    """

    def __init__(self, pool: Pool, *, readonly: bool, outer: Transaction | None = None) -> None:
        self._pool, self._outer, self._is_readonly = pool, outer, readonly
        self._depth = 0 if outer is None else outer._depth + 1
        self._engine: Engine | None = None
        self._thread: ConnectionThread | None = None
        self._methods: Methods | None = None
        self._is_over = False
        name = f"citius_{self._depth}"
        begin = "BEGIN" if readonly else "BEGIN IMMEDIATE"
        self._begin = begin if outer is None else f"SAVEPOINT {name}"
        self._commit = "COMMIT" if outer is None else f"RELEASE {name}"
        self._rollback = "ROLLBACK" if outer is None else f"ROLLBACK TO {name}; RELEASE {name}"

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("a transaction is entered once")
        self._engine = engine = self._pool.engine
        if self._outer is None:
            queue = engine.reads if self._is_readonly else engine.writes
            thread: ConnectionThread = await ThreadCall(engine, queue, None, _give_back)
        else:
            thread, _ = self._outer._live()
        self._thread = thread
        self._methods = methods = Methods(engine, thread.owned, thread.owned)
        try:
            await methods.execute(self._begin)
        except BaseException:
            self._leave()
            raise
        for name in METHODS:
            setattr(self, name, getattr(methods, name))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live()
        self._is_over = True
        try:
            if error is not None:
                # The outermost one is rolled back as its connection is given back.
                if self._outer is not None:
                    self.do(_script(self._rollback)).start()
            else:
                await self.do(_end(self._commit))
        finally:
            self._leave()

    def transaction(self) -> Transaction:
        """A savepoint: what is done within it can be undone by itself."""
        return Transaction(self._pool, readonly=self._is_readonly, outer=self)

    async def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Execute a statement with each row of parameters; the number of rows changed."""
        _, methods = self._live()
        changed: int = await methods.execute_each(sql, rows)
        return changed

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
        """Rows in portions: ``async with tx.cursor(sql, …) as rows: async for row in rows``."""
        return Cursor(self, (sql, *arguments), as_=as_, rows_max=rows_max, is_own=False)

    def do(self, work: Any) -> ThreadCall:
        """A call of anything that is done with the transaction's connection, in its thread."""
        assert self._thread is not None
        assert self._engine is not None
        return ThreadCall(self._engine, self._thread.owned, work)

    def not_open(self) -> BaseException:
        """What a method raises before the block and after it."""
        return RuntimeError(
            "the transaction is not open: use `async with pool.transaction() as tx`"
        )

    def _live(self) -> tuple[ConnectionThread, Methods]:
        if self._thread is None or self._methods is None or self._is_over:
            raise self.not_open()
        return self._thread, self._methods

    def _leave(self) -> None:
        self._is_over = True
        for name in METHODS:
            self.__dict__.pop(name, None)
        if self._outer is None and self._thread is not None:
            _give_back(self._thread)


def _give_back(thread: ConnectionThread) -> None:
    thread.owned.put(None)


def _script(sql: str) -> Any:
    def work(connection: sqlite3.Connection) -> None:
        for statement in sql.split("; "):
            connection.execute(statement)

    return work


def _end(commit: str) -> Any:
    def work(connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            raise SqliteError(
                "SQLite has rolled the transaction back, after a statement that failed for want of memory or "
                "disk, or was interrupted"
            )
        connection.execute(commit)

    return work
