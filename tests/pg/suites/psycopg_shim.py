"""Cursors of psycopg that execute on ``citius.pg``, for psycopg's own tests of types: a plugin of pytest.

A statement is converted by psycopg (``%s`` becomes ``$1``) and sent with the objects that the test gives, so
that ``citius.pg`` writes the parameters and reads the rows.
"""

# pyright: basic

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import psycopg
from citius import pg
from citius.pg import sync
from psycopg import _queries, errors
from psycopg.types.json import Json, Jsonb
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range


def _in(value: Any) -> Any:
    """A parameter as ``citius.pg`` takes it."""
    if isinstance(value, Range):
        if value.isempty:
            return pg.Range(is_empty=True)
        return pg.Range(_in(value.lower), _in(value.upper), value.bounds)
    if isinstance(value, Multirange):
        return [_in(one) for one in value]
    if isinstance(value, Json | Jsonb):
        return value.obj
    if type(value) in (list, tuple):
        return type(value)(map(_in, value))
    return value


def _out(value: Any) -> Any:
    """A value as psycopg has it."""
    if isinstance(value, pg.Range):
        if value.is_empty:
            return Range(empty=True)
        return Range(value.lower, value.upper, value.bounds)
    if type(value) is list and value and isinstance(value[0], pg.Range):
        return [_out(one) for one in value]
    if type(value) in (list, tuple):
        return type(value)(map(_out, value))
    return value


@contextlib.contextmanager
def translated():
    try:
        yield
    except pg.ServerError as error:
        raise errors.lookup(error.sqlstate)(str(error)) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.DataError(str(error)) from error


def _script(pool: pg.Pool, sql: str) -> None:
    sync._wait(pool, lambda: pool.core.script(sql, None))


class Cursor(psycopg.Cursor):
    """A cursor whose statements go to ``citius.pg``."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Any:
        text, values = self._text(query), () if params is None else params
        if params is not None:
            text, _, order, _ = _queries._query2pg(text, "utf-8")
            if isinstance(values, Mapping):
                values = [values[name] for name in order or ()]
        pool = self.connection.citius_pool
        with translated():
            try:
                rows = pool.sync.fetch(text.decode(), *map(_in, values))
            except pg.SyntaxOrAccessError as error:
                if "multiple commands" not in error.message:
                    raise
                # Without parameters psycopg sends several statements.
                _script(pool, text.decode())
                rows = []
        self._citius = [tuple(map(_out, row)) for row in rows]
        return self

    def _text(self, query: Any) -> bytes:
        return (
            query.as_bytes(self)
            if hasattr(query, "as_bytes")
            else query.encode()
            if isinstance(query, str)
            else query
        )

    def fetchone(self) -> Any:
        return self._citius.pop(0) if self._citius else None

    def fetchall(self) -> Any:
        rows, self._citius = self._citius, []
        return rows

    def __iter__(self) -> Any:
        return iter(self.fetchall())


def pytest_configure(config: Any) -> None:
    connect = psycopg.Connection.connect.__func__

    def patched(cls: Any, conninfo: str = "", **options: Any) -> Any:
        made = connect(cls, conninfo, **options)
        made.cursor_factory = Cursor
        made.citius_pool = pg.Pool(made.info.dsn, size=1)
        return made

    close = psycopg.Connection.close

    def close_both(self: Any) -> None:
        close(self)
        if (pool := getattr(self, "citius_pool", None)) is not None:
            pool.sync.close()

    psycopg.Connection.close = close_both
    psycopg.Connection.connect = classmethod(patched)
    psycopg.connect = psycopg.Connection.connect
