"""Cursors of psycopg that execute on ``citius.pg``, for psycopg's own tests of types: a plugin of pytest.

A statement is converted by psycopg (``%s`` becomes ``$1``), which also says what type each parameter has, and
sent with the objects that the test gives: ``citius.pg`` writes the parameters and reads the rows. Text for a
parameter that is none is a literal, as psycopg leaves its type to the server.
"""

# pyright: basic

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import psycopg
from citius import pg
from citius.databases import sync
from not_applicable import expect_failures
from psycopg import _queries, errors
from psycopg.adapt import PyFormat, Transformer
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


# What is compared is that a value is refused; psycopg's tests look for its words, too.
_THEIR_WORDS = (
    "(psycopg's words: date too small, date too large, timestamp too small, timestamp too large)"
)


@contextlib.contextmanager
def translated():
    try:
        yield
    except pg.ServerError as error:
        raise errors.lookup(error.sqlstate)(str(error)) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.DataError(f"{error} {_THEIR_WORDS}") from error


def _typed(connection: Any, text: str, values: list[Any]) -> str:
    """A statement with the types that psycopg finds for the parameters."""
    found, known = Transformer(connection), connection.adapters.types
    names: list[str] = []
    for value in values:
        oid = found.get_dumper(value, PyFormat.AUTO).oid if value is not None else 0
        info = known.get(oid) if oid else None
        array = "[]" if info is not None and info.array_oid == oid else ""
        names.append(f"::{info.regtype}{array}" if info is not None else "")
    return re.sub(r"\$(\d+)", lambda number: number[0] + names[int(number[1]) - 1], text)


def _with_literal(text: str, values: list[Any], at: int) -> tuple[str, list[Any]]:
    """The same with the text of one parameter in the statement."""
    literal = "'" + values[at - 1].replace("'", "''") + "'"

    def put(match: re.Match[str]) -> str:
        number = int(match[1])
        return literal if number == at else f"${number - (number > at)}"

    return re.sub(r"\$(\d+)", put, text), values[: at - 1] + values[at:]


def _script(pool: pg.Pool, sql: str) -> None:
    sync.wait_for(pool, lambda: pool.core.script(sql, None))


class Cursor(psycopg.Cursor):
    """A cursor whose statements go to ``citius.pg``."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Any:
        text, values = self._text(query), () if params is None else params
        if params is not None:
            text, _, order, _ = _queries._query2pg(text, "utf-8")
            if isinstance(values, Mapping):
                values = [values[name] for name in order or ()]
        self._failed, self._citius = None, []
        pool, sql, values = self.connection.citius_pool, text.decode(), list(values)
        if params is not None:
            sql = _typed(self.connection, sql, values)
        with translated():
            self._execute(pool, sql, values)
        return self

    def _execute(self, pool: Any, sql: str, values: list[Any]) -> None:
        try:
            rows = pool.sync.fetch(sql, *map(_in, values))
        except pg.SyntaxOrAccessError as error:
            if "multiple commands" not in error.message:
                raise
            # Without parameters psycopg sends several statements.
            return _script(pool, sql)
        except (TypeError, ValueError, OverflowError) as error:
            number = re.match(r"parameter \$(\d+): expected (?!str).*, got str$", str(error))
            if number is not None:
                return self._execute(pool, *_with_literal(sql, values, int(number[1])))
            if re.match(r"parameter \$\d+: ", str(error)):
                raise
            # What cannot be read is told when it is fetched.
            self._failed = error
            return None
        self._citius = [tuple(map(_out, row)) for row in rows]
        return None

    def _text(self, query: Any) -> bytes:
        return (
            query.as_bytes(self)
            if hasattr(query, "as_bytes")
            else query.encode()
            if isinstance(query, str)
            else query
        )

    def fetchone(self) -> Any:
        return next(iter(self._taken(1)), None)

    def fetchall(self) -> Any:
        return self._taken(len(self._citius))

    def _taken(self, count: int) -> list[Any]:
        with translated():
            if self._failed is not None:
                raise self._failed
        rows, self._citius = self._citius[:count], self._citius[count:]
        return rows

    def __iter__(self) -> Any:
        return iter(self.fetchall())


# What is tested is psycopg's own, or psycopg does otherwise.
NOT_APPLICABLE: dict[str, tuple[str, ...]] = {
    "registered with psycopg's own connection: classes for composites, enumerations, addresses, JSON": (
        "test_array.py::test_array_register",
        "test_array.py::test_dump_list_str_none",
        "test_array.py::test_dump_list_no_comma_separator",
        "test_composite.py::test_callable_dumper_not_registered",
        "test_composite.py::test_dump_builtin_empty_range",
        "test_composite.py::test_dump_composite_all_chars",
        "test_composite.py::test_dump_composite_null",
        "test_composite.py::test_dump_no_sequence_failing",
        "test_composite.py::test_dump_recursive_composite",
        "test_composite.py::test_dump_tuple_null",
        "test_composite.py::test_load_composite",
        "test_composite.py::test_load_composite_factory",
        "test_composite.py::test_load_keyword_composite_factory",
        "test_composite.py::test_load_recursive_composite",
        "test_enum.py::test_enum_array_loader",
        "test_enum.py::test_enum_dumper",
        "test_enum.py::test_enum_dumper_nonascii",
        "test_enum.py::test_enum_dumper_sqlascii",
        "test_enum.py::test_enum_error",
        "test_enum.py::test_enum_loader",
        "test_enum.py::test_enum_loader_nonascii",
        "test_enum.py::test_enum_loader_sqlascii",
        "test_enum.py::test_generic_enum_array_loader",
        "test_enum.py::test_generic_enum_dumper",
        "test_enum.py::test_generic_enum_loader",
        "test_enum.py::test_generic_enum_loader_nonascii",
        "test_enum.py::test_remap",
        "test_enum.py::test_remap_by_value",
        "test_enum.py::test_remap_more_postgres",
        "test_enum.py::test_remap_more_python",
        "test_enum.py::test_remap_rename",
        "test_hstore.py::test_register_conn",
        "test_hstore.py::test_register_curs",
        "test_hstore.py::test_register_globally",
        "test_hstore.py::test_roundtrip",
        "test_hstore.py::test_roundtrip_array",
        "test_json.py::test_dump_customise",
        "test_json.py::test_dump_customise_bytes",
        "test_json.py::test_dump_customise_context",
        "test_json.py::test_dump_customise_wrapper",
        "test_json.py::test_load_customise",
        "test_json.py::test_load_customise_context",
        "test_json.py::test_dump_dict",
        "test_net.py::test_address_dump",
        "test_net.py::test_cidr_load",
        "test_net.py::test_inet_load_address",
        "test_net.py::test_inet_load_network",
        "test_net.py::test_interface_dump",
        "test_net.py::test_network_dump",
        "test_net.py::test_network_mixed_size_array",
        "test_numeric.py::test_numeric_as_float",
        "test_range.py::test_dump_custom_null",
    ),
    "psycopg's result, its formats, its COPY": (
        "test_array.py::test_array_of_unknown_builtin",
        "test_bool.py::test_roundtrip_bool",
        "test_composite.py::test_load_record",
        "test_composite.py::test_load_record_binary",
        "test_numeric.py::test_int_none",
        "test_numeric.py::test_load_float",
        "test_numeric.py::test_load_float_approx",
        "test_numeric.py::test_load_int",
        "test_multirange.py::test_copy_in",
        "test_multirange.py::test_copy_in_empty_set_type",
        "test_multirange.py::test_copy_in_empty_wrappers",
        "test_range.py::test_copy_in",
        "test_range.py::test_copy_in_empty_set_type",
        "test_range.py::test_copy_in_empty_wrappers",
        "test_string.py::test_load_1byte",
        "test_string.py::test_load_1char",
    ),
    "the transaction, which is rolled back between tests, is psycopg's own": (
        "test_array.py::test_empty_list",
        "test_array.py::test_empty_list_after_choice",
        "test_array.py::test_empty_list_mix",
        "test_composite.py::test_literal_invalid_attr",
        "test_composite.py::test_literal_invalid_name",
        "test_multirange.py::test_literal_invalid_name",
        "test_range.py::test_literal_invalid_name",
        "test_range.py::test_mixed_array_types",
        "test_string.py::test_dump_enum",
    ),
    "encodings other than UTF-8, and bytes that are no text": (
        "test_string.py::test_dump_1byte",
        "test_string.py::test_dump_badenc",
        "test_string.py::test_dump_enc",
        "test_string.py::test_dump_utf8_badenc",
        "test_string.py::test_load_ascii",
        "test_string.py::test_load_badenc",
        "test_string.py::test_load_enc",
        "test_string.py::test_quote_1byte",
        "test_string.py::test_text_array_ascii",
    ),
    "infinity is the greatest date, timestamptz is in UTC, offsets have to be known": (
        "test_datetime.py::TestDate::test_infinity_date_example",
        "test_datetime.py::TestDate::test_load_overflow_message",
        "test_datetime.py::TestDate::test_load_overflow_message_binary",
        "test_datetime.py::TestDateTimeTz::test_load_datetimetz_tz",
        "test_datetime.py::TestDateTimeTz::test_max_with_timezone",
        "test_datetime.py::TestDateTimeTz::test_overflow_message",
        "test_datetime.py::TestDateTimeTz::test_overflow_message_binary",
        "test_datetime.py::TestDatetime::test_overflow_message",
        "test_datetime.py::TestDatetime::test_overflow_message_binary",
        "test_datetime.py::TestTimeTz::test_dump_timetz_overflow",
        "test_datetime.py::TestTimeTz::test_dump_timetz_zoneinfo",
    ),
    "a str for a JSON parameter is a JSON string; JSON has no spaces": (
        "test_json.py::test_array_dump",
        "test_json.py::test_dump",
        "test_json.py::test_load",
        "test_json.py::test_load_array",
    ),
    "a multirange is a list of ranges": (
        "test_multirange.py::test_load_builtin_array",
        "test_multirange.py::test_load_builtin_empty",
        "test_multirange.py::test_load_builtin_range",
        "test_multirange.py::test_load_custom_empty",
    ),
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    expect_failures(items, NOT_APPLICABLE)


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
