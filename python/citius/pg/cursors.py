"""Cursors: rows of a statement in portions, for results that are larger than memory should be."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from citius._core import PgPortal
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from types import TracebackType

    from citius._core import PgCall
    from citius.pg.transactions import Transaction

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
        self._arguments, self._as, self._rows_max = arguments, as_, rows_max
        self._portal: PgPortal | None = None
        self._next: PgCall | None = None
        self._rows: deque[_Row] = deque()

    async def __aenter__(self) -> Self:
        if self._portal is not None:
            raise RuntimeError("a cursor is entered once")
        if self._is_own:
            await self._transaction.__aenter__()
        self._transaction.check_block()
        core, session = self._transaction.place()
        self._portal = portal = PgPortal(core, session, self._rows_max, self._as)
        try:
            self._start(portal.open(*self._arguments))
        except BaseException as error:
            if self._is_own:
                await self._transaction.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        call, self._next = self._next, None
        if self._portal is not None:
            self._portal.close()
        if call is not None and error is not None and self._is_own:
            # The transaction is rolled back in any case.
            call.close()
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
        """The next portion of at most ``rows_max`` rows; an empty list at the end.

        Raises:
            TransactionOver: The block of its transaction has ended.
        """
        if self._portal is None:
            raise RuntimeError("use `async with pool.cursor(…) as rows`")
        if self._rows:
            rows = list(self._rows)
            self._rows.clear()
            return rows
        call, self._next = self._next, None
        if call is None:
            return []
        self._transaction.check_block()
        rows: Any = await call
        if not self._portal.is_done:
            self._transaction.check_block()
            self._start(self._portal.next())
        return rows

    def _start(self, call: PgCall) -> None:
        call.start()
        self._next = call
