"""PostgreSQL in the event loop that serves: no other thread, one write per turn, rows within a turn.

    from citius import App, pg

    pool = pg.Pool("postgresql://app@localhost/shop", size=8)
    app = App(lifespan=pool.lifespan)

    @app.get("/items/{id}")
    async def item(id: int) -> dict[str, object] | None:
        return await pool.fetch_one("SELECT id, name FROM item WHERE id = $1", id, as_=dict)

On any other asyncio loop it works too, by callbacks of that loop. ``docs/guides/databases.md`` says more.
"""

from __future__ import annotations

from citius.databases.statements import Call, Statements, gather
from citius.pg.copying import CopyOut
from citius.pg.cursors import Cursor
from citius.pg.errors import (
    CheckViolation,
    DeadlockDetected,
    ForeignKeyViolation,
    IntegrityError,
    InvalidPassword,
    NotNullViolation,
    PoolClosed,
    PoolExhausted,
    PostgresError,
    ProtocolError,
    QueryCanceled,
    SerializationFailure,
    ServerError,
    SessionLost,
    StatementLost,
    StatementRefused,
    SyntaxOrAccessError,
    TlsFailed,
    TransactionOver,
    UniqueViolation,
)
from citius.pg.listening import Listener, Notification
from citius.pg.pool import Pool
from citius.pg.ranges import Range
from citius.pg.transactions import Transaction
from citius.pg.types import Codec

__all__ = [
    "Call",
    "CheckViolation",
    "Codec",
    "CopyOut",
    "Cursor",
    "DeadlockDetected",
    "ForeignKeyViolation",
    "IntegrityError",
    "InvalidPassword",
    "Listener",
    "NotNullViolation",
    "Notification",
    "Pool",
    "PoolClosed",
    "PoolExhausted",
    "PostgresError",
    "ProtocolError",
    "QueryCanceled",
    "Range",
    "SerializationFailure",
    "ServerError",
    "SessionLost",
    "StatementLost",
    "StatementRefused",
    "Statements",
    "SyntaxOrAccessError",
    "TlsFailed",
    "Transaction",
    "TransactionOver",
    "UniqueViolation",
    "gather",
]
