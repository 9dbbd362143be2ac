"""``pool.sync`` of ``citius.sqlite``: what SQLite alone has, on ``citius.databases.sync``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.databases import sync
from citius.databases.sync import SyncTransaction, open_pool

if TYPE_CHECKING:
    import os

    from citius.sqlite.transactions import Isolation


class SyncPool(sync.SyncPool):
    """What ``pool.sync`` is."""

    def transaction(
        self,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
    ) -> SyncTransaction:
        """``with pool.sync.transaction() as tx``: committed at the end, rolled back after an exception."""
        open_pool(self._pool)
        made = self._owner.transaction(
            isolation=isolation, readonly=readonly, deferrable=deferrable
        )
        return SyncTransaction(self._pool, made)

    def script(self, sql: str) -> None:
        """Execute several statements without parameters."""
        self._call("script", sql)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the database into another file, while it is used."""
        self._call("backup", path)
