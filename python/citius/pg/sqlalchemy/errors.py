"""PEP 249's exceptions, and which of them an exception of ``citius.pg`` becomes."""

from __future__ import annotations

from citius.pg.errors import PostgresError, ProtocolError, ServerError


class Error(Exception):
    """Root of the tree of PEP 249. ``__cause__`` is the exception of ``citius.pg``."""

    sqlstate: str | None = None
    pgcode: str | None = None
    """The SQLSTATE, by the name that psycopg2 gives it."""


class Warning(Exception):
    """PEP 249; never raised."""


class InterfaceError(Error):
    """The driver is not used as it can be."""


class DatabaseError(Error):
    """Something with the database."""


class DataError(DatabaseError):
    """A value that does not fit."""


class OperationalError(DatabaseError):
    """The connection, or the state of the server."""


class IntegrityError(DatabaseError):
    """A constraint is violated."""


class InternalError(DatabaseError):
    """The state of the transaction, or a fault of the server."""


class ProgrammingError(DatabaseError):
    """The statement cannot be executed as it is written."""


class NotSupportedError(DatabaseError):
    """The server cannot do that."""


# Classes of SQLSTATE (appendix A of PostgreSQL's manual), as psycopg sorts them.
_BY_CLASS: dict[str, type[DatabaseError]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "20": ProgrammingError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "24": InternalError,
    "25": InternalError,
    "26": ProgrammingError,
    "28": OperationalError,
    "2D": InternalError,
    "34": OperationalError,
    "3D": ProgrammingError,
    "3F": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
    "44": ProgrammingError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}

TRANSLATED = (PostgresError, TypeError, ValueError, OverflowError)
"""What the driver raises: errors of the database, and of parameters that do not fit."""


def translated(error: Exception) -> Error:
    """The exception of PEP 249 for one of ``TRANSLATED``."""
    if isinstance(error, ServerError):
        made = _BY_CLASS.get(error.sqlstate[:2], DatabaseError)(str(error))
        made.sqlstate = made.pgcode = error.sqlstate
        return made
    if isinstance(error, ProtocolError):
        return InternalError(str(error))
    if isinstance(error, PostgresError):
        return OperationalError(str(error))
    return DataError(str(error))


def is_of_old_plan(error: Exception) -> bool:
    """Whether a statement was prepared for tables or types that are others by now."""
    if not isinstance(error, ServerError):
        return False
    return (error.sqlstate == "0A000" and "cached plan" in str(error)) or (
        error.sqlstate == "XX000" and "cache lookup failed" in str(error)
    )
