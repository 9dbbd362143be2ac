"""Transactions: a session of their own, and savepoints within them."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, overload

from citius._core import PgBlock
from citius.databases.commits import Commits, call_hooks
from citius.databases.statements import METHODS, Statements
from citius.errors import ConfigError
from citius.pg.copying import CopyOut, copy_in
from citius.pg.cursors import Cursor
from citius.pg.errors import PostgresError, block_over, refused
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from citius._core import PgConnection, PgPool
    from citius.databases.templates import Statement
    from citius.pg.copying import CopySource
    from citius.pg.pool import Pool
    from citius.pg.session import Session

Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]
_ISOLATIONS: tuple[str, ...] = get_args(Isolation)
FAILED = 2
"""The status of a session whose transaction has failed."""
# Rows of `execute_many` in one request.
_CHUNK = 500
_ROWS = tuple, list, str, bytes
_Row = TypeVar("_Row")


def refuse_reset_behind_pooler(reset: bool, *, is_pooled: bool) -> None:
    """A pool whose server process changes from one transaction to the next cannot reset its sessions.

    Raises:
        ConfigError: It is to.
    """
    if reset and is_pooled:
        raise ConfigError(
            "reset=True with named_statements=False, or behind a pooler in transaction mode: a reset may "
            "come to another server process; leave it out, or have a pool for the server's own address"
        )


@known_options
class Transaction(Statements, Commits):
    """``async with pool.transaction() as tx``: committed at the end, rolled back if an exception leaves it.

    It has the methods of a pool. ``tx.transaction()`` is a savepoint.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
        reset: bool = False,
        outer: Transaction | None = None,
    ) -> None:
        if isolation is not None and isolation not in _ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(_ISOLATIONS)}; got {isolation!r}")
        if reset and (not pool.has_names or (pool.pooler is not None and pool.pooler.is_found)):
            raise refused(("pooled", False))
        self._pool = pool
        self._outer = outer
        self._session: Session | None = None
        self._block: PgBlock | None = None
        self._inner: Transaction | None = None
        self._is_over = False
        self._resets = reset
        begin = "BEGIN"
        if isolation is not None:
            begin += f" ISOLATION LEVEL {isolation.upper()}"
        if readonly:
            begin += " READ ONLY"
        if deferrable:
            begin += " DEFERRABLE"
        name = f"citius_{next(_numbers)}"
        self._begin = begin if outer is None else f"SAVEPOINT {name}"
        self._commit = "COMMIT" if outer is None else f"RELEASE SAVEPOINT {name}"
        self._rollback = f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}"

    async def __aenter__(self) -> Self:
        if self._session is not None:
            raise RuntimeError("a transaction is entered once")
        if self._outer is None:
            session = await self._pool.acquire()
        else:
            session = self._outer._enter_inner(self)
        self._session = session
        if self._resets:
            session.core.set_changed()
        self._block = block = PgBlock(session.core)
        core = self._pool.core
        for name in METHODS:
            setattr(self, name, functools.partial(getattr(core, name), session=block))
        try:
            await self._script(self._begin)
        except BaseException:
            # BEGIN may be under way all the same.
            self._leave(is_clean=False)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_over and error is not None:
            return  # the block around it has ended, and has decided about it
        self.check_block()
        session = self.live_session()
        # Before it is committed: a statement behind the COMMIT would be a transaction of its own.
        self._end_block()
        is_commit = error is None and self._outer is None
        await self._carry_out(self._end(session, error), is_commit=is_commit)

    async def _end(self, session: Session, error: BaseException | None) -> None:
        is_clean = False
        try:
            if session.is_closed:
                if error is None:
                    await self._script(self._commit)  # raises
            elif error is None:
                if session.core.load:
                    # The status is that of what has ended: this ends after all that has been started.
                    await self._script("")
                if session.core.status == FAILED:
                    raise PostgresError(
                        "a statement of the transaction has failed, so it was rolled back, although no "
                        "exception has left its block"
                    )
                if self._outer is None:
                    await self._script(self._commit)
                else:
                    # Not waited for: a caller that is cancelled meanwhile would take for undone what is kept.
                    self._pool.core.script(self._commit, session.core).start()
                is_clean = True
        finally:
            if not (is_clean or self._outer is None or session.is_closed):
                # Not waited for: what comes next on this session comes after it. The outermost one is rolled
                # back as its session is given back.
                session.cut_copies()
                self._pool.core.script(self._rollback, session.core).start()
            self._leave(is_clean)
        if is_clean and self._hooks and (hooks := self.take_hooks(self._outer)):
            await call_hooks(hooks)

    def transaction(self) -> Transaction:
        """A savepoint: what is done within it can be undone by itself; one at a time."""
        return Transaction(self._pool, outer=self)

    @property
    def innermost(self) -> Transaction:
        """The savepoint that was begun last and is open; the transaction itself without one."""
        return self if self._inner is None else self._inner.innermost

    async def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Execute a statement with each row of parameters; the number of rows changed."""
        core, session = self.place()[0], self._block
        assert session is not None
        changed, chunk = 0, list[Any]()
        for row in rows:
            # Text is no row, although it is a sequence: the extension refuses it.
            chunk.append(row if isinstance(row, _ROWS) else tuple(row))
            if len(chunk) == _CHUNK:
                changed += await core.execute_each(sql, chunk, session)
                chunk.clear()
        return changed + await core.execute_each(sql, chunk, session) if chunk else changed

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

    def copy_out(self, sql: str) -> CopyOut:
        """Data of ``COPY … TO STDOUT``: ``async with tx.copy_out(sql) as chunks``."""
        return CopyOut(self._pool, sql, self)

    async def copy_in(self, sql: str, source: CopySource) -> int:
        """Do ``COPY … FROM STDIN`` with bytes or rows; the number of rows."""
        return await copy_in(self._pool, self.live_session(), sql, source)

    @property
    def is_over(self) -> bool:
        """Whether its end has begun."""
        return self._is_over

    def check_block(self) -> None:
        """Refuse what was made in the block behind it: another one may have the session.

        Raises:
            TransactionOver: The block has ended.
        """
        if self._is_over:
            raise block_over(None)

    def place(self) -> tuple[PgPool, PgConnection]:
        """Where its statements are executed."""
        return self._pool.core, self.live_session().core

    def not_open(self) -> BaseException:
        """What a method raises before the block and after it."""
        return RuntimeError(
            "the transaction is not open: use `async with pool.transaction() as tx`"
        )

    def _check_open(self) -> None:
        self.live_session()

    def live_session(self) -> Session:
        """The session of its open block.

        Raises:
            RuntimeError: It is not open.
        """
        if self._session is None or self._is_over:
            raise self.not_open()
        return self._session

    def _enter_inner(self, inner: Transaction) -> Session:
        """Note an open savepoint: to undo one undoes all that began later, of whichever task.

        Raises:
            RuntimeError: Another one is open.
        """
        session = self.live_session()
        if self._inner is not None:
            raise RuntimeError(
                "a savepoint of this transaction is open already: begin another one within it, or behind it"
            )
        self._inner = inner
        return session

    async def _script(self, sql: str) -> None:
        assert self._session is not None
        await self._pool.core.script(sql, self._session.core)

    def _end_block(self) -> None:
        """Take no more statements; nor do savepoints that are open, whose session another block gets next."""
        self._is_over = True
        for name in METHODS:
            self.__dict__.pop(name, None)
        if self._block is not None:
            self._block.end()
        if self._inner is not None:
            self._inner._end_block()

    def _leave(self, is_clean: bool) -> None:
        self._end_block()
        if self._outer is not None:
            if self._outer._inner is self:
                self._outer._inner = None
        elif self._session is not None:
            give_back = self._pool.release if is_clean else self._pool.roll_back
            give_back(self._session)


# A name for each savepoint of the process.
_numbers = itertools.count(1)
