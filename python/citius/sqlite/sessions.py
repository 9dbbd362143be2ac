"""A connection that refuses to be changed by statements of callers that do not have it to themselves.

SQLite itself says what a statement does while it is prepared (``sqlite3_set_authorizer``), and does some of
it then, as with ``EXPLAIN PRAGMA``; so no spelling is missed. Tests: ``tests/sqlite/test_session_state.py``.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

from citius.sqlite.errors import StatementRefused
from citius.sqlite.texts import PRAGMAS_OF_THE_DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable

# Statements that the `sqlite3` module keeps, which are not prepared, and so not judged, again.
KEPT_MAX = 256
# It attaches a file of its own, and detaches it.
_VACUUM = re.compile(r"(?:[\s;\ufeff]|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*vacuum\b", re.I | re.S)


class Session(sqlite3.Connection):
    """A connection of a pool; ``is_owned`` while one caller has it to itself, or the pool sets it up."""

    is_owned = True
    has_changed = False
    """Whether its owner has changed more of it than the database."""
    _sql = ""
    _refused: StatementRefused | None = None

    def guard(self) -> None:
        """Judge statements from now on."""
        self._changing: dict[str, None] = {}
        self.set_authorizer(self._authorize)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute one statement."""
        return self._judge(sql, super().execute, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Execute one statement with each row of parameters."""
        return self._judge(sql, super().executemany, parameters)

    def _judge(
        self, sql: str, execute: Callable[[str, Any], sqlite3.Cursor], parameters: Any
    ) -> sqlite3.Cursor:
        self._sql, self._refused = sql, None
        if not self.is_owned and sql in self._changing:
            raise _refusal()
        try:
            return execute(sql, parameters)
        except sqlite3.Error:
            if self._refused is not None:
                raise self._refused from None
            raise

    def _authorize(
        self,
        action: int,
        name: str | None,
        value: str | None,
        database: str | None,
        _by: str | None,
    ) -> int:
        changes = _CHANGES.get(action)
        if changes is None or not changes((name or "").lower(), value, database):
            return sqlite3.SQLITE_OK
        if _VACUUM.match(self._sql) is not None:
            return sqlite3.SQLITE_OK
        if self.is_owned:
            self.has_changed = True
            self._changing[self._sql] = None
            if len(self._changing) > 2 * KEPT_MAX:
                del self._changing[next(iter(self._changing))]
            return sqlite3.SQLITE_OK
        self._refused = _refusal()
        return sqlite3.SQLITE_DENY


def _refusal() -> StatementRefused:
    return StatementRefused(
        "the statement changes the connection that executes it, and others use the connections of the pool: "
        "use Pool(pragmas={…}) for all of them, or a transaction for the time of its block"
    )


def _is_setting(name: str, value: str | None, _database: str | None) -> bool:
    return value is not None and name not in PRAGMAS_OF_THE_DATABASE


def _is_temporary(_name: str, _value: str | None, database: str | None) -> bool:
    return database == "temp"


_CHANGES: dict[int, Callable[[str, str | None, str | None], bool]] = {
    sqlite3.SQLITE_PRAGMA: _is_setting,
    sqlite3.SQLITE_ATTACH: lambda _name, _value, _database: True,
    sqlite3.SQLITE_DETACH: lambda _name, _value, _database: True,
    **dict.fromkeys(
        (
            sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_CREATE_TRIGGER,
            sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_VTABLE,
            sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_VIEW,
            sqlite3.SQLITE_CREATE_TEMP_TRIGGER, sqlite3.SQLITE_CREATE_TEMP_INDEX,
        ),
        _is_temporary,
    ),
}  # fmt: skip
