"""Values of PostgreSQL's types: what Python gets of them, and what it may give for them."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import math
import pickle
import uuid
from decimal import Decimal

import msgspec
import pytest
from citius import pg

EAST = dt.timezone(dt.timedelta(hours=2))
UUID = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")

# Type, its text in SQL, the object.
TABLE = [
    ("int2", "-32768", -32768),
    ("int4", "2147483647", 2147483647),
    ("int8", "-9223372036854775808", -(2**63)),
    ("oid", "4294967295", 4294967295),
    ("float4", "1.5", 1.5),
    ("float8", "0.1", 0.1),
    ("float8", "infinity", math.inf),
    ("bool", "true", True),
    ("bool", "false", False),
    ("text", "h\u00e9llo\n\U0001f600", "h\u00e9llo\n\U0001f600"),
    ("text", "", ""),
    ("varchar", "x", "x"),
    ("bpchar", "x", "x"),
    ("name", "x", "x"),
    ("bytea", "\\x00ff", b"\0\xff"),
    ("bytea", "", b""),
    ("numeric", "0", Decimal("0")),
    ("numeric", "-12345678901234567890.000120", Decimal("-12345678901234567890.000120")),
    ("numeric", "0.00001234", Decimal("0.00001234")),
    ("numeric", "10000", Decimal("10000")),
    ("numeric", "1e40", Decimal("1" + "0" * 40)),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("date", "1999-12-31", dt.date(1999, 12, 31)),
    ("date", "9999-12-31", dt.date(9999, 12, 31)),
    ("time", "23:59:59.999999", dt.time(23, 59, 59, 999999)),
    ("timetz", "12:00:00.5+02", dt.time(12, 0, 0, 500000, tzinfo=EAST)),
    ("timestamp", "1969-12-31 23:59:59.999999", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", "2024-02-29 12:00:00+02", dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC)),
    ("interval", "-1 days 00:00:00.000005", dt.timedelta(days=-1, microseconds=5)),
    ("interval", "1 day -02:00:00", dt.timedelta(hours=22)),
    ("interval", "2 years 1 mon", dt.timedelta(days=760)),
    ("interval", "-1 years -1 mons", dt.timedelta(days=-395)),
    ("uuid", str(UUID), UUID),
    ("json", '{"a": [1, null]}', {"a": [1, None]}),
    ("jsonb", '{"a": [1.5, "x"]}', {"a": [1.5, "x"]}),
    ("int4[]", "{1,NULL,3}", [1, None, 3]),
    ("int4[]", "{}", []),
    ("int4[]", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
    ("int8[]", "{{{1},{2}},{{3},{4}}}", [[[1], [2]], [[3], [4]]]),
    ("text[]", '{a,"b\\"\\\\{,}","NULL",""}', ["a", 'b"\\{,}', "NULL", ""]),
    ("bool[]", "{t,f}", [True, False]),
    ("float8[]", "{0.1,2}", [0.1, 2.0]),
    ("numeric[]", "{1.10,2}", [Decimal("1.10"), Decimal("2")]),
    ("uuid[]", "{" + str(UUID) + "}", [UUID]),
    ("date[]", "{2024-02-29}", [dt.date(2024, 2, 29)]),
    ("bytea[]", '{"\\\\x00ff"}', [b"\0\xff"]),
    ("jsonb[]", '{"{\\"a\\": 1}"}', [{"a": 1}]),
    ("timestamptz[]", '{"2024-02-29 12:00+00"}', [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)]),
    # Without a class in Python: their text.
    ("point", "(1,2)", "(1,2)"),
    ("int4range", "[1,5)", pg.Range(1, 5)),
    ("inet", "10.0.0.1/8", "10.0.0.1/8"),
    ("pg_lsn", "0/10", "0/10"),
]


def run(server, act):
    async def main():
        async with pg.Pool(server.dsn, size=1) as pool:
            return await act(pool)

    return asyncio.run(main())


def literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def test_the_table_comes_as_it_says(server) -> None:
    async def act(pool):
        return [
            await pool.fetch_value(f"SELECT {literal(text)}::{kind}") for kind, text, _ in TABLE
        ]

    for (kind, text, expected), got in zip(TABLE, run(server, act), strict=True):
        assert (got, type(got)) == (expected, type(expected)), (kind, text)


def test_the_table_goes_as_it_came(server) -> None:
    """The server compares the parameter with what its own parser makes of the text."""

    async def act(pool):
        same = []
        for kind, text, value in TABLE:
            sql = f"SELECT $1::{kind}::text = {literal(text)}::{kind}::text"
            same.append((kind, text, await pool.fetch_value(sql, value)))
        return same

    # A timedelta has no days apart from hours and no months, and `json` keeps the spaces that it was given.
    differ = [(kind, text) for kind, text, is_same in run(server, act) if is_same is not True]
    assert differ == [
        ("interval", "1 day -02:00:00"),
        ("interval", "2 years 1 mon"),
        ("interval", "-1 years -1 mons"),
        ("json", '{"a": [1, null]}'),
    ]


def test_null_of_every_type(server) -> None:
    async def act(pool):
        return {await pool.fetch_value(f"SELECT $1::{kind}", None) for kind, _, _ in TABLE}

    assert run(server, act) == {None}


def test_infinite_dates_and_those_that_python_has_not(server) -> None:
    async def act(pool):
        sql = "SELECT 'infinity'::date, 'infinity'::timestamp, '-infinity'::timestamp"
        assert await pool.fetch_one(sql) == (dt.date.max, dt.datetime.max, dt.datetime.min)
        with pytest.raises(OverflowError, match="cast the column to text"):
            await pool.fetch_value("SELECT '10000-01-01'::date")
        for kind in ("time", "timetz"):
            with pytest.raises(OverflowError, match="cast the column to text"):
                await pool.fetch_value(f"SELECT '24:00'::{kind}")
        for no_number in ("NaN", "sNaN", "-NaN12"):
            assert (await pool.fetch_value("SELECT $1::numeric", Decimal(no_number))).is_nan()
        return await pool.fetch_value("SELECT 'NaN'::numeric")

    assert run(server, act).is_nan()


INFINITIES = [
    f"{sign}infinity::{kind}" for kind in ("date", "timestamp", "timestamptz") for sign in ("", "-")
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_copies_of_infinite_dates_are_infinite(server, protocol: int) -> None:
    """Issue 32 C3: what a process executor, a cache or a deep copy has made of it is infinity still."""

    async def act(pool):
        of_kinds = [text.split("::") for text in INFINITIES]
        columns = ", ".join(f"'{text}'::{kind}" for text, kind in of_kinds)
        row = list(await pool.fetch_one(f"SELECT {columns}"))
        for copied in (
            pickle.loads(pickle.dumps(row, protocol)),
            pickle.loads(pickle._dumps(row, protocol)),
            copy.deepcopy(row),
            [copy.copy(value) for value in row],
        ):
            assert copied == row
            values = ", ".join(f"(${at}::{kind})::text" for at, (_, kind) in enumerate(of_kinds, 1))
            assert list(await pool.fetch_one(f"SELECT {values}", *copied)) == [
                text for text, _ in of_kinds
            ]
            assert msgspec.json.decode(msgspec.json.encode(copied), type=list[str])

    run(server, act)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_copies_of_other_dates_are_as_before(protocol: int) -> None:
    for value in (
        dt.date(9999, 12, 31),
        dt.date(1, 1, 1),
        dt.datetime(1, 1, 1),
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=EAST),
    ):
        copied = pickle.loads(pickle.dumps(value, protocol))
        assert copied == value
        assert copied is not value
        assert getattr(copied, "fold", 0) == getattr(value, "fold", 0)


@pytest.mark.parametrize("style", ["sql_standard", "postgres", "postgres_verbose", "iso_8601"])
def test_intervals_do_not_depend_on_the_style_of_the_session(server, style: str) -> None:
    spans = [dt.timedelta(days=-1, seconds=5), dt.timedelta.min, dt.timedelta.max, dt.timedelta(0)]

    async def act(pool):
        async with pool.transaction() as tx:
            await tx.execute(f"SET IntervalStyle = '{style}'")
            alone = [await tx.fetch_value("SELECT $1::interval", span) for span in spans]
            return alone, await tx.fetch_value("SELECT $1::interval[]", spans)

    assert run(server, act) == (spans, spans)


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        ("int2", 2**15, OverflowError),
        ("int4", 2**31, OverflowError),
        ("int8", 2**63, OverflowError),
        ("int4", "1", TypeError),
        ("int4", 1.0, TypeError),
        ("text", 1, TypeError),
        ("bool", 1, TypeError),
        ("bytea", "x", TypeError),
        ("date", dt.datetime(2024, 1, 1), TypeError),
        ("timestamp", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), TypeError),
        ("timestamptz", dt.datetime(2024, 1, 1), TypeError),
        ("numeric", "1", TypeError),
        ("int4[]", 1, TypeError),
        ("int4[]", ["1"], TypeError),
        ("uuid", 1, TypeError),
    ],
)
def test_a_parameter_of_the_wrong_type_is_refused_by_its_number(server, kind, value, error) -> None:
    async def act(pool):
        with pytest.raises(error, match=r"parameter \$2"):
            await pool.fetch(f"SELECT $1::int, $2::{kind}", 1, value)
        return await pool.fetch_value("SELECT 1")

    assert run(server, act) == 1


def test_an_array_in_itself(server) -> None:
    async def act(pool):
        loop: list[object] = []
        loop.append(loop)
        with pytest.raises(ValueError, match="6 dimensions"):
            await pool.fetch("SELECT $1::int[]", loop)

    run(server, act)


def test_json_of_the_table(server) -> None:
    """`fetch_json` gives what the server's own `to_json` gives, as far as JSON has one form."""
    kinds = (
        "int2",
        "int4",
        "int8",
        "float",
        "bool",
        "text",
        "varchar",
        "numeric",
        "uuid",
        "json",
        "date",
    )

    async def act(pool):
        pairs = []
        for kind, text, _ in TABLE:
            if kind.startswith(kinds) and "inf" not in text and not kind.endswith("range"):
                sql = f"SELECT {literal(text)}::{kind} AS v"
                ours = msgspec.json.decode(await pool.fetch_json(sql))[0]["v"]
                theirs = await pool.fetch_value(f"SELECT to_json({literal(text)}::{kind})")
                pairs.append((kind, text, ours, theirs))
        return pairs

    pairs = run(server, act)
    assert len(pairs) > 25
    assert [pair for pair in pairs if pair[2] != pair[3]] == []


def test_json_of_times_and_bytes(server) -> None:
    async def act(pool):
        return await pool.fetch_json_one(
            """SELECT '12:34:56'::time AS a, '2024-02-29 12:00+02'::timestamptz AS b,
                      '1969-12-31 23:59:59.5'::timestamp AS c, 'infinity'::date AS d,
                      '1 mon -2 days 03:00'::interval AS e, '\\x00ff'::bytea AS f,
                      'NaN'::float8 AS g, NULL AS h, '12:00+02'::timetz AS i"""
        )

    assert msgspec.json.decode(run(server, act)) == {
        "a": "12:34:56",
        "b": "2024-02-29T10:00:00Z",
        "c": "1969-12-31T23:59:59.500000",
        "d": "infinity",
        "e": "P1M-2DT10800.000000S",
        "f": "AP8=",
        "g": None,
        "h": None,
        "i": "12:00:00+02:00",
    }


def test_a_decimal_is_a_number_in_json_and_a_text_in_a_struct(server) -> None:
    """Newcomer B9: the guide's table of types names the difference."""

    async def act(pool):
        assert await pool.fetch_json_one("SELECT 6.25::numeric AS price") == b'{"price":6.25}'
        price = await pool.fetch_value("SELECT 6.25::numeric")
        assert msgspec.json.encode({"price": price}) == b'{"price":"6.25"}'

    run(server, act)
