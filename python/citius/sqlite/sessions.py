"""A connection that refuses to be changed by statements of callers that do not have it to themselves.

SQLite itself says what a statement does while it is prepared (``sqlite3_set_authorizer``), and does some of
it then, as with ``EXPLAIN PRAGMA``; so no spelling is missed. Tests: ``tests/sqlite/test_session_state.py``.
"""

from __future__ import annotations

import enum
import re
import sqlite3
from typing import TYPE_CHECKING, Any

from citius.sqlite.errors import StatementRefused
from citius.sqlite.texts import (
    PRAGMAS_OF_THE_DATABASE,
    TEXT_CHARS_KEPT_MAX,
    Change,
    calls,
    makes_temporary_trigger,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SAVEPOINT_PREFIX = "citius_"
"""What the names of the pool's own savepoints begin with."""
# Statements that the `sqlite3` module keeps, which are not prepared, and so not judged, again.
KEPT_MAX = 256
# Characters of the long ones among them. SQLite takes up to 80 bytes for each of a list of parameters:
# without a bound lists of as many values as clients send would make 256 statements of several MiB each.
LONG_CHARS_MAX = 512 * 1024
# It attaches a file of its own, and detaches it. The groups are atomic: a comment ends where it first can, so
# that no other statement stands between the comments.
_VACUUM = re.compile(
    r"(?>[\s;\ufeff]|--[^\n]*+(?:\n|\Z)|/\*(?>.*?(?:\*/|\Z)))*+vacuum\b", re.I | re.S
)


class User(enum.IntEnum):
    """Who executes a statement; each may do what those before it may."""

    REQUEST = 0
    """One of many that share the connection."""
    BLOCK = 1
    """The block that has its transaction."""
    SCRIPT = 2
    POOL = 3


class Session(sqlite3.Connection):
    """A connection of a pool, and who uses it now."""

    user = User.POOL
    has_changed = False
    """Whether its owner has changed more of it than the database."""
    restorable: frozenset[str] | None = None
    """Settings that are undone without closing it, where that would lose the database."""
    _sql = _script = ""
    _refused: StatementRefused | None = None
    _asked_by: str | None = None
    """The view or trigger for which it was refused."""
    _triggers: frozenset[str] = frozenset()
    """Those that have been found to be triggers."""

    def guard(self) -> None:
        """Judge statements from now on."""
        # By the texts that the `sqlite3` module may keep; in the order of their use, as it has them.
        self._changing: dict[str, Change] = {}
        # Long texts that it may keep, and their length.
        self._long: set[str] = set()
        self._long_chars = 0
        self.set_authorizer(self._authorize)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute one statement."""
        return self._judge(sql, super().execute, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Execute one statement with each row of parameters."""
        return self._judge(sql, super().executemany, sql, parameters)

    def executescript(self, sql: str, /) -> sqlite3.Cursor:
        """Execute several statements, none of which is kept."""
        self._script = sql
        try:
            return self._judge("", super().executescript, sql)
        finally:
            self._script = ""

    def control(self, *statements: str) -> None:
        """Execute statements of the pool: those that begin and end transactions and savepoints."""
        user, self.user = self.user, User.POOL
        try:
            for statement in statements:
                self.execute(statement)
        finally:
            self.user = user

    def _judge(
        self, sql: str, execute: Callable[..., sqlite3.Cursor], *arguments: Any
    ) -> sqlite3.Cursor:
        if len(sql) > TEXT_CHARS_KEPT_MAX:
            self._make_room(sql)
        self._sql, self._refused, self._asked_by = sql, None, None
        try:
            if sql in self._changing and not self._takes(self._changing[sql]):
                assert self._refused is not None
                raise self._refused
            while True:
                try:
                    return execute(*arguments)
                except sqlite3.Error:
                    if self._refused is None:
                        raise
                    # It was refused while it was prepared: nothing has been executed.
                    if not self._is_of_trigger():
                        raise self._refused from None
        finally:
            # What is prepared without a text, by a script or by SQLite, is not taken for this one.
            self._sql, self._triggers = "", frozenset()

    def _make_room(self, sql: str) -> None:
        """Have the `sqlite3` module forget its statements when the long ones take too much.

        It counts them, not their bytes, and forgets one only for another one.
        """
        if sql in self._long:
            return
        if self._long_chars + len(sql) > LONG_CHARS_MAX and self._long:
            for number in range(KEPT_MAX):
                super().execute(f"SELECT {number}").close()
            self._long.clear()
            self._long_chars = 0
        self._long.add(sql)
        self._long_chars += len(sql)

    def _is_of_trigger(self) -> bool:
        """Whether what asked for what the connection did before is a trigger; it may from then on."""
        name = self._asked_by
        if name is None or name in self._triggers:
            return False
        self.set_authorizer(None)
        try:
            found = (
                super()
                .execute(
                    "SELECT type FROM (SELECT type, name FROM main.sqlite_master "
                    "UNION ALL SELECT type, name FROM temp.sqlite_master) "
                    "WHERE name = ?1 COLLATE NOCASE AND type IN ('view', 'trigger')",
                    (name,),
                )
                .fetchall()
            )
        finally:
            self.set_authorizer(self._authorize)
        if not found or ("view",) in found:
            return False
        self._triggers |= {name}
        self._refused = self._asked_by = None
        return True

    def _authorize(
        self, action: int, name: str | None, value: str | None, database: str | None, by: str | None
    ) -> int:
        find = _CHANGES.get(action)
        change = None if find is None else find((name or "").lower(), value, database)
        if action == sqlite3.SQLITE_CREATE_TRIGGER and makes_temporary_trigger(
            self._script or self._sql
        ):
            change = Change.SETTINGS
        # A `WITH` of the statement's own may have the name of a trigger.
        if (
            change is Change.READS
            and by is not None
            and not calls(self._sql, (value or "").lower())
        ):
            # In a trigger they tell what the statement itself has done; in a view what others have.
            if by in self._triggers:
                change = None
            else:
                self._asked_by = by
        if change is None or _VACUUM.match(self._sql) is not None:
            return sqlite3.SQLITE_OK
        is_setting = action == sqlite3.SQLITE_PRAGMA and change is Change.SETTINGS
        is_kept = is_setting and not self._is_restorable(name, database)
        return sqlite3.SQLITE_OK if self._takes(change, is_kept=is_kept) else sqlite3.SQLITE_DENY

    def _is_restorable(self, name: str | None, database: str | None) -> bool:
        if self.restorable is None or self.user is User.POOL:
            return True
        return (name or "").lower() in self.restorable and database != "temp"

    def _takes(self, change: Change, *, is_kept: bool = False) -> bool:
        """Whether its user may do this; what is allowed is noted."""
        self._refused = refusal(Change.KEPT if is_kept else change, self.user)
        if self._refused is not None:
            return False
        if change is Change.SETTINGS:
            self.has_changed = True
        if self._sql:
            before = self._changing.pop(self._sql, None)
            self._changing[self._sql] = Change.SETTINGS if before is Change.SETTINGS else change
            if len(self._changing) > 2 * KEPT_MAX:
                del self._changing[next(iter(self._changing))]
        return True


def refusal(change: Change, user: User) -> StatementRefused | None:
    """The error for a change that this user may not make; ``None`` if it may."""
    least, instead = _RULES[change]
    if user >= least:
        return None
    if change is Change.TRANSACTION and user is User.BLOCK:
        return StatementRefused(
            "the statement begins or ends a transaction, which the block does: leave the block, or use "
            "`async with tx.transaction()` for a savepoint"
        )
    return StatementRefused(
        f"the statement {change.value}, and others use the connections of the pool: {instead}"
    )


# Who may, and what others write instead.
_RULES: dict[Change, tuple[User, str]] = {
    Change.SAVEPOINT: (
        User.BLOCK,
        "use `async with pool.transaction() as tx` and `async with tx.transaction()` in it",
    ),
    Change.SETTINGS: (
        User.BLOCK,
        "use Pool(pragmas={…}) for all of them, or a transaction for the time of its block",
    ),
    Change.READS: (
        User.BLOCK,
        "use RETURNING, the number that `execute` returns, or a transaction",
    ),
    Change.TRANSACTION: (User.SCRIPT, "use `async with pool.transaction() as tx`"),
    Change.KEPT: (User.POOL, "use Pool(pragmas={…})"),
    Change.PROCESS: (User.POOL, "use Pool(pragmas={…})"),
}
_OF_THE_PROCESS = frozenset((
    "data_store_directory", "hard_heap_limit", "soft_heap_limit", "temp_store_directory",
))  # fmt: skip
_READS = frozenset(("changes", "last_insert_rowid", "total_changes"))


def _of_pragma(name: str, value: str | None, database: str | None) -> Change | None:
    # The schema of temporary things is the connection's.
    is_kept = database == "temp" and name in ("application_id", "user_version")
    if value is None or (name in PRAGMAS_OF_THE_DATABASE and not is_kept):
        return None
    return Change.PROCESS if name in _OF_THE_PROCESS else Change.SETTINGS


def _of_creation(_name: str, _value: str | None, database: str | None) -> Change | None:
    return Change.SETTINGS if database == "temp" else None


def _of_savepoint(_name: str, value: str | None, _database: str | None) -> Change | None:
    is_own = (value or "").lower().startswith(SAVEPOINT_PREFIX)
    return Change.TRANSACTION if is_own else Change.SAVEPOINT


def _of_function(_name: str, value: str | None, _database: str | None) -> Change | None:
    return Change.READS if (value or "").lower() in _READS else None


def _of_attached(_file: str, _value: str | None, _database: str | None) -> Change:
    return Change.SETTINGS


def _of_transaction(_operation: str, _value: str | None, _database: str | None) -> Change:
    return Change.TRANSACTION


_CHANGES: dict[int, Callable[[str, str | None, str | None], Change | None]] = {
    sqlite3.SQLITE_PRAGMA: _of_pragma,
    sqlite3.SQLITE_ATTACH: _of_attached,
    sqlite3.SQLITE_DETACH: _of_attached,
    sqlite3.SQLITE_TRANSACTION: _of_transaction,
    sqlite3.SQLITE_SAVEPOINT: _of_savepoint,
    sqlite3.SQLITE_FUNCTION: _of_function,
    **dict.fromkeys(
        (
            sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_CREATE_TRIGGER,
            sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_VTABLE,
            sqlite3.SQLITE_CREATE_TEMP_TABLE, sqlite3.SQLITE_CREATE_TEMP_VIEW,
            sqlite3.SQLITE_CREATE_TEMP_TRIGGER, sqlite3.SQLITE_CREATE_TEMP_INDEX,
        ),
        _of_creation,
    ),
}  # fmt: skip
