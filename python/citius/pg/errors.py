"""What can go wrong with a database.

PostgresError
├── ServerError                  the server has refused a statement or a login; ``sqlstate`` says why
│   ├── IntegrityError           class 23
│   │   ├── NotNullViolation, ForeignKeyViolation, UniqueViolation, CheckViolation
│   ├── SerializationFailure     40001: try the transaction again
│   ├── DeadlockDetected         40P01: the same
│   ├── QueryCanceled            57014
│   ├── InvalidPassword          class 28
│   └── SyntaxOrAccessError      class 42
├── SessionLost                  there is no connection (a ConnectionError)
│   ├── TlsFailed                the connection cannot be secured as it was asked for
│   └── StatementLost            it broke before the result came: the statement may have been executed
├── ProtocolError                the peer does not speak PostgreSQL's protocol, or not as it is spoken here
├── StatementRefused             the statement would change the session that others have next
├── TransactionOver              the block that made the statement has ended
├── PoolClosed                   the pool is not open
└── PoolExhausted                no session became free in time; a response with status 503
"""

from __future__ import annotations

from typing import Any

from citius.errors import CitiusError, ServiceUnavailable


class PostgresError(CitiusError):
    """Root of the tree."""


class ServerError(PostgresError):
    """The server has refused a statement or a login. The attributes are the fields of its message."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None
    hint: str | None
    position: int | None
    schema: str | None
    table: str | None
    column: str | None
    constraint: str | None

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__(fields["message"])
        self.__dict__.update(fields)

    def __str__(self) -> str:
        text = f"{self.message} (SQLSTATE {self.sqlstate})"
        for name in ("detail", "hint"):
            if value := getattr(self, name):
                text += f"\n{name}: {value}"
        return text


class IntegrityError(ServerError):
    """Class 23: a constraint is violated."""


class NotNullViolation(IntegrityError):
    """23502."""


class ForeignKeyViolation(IntegrityError):
    """23503."""


class UniqueViolation(IntegrityError):
    """23505."""


class CheckViolation(IntegrityError):
    """23514."""


class SerializationFailure(ServerError):
    """40001: another transaction was in the way; try this one again."""


class DeadlockDetected(ServerError):
    """40P01: two transactions wait for each other; try this one again."""


class QueryCanceled(ServerError):
    """57014: the statement was cancelled, by ``statement_timeout`` or by an administrator."""


class InvalidPassword(ServerError):
    """Class 28: the login is refused."""


class SyntaxOrAccessError(ServerError):
    """Class 42: the statement cannot be executed as it is written."""


class SessionLost(PostgresError, ConnectionError):
    """There is no connection to the server, and the statement was not sent."""


class TlsFailed(SessionLost):
    """The connection cannot be secured as it was asked for."""


class StatementLost(SessionLost):
    """The connection broke before the result came: the statement may have been executed or not."""


class ProtocolError(PostgresError):
    """The peer does not speak PostgreSQL's protocol, or asks for something that is not spoken here."""


class StatementRefused(PostgresError):
    """The statement would change the session that others have next; the message says what to write."""


class TransactionOver(PostgresError):
    """The block that made the statement has ended."""


class PoolClosed(PostgresError):
    """The pool is not open: ``async with pool``, or ``App(lifespan=pool.lifespan)``."""


class PoolExhausted(PostgresError, ServiceUnavailable):
    """No session became free in time, or too many statements wait for one. As a response: 503."""


_BY_STATE: dict[str, type[ServerError]] = {
    "23502": NotNullViolation,
    "23503": ForeignKeyViolation,
    "23505": UniqueViolation,
    "23514": CheckViolation,
    "40001": SerializationFailure,
    "40P01": DeadlockDetected,
    "57014": QueryCanceled,
}
_BY_CLASS: dict[str, type[ServerError]] = {
    "23": IntegrityError,
    "28": InvalidPassword,
    "42": SyntaxOrAccessError,
}


# Called by the extension module, by these names.


def server_error(fields: dict[str, Any]) -> ServerError:
    """The exception for an ErrorResponse."""
    state = fields["sqlstate"]
    kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2], ServerError)
    return kind(fields)


def protocol_error(message: str) -> ProtocolError:
    """The exception for a fault of the protocol."""
    return ProtocolError(message)


def connection_lost(why: str) -> SessionLost:
    """The exception for a connection that has ended."""
    return SessionLost(f"the connection to PostgreSQL is lost: {why}")


def tls_failed(why: str) -> TlsFailed:
    """The exception for a handshake that fails."""
    return TlsFailed(f"TLS with PostgreSQL fails: {why}")


def lost_during_statement(cause: BaseException) -> StatementLost:
    """The exception for a statement whose connection has ended."""
    error = StatementLost(f"{cause}; the statement may have been executed or not")
    error.__cause__ = cause
    return error


def queue_full(queue_max: int) -> PoolExhausted:
    """The exception for one statement too many."""
    return PoolExhausted(f"{queue_max} statements wait for the database already")


def pool_closed(_queue_max: int) -> PoolClosed:
    """The exception for a statement after the end."""
    return PoolClosed("the pool is closed")


def refused(what: tuple[str, bool]) -> StatementRefused:
    """A statement that changes the session: ``what`` it is about, and whether a block of the pool made it."""
    word, is_of_block = what
    if word == "names":
        return StatementRefused(
            "the statement drops prepared statements, which are the pool's: leave it out"
        )
    if word == "stream":
        return StatementRefused(
            "the server would wait for the data of this COPY, and take statements for them: use copy_in"
        )
    if word == "listen":
        return StatementRefused(
            "LISTEN behind a pooler in transaction mode: the next transaction has another session, so that "
            "no notification comes; listen by a pool for the server's own address"
        )
    if word == "pooled":
        return StatementRefused(
            "the statement changes the session, which is that of a pooler: the next transaction has another, "
            "so that this one cannot be reset; use SET LOCAL, set_config(…, true), pg_advisory_xact_lock, "
            "options of the DSN for all sessions, or a pool for the server's own address"
        )
    if is_of_block:
        return StatementRefused(
            "the statement begins or ends a transaction, which the block does: leave the block, or use "
            "`async with tx.transaction()` for a savepoint"
        )
    if word == "session":
        return StatementRefused(
            "the statement changes the session (settings, locks, temporary tables, channels), and others "
            "have it next: use `async with pool.transaction()`, whose session is reset at its end, SET LOCAL "
            "or set_config(…, true) there, pool.listen(), or options of the DSN for all sessions"
        )
    return StatementRefused(
        f"the statement begins or ends a {word}, and others use the session: use "
        "`async with pool.transaction()`"
    )


def block_over(_: object) -> TransactionOver:
    """A statement that comes behind the end of its block."""
    return TransactionOver(
        "the block that made this statement has ended: await it within `async with … as tx`"
    )
