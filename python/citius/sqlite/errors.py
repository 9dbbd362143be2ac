"""What can go wrong with a SQLite database.

SqliteError
├── StatementError               SQLite has refused a statement; ``code`` and ``name`` say why
│   ├── IntegrityError           SQLITE_CONSTRAINT
│   │   ├── NotNullViolation, ForeignKeyViolation, UniqueViolation, CheckViolation
│   ├── DatabaseBusy             another process writes for too long; a response with status 503
│   ├── DatabaseFull             the disk or the database is full
│   ├── DatabaseCorrupt          the file is no database, or is damaged
│   ├── StatementInterrupted     it was interrupted because its caller no longer waits
│   └── SyntaxOrAccessError      the statement cannot be executed as it is written
├── StatementRefused             the statement would change the connection that others have next
├── TransactionOver              SQLite has rolled it back, or the block of the statement has ended
├── RowMismatch                  a row does not become what ``as_`` asks for (a ValueError)
├── PoolClosed                   the pool is not open
└── PoolExhausted                the statement waited for too long; a response with status 503
"""

from __future__ import annotations

import sqlite3

from citius.errors import CitiusError, ServiceUnavailable


class SqliteError(CitiusError):
    """Root of the tree."""


class StatementError(SqliteError):
    """SQLite has refused a statement.

    Args:
        message: What SQLite says.
        code: Its extended result code; 0 for errors of the ``sqlite3`` module itself.
        name: The code's name, such as ``SQLITE_CONSTRAINT_UNIQUE``.
    """

    def __init__(self, message: str, code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.name = message, code, name

    def __str__(self) -> str:
        return f"{self.message} ({self.name})" if self.name else self.message


class IntegrityError(StatementError):
    """SQLITE_CONSTRAINT: a constraint is violated."""


class NotNullViolation(IntegrityError):
    """SQLITE_CONSTRAINT_NOTNULL."""


class ForeignKeyViolation(IntegrityError):
    """SQLITE_CONSTRAINT_FOREIGNKEY."""


class UniqueViolation(IntegrityError):
    """SQLITE_CONSTRAINT_UNIQUE, or _PRIMARYKEY, or _ROWID."""


class CheckViolation(IntegrityError):
    """SQLITE_CONSTRAINT_CHECK."""


class DatabaseBusy(StatementError, ServiceUnavailable):
    """SQLITE_BUSY: another process writes for longer than ``busy_s``. As a response: 503."""


class DatabaseFull(StatementError):
    """SQLITE_FULL: the disk is full, or the database has reached its largest size."""


class DatabaseCorrupt(StatementError):
    """SQLITE_CORRUPT or SQLITE_NOTADB: the file is damaged, or no database."""


class StatementInterrupted(StatementError):
    """SQLITE_INTERRUPT: its caller no longer waits, or the pool is closed."""


class SyntaxOrAccessError(StatementError):
    """SQLITE_ERROR, SQLITE_READONLY, or a number of parameters that is not the statement's."""


class StatementRefused(SqliteError):
    """The statement would change the connection that others have next; the message says what to write."""


class TransactionOver(SqliteError):
    """SQLite has rolled the transaction back, or the block that made the statement has ended."""


class RowMismatch(SqliteError, ValueError):
    """A row does not become what ``as_`` asks for; the message names the column."""


class PoolClosed(SqliteError):
    """The pool is not open: ``async with pool``, or ``App(lifespan=pool.lifespan)``."""


class PoolExhausted(SqliteError, ServiceUnavailable):
    """The statement waited for too long, or too many wait. As a response: 503."""


_BY_CODE: dict[int, type[StatementError]] = {
    sqlite3.SQLITE_CONSTRAINT: IntegrityError,
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: NotNullViolation,
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: ForeignKeyViolation,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: UniqueViolation,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: UniqueViolation,
    sqlite3.SQLITE_CONSTRAINT_ROWID: UniqueViolation,
    sqlite3.SQLITE_CONSTRAINT_CHECK: CheckViolation,
    sqlite3.SQLITE_BUSY: DatabaseBusy,
    sqlite3.SQLITE_LOCKED: DatabaseBusy,
    sqlite3.SQLITE_FULL: DatabaseFull,
    sqlite3.SQLITE_CORRUPT: DatabaseCorrupt,
    sqlite3.SQLITE_NOTADB: DatabaseCorrupt,
    sqlite3.SQLITE_INTERRUPT: StatementInterrupted,
    sqlite3.SQLITE_ERROR: SyntaxOrAccessError,
    sqlite3.SQLITE_READONLY: SyntaxOrAccessError,
}
_PRIMARY = 0xFF
_HINTS = {
    "You can only execute one statement at a time.": "one statement is executed at a time; "
    "`script` executes several",
}


def statement_error(error: sqlite3.Error) -> StatementError:
    """The exception for one of the ``sqlite3`` module."""
    message = _HINTS.get(str(error), str(error))
    code = getattr(error, "sqlite_errorcode", 0)
    if not code:
        # The module's own: a wrong number of parameters, more than one statement.
        return SyntaxOrAccessError(message)
    kind = _BY_CODE.get(code) or _BY_CODE.get(code & _PRIMARY, StatementError)
    return kind(message, code, error.sqlite_errorname)


def is_refused_write(error: sqlite3.Error) -> bool:
    """Whether a connection that only reads was asked to write."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_READONLY
