"""``pool.sync`` of ``citius.pg``: what PostgreSQL alone has, on ``citius.databases.sync``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.databases import sync
from citius.databases.sync import Block, SyncCursor, open_pool, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citius.pg.copying import CopySource
    from citius.pg.transactions import Isolation

__all__ = ["SyncCopyOut", "SyncCursor", "SyncPool", "SyncStatements", "SyncTransaction"]


class SyncStatements(sync.SyncStatements):
    """Statements, and COPY."""

    def copy_in(self, sql: str, source: CopySource) -> int:
        """Do ``COPY … FROM STDIN`` with bytes or rows; the number of rows.

        An iterator is asked for them on the event loop: it must not wait.
        """
        return self._call("copy_in", sql, source)

    def copy_out(self, sql: str) -> SyncCopyOut:
        """Data of ``COPY … TO STDOUT``: ``with pool.sync.copy_out(sql) as chunks``."""
        open_pool(self._pool)
        return SyncCopyOut(self._pool, self._owner.copy_out(sql))


class SyncTransaction(SyncStatements, sync.SyncTransaction):
    """A transaction, or a savepoint in one."""


class SyncPool(SyncStatements, sync.SyncPool):
    """What ``pool.sync`` is."""

    def transaction(
        self,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
        reset: bool = False,
    ) -> SyncTransaction:
        """``with pool.sync.transaction() as tx``: committed at the end, rolled back after an exception."""
        open_pool(self._pool)
        made = self._owner.transaction(
            isolation=isolation, readonly=readonly, deferrable=deferrable, reset=reset
        )
        return SyncTransaction(self._pool, made)


class SyncCopyOut(Block):
    """Data of a COPY: ``with … as chunks: for chunk in chunks``."""

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := wait_for(self._pool, self._next)) is not None:
            yield chunk

    async def _next(self) -> bytes | None:
        return await anext(self._block, None)
