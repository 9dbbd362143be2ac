"""Transactions: a connection of their own, and savepoints within them."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, overload

from citius.databases.commits import Commits, call_hooks
from citius.databases.statements import METHODS, Statements
from citius.sqlite.calls import Block, ThreadCall
from citius.sqlite.cursors import Cursor
from citius.sqlite.errors import SqliteError
from citius.sqlite.methods import Methods
from citius.sqlite.sessions import SAVEPOINT_PREFIX
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from citius.databases.templates import Statement
    from citius.sqlite.engine import Engine
    from citius.sqlite.pool import Pool
    from citius.sqlite.sessions import Session
    from citius.sqlite.threads import Lease

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


@known_options
class Transaction(Statements, Block, Commits):
    """``async with pool.transaction() as tx``: committed at the end, rolled back if an exception leaves it.

    It has the methods of a pool. ``tx.transaction()`` is a savepoint. A statement that fails changes nothing,
    and the transaction goes on without it.
    """

    def __init__(self, pool: Pool, *, readonly: bool, outer: Transaction | None = None) -> None:
        self._pool, self._outer, self._is_readonly = pool, outer, readonly
        self._engine: Engine | None = None
        self._lease: Lease | None = None
        self._methods: Methods | None = None
        self._inner: Transaction | None = None
        name = f"{SAVEPOINT_PREFIX}{next(_numbers)}"
        begin = "BEGIN" if readonly else "BEGIN IMMEDIATE"
        self._begin = begin if outer is None else f"SAVEPOINT {name}"
        self._commit = "COMMIT" if outer is None else f"RELEASE {name}"
        self._rollback = f"ROLLBACK TO {name}", f"RELEASE {name}"

    async def __aenter__(self) -> Self:
        if self._lease is not None:
            raise RuntimeError("a transaction is entered once")
        self._engine = engine = self._pool.engine
        if self._outer is None:
            queue = engine.reads if self._is_readonly else engine.writes
            lease: Lease = await ThreadCall(engine, queue, None, _give_back)
        else:
            lease = self._outer._enter_inner(self)
        self._lease = lease
        self._methods = methods = Methods(engine, lease.queue, lease.queue, lease, self)
        try:
            await self._control(_execute(self._begin), self._begin)
        except BaseException:
            self._undo()
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
        self.is_over = True
        await self._carry_out(self._end(error), is_commit=error is None and self._outer is None)

    async def _end(self, error: BaseException | None) -> None:
        is_done = False
        try:
            if error is None:
                await self._control(_execute(self._commit))
                is_done = True
        finally:
            if not is_done:
                self._undo()
            self._leave()
        if is_done and self._hooks and (hooks := self.take_hooks(self._outer)):
            await call_hooks(hooks)

    def transaction(self) -> Transaction:
        """A savepoint: what is done within it can be undone by itself; one at a time."""
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

    def do(self, work: Any, text: str = "") -> ThreadCall:
        """A call of anything that is done with the transaction's connection, in its thread.

        Args:
            work: Called with the connection.
            text: The statement, if it is measured.
        """
        assert self._lease is not None
        assert self._engine is not None
        return ThreadCall(
            self._engine, self._lease.queue, work, text=text, lease=self._lease, block=self
        )

    def _control(self, work: Any, text: str = "") -> ThreadCall:
        """A call that begins or ends the block."""
        call = self.do(work, text)
        call.block = None
        return call

    def _undo(self) -> None:
        """Undo a savepoint, also one whose beginning or end was not waited for.

        The outermost one is rolled back as its connection is given back.
        """
        if self._outer is not None:
            with contextlib.suppress(SqliteError):  # the pool is closed
                self._control(_execute(*self._rollback)).start()

    def _check_open(self) -> None:
        self._live()

    def not_open(self) -> BaseException:
        """What a method raises before the block and after it."""
        return RuntimeError(
            "the transaction is not open: use `async with pool.transaction() as tx`"
        )

    def _live(self) -> tuple[Lease, Methods]:
        if self._lease is None or self._methods is None or self.is_over:
            raise self.not_open()
        return self._lease, self._methods

    def _enter_inner(self, inner: Transaction) -> Lease:
        """Note an open savepoint: to undo one undoes all that began later, of whichever task.

        Raises:
            RuntimeError: Another one is open.
        """
        lease, _ = self._live()
        if self._inner is not None:
            raise RuntimeError(
                "a savepoint of this transaction is open already: begin another one within it, or behind it"
            )
        self._inner = inner
        return lease

    def _leave(self) -> None:
        self.is_over = True
        for name in METHODS:
            self.__dict__.pop(name, None)
        if self._outer is not None:
            self._outer._inner = None
        elif self._lease is not None:
            self._lease.give_back()


def _give_back(lease: Lease) -> None:
    lease.give_back()


def _execute(*statements: str) -> Any:
    def work(connection: Session) -> None:
        connection.control(*statements)

    return work


# A name for each savepoint of the process.
_numbers = itertools.count(1)
