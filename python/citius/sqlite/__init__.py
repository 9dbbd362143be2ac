"""SQLite with the methods of ``citius.pg``: for tests, examples and services that need no server.

    from citius import App, sqlite

    pool = sqlite.Pool("shop.db")
    app = App(lifespan=pool.lifespan)

    @app.get("/items/{id}")
    async def item(id: int) -> dict[str, object] | None:
        return await pool.fetch_one("SELECT id, name FROM item WHERE id = $1", id, as_=dict)

One connection writes and several read, each in a thread of its own, so that a slow statement does not
delay the event loop. ``docs/guides/databases.md`` says more.
"""

from __future__ import annotations

from citius.databases.statements import Call, Statements, gather
from citius.sqlite.cursors import Cursor
from citius.sqlite.errors import (
    CheckViolation,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseFull,
    ForeignKeyViolation,
    IntegrityError,
    NotNullViolation,
    PoolClosed,
    PoolExhausted,
    RowMismatch,
    SqliteError,
    StatementError,
    StatementInterrupted,
    StatementRefused,
    SyntaxOrAccessError,
    TransactionOver,
    UniqueViolation,
)
from citius.sqlite.pool import Pool
from citius.sqlite.transactions import Transaction

__all__ = [
    "Call",
    "CheckViolation",
    "Cursor",
    "DatabaseBusy",
    "DatabaseCorrupt",
    "DatabaseFull",
    "ForeignKeyViolation",
    "IntegrityError",
    "NotNullViolation",
    "Pool",
    "PoolClosed",
    "PoolExhausted",
    "RowMismatch",
    "SqliteError",
    "StatementError",
    "StatementInterrupted",
    "StatementRefused",
    "Statements",
    "SyntaxOrAccessError",
    "Transaction",
    "TransactionOver",
    "UniqueViolation",
    "gather",
]
