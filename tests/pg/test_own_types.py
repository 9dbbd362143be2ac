"""Ranges, multiranges, composite types, enumerations, domains, arrays of all of them, and codecs."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import enum
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from citius import pg
from citius.errors import ConfigError
from citius.pg import Range
from pg_rig import Server, pooled

SCHEMA = """
DROP SCHEMA IF EXISTS own CASCADE;
CREATE SCHEMA own;
SET search_path = own, public;
CREATE TYPE mood AS ENUM ('happy', 'so so', '"quoted", {sad}');
CREATE TYPE place AS (street text, number int, built date);
CREATE TYPE journey AS (start place, stops place[], moods mood[], span int4range);
CREATE TYPE located AS (name text, at point);
CREATE DOMAIN age AS int CHECK (VALUE >= 0);
CREATE DOMAIN old AS age CHECK (VALUE >= 65);
CREATE DOMAIN ages AS int[];
CREATE TYPE agerange AS RANGE (subtype = age);
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TYPE inetrange AS RANGE (subtype = inet);
"""
PLACE = ('Main "St", (1) \\ x', None, dt.date(2024, 2, 29))
# Type, the object, and its JSON.
VALUES: list[tuple[str, Any, Any]] = [
    ("int4range", Range(1, 5), "[1,5)"),
    ("int8range", Range(is_empty=True), "empty"),
    ("int4range", Range(None, 5, "()"), "(,5)"),
    ("numrange", Range(Decimal("1.10"), None, "()"), "(1.10,)"),
    ("daterange", Range(dt.date(2024, 1, 1), dt.date(2024, 2, 1)), "[2024-01-01,2024-02-01)"),
    (
        "tsrange",
        Range(dt.datetime(2024, 1, 1, 12, 0, 0, 500000), dt.datetime(2024, 1, 2), "(]"),
        '("2024-01-01 12:00:00.5","2024-01-02 00:00:00"]',
    ),
    (
        "tstzrange",
        Range(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None, "()"),
        '("2024-01-01 00:00:00+00",)',
    ),
    ("int4multirange", [Range(1, 5), Range(7, 9)], "{[1,5),[7,9)}"),
    ("datemultirange", [], "{}"),
    ("int4range[]", [Range(1, 5), None], ["[1,5)", None]),
    ("floatrange", Range(0.5, 1.5, "[]"), "[0.5,1.5]"),
    ("agerange", Range(5, 6), "[5,6)"),
    ("mood", '"quoted", {sad}', '"quoted", {sad}'),
    ("mood[]", ["happy", None, '"quoted", {sad}'], ["happy", None, '"quoted", {sad}']),
    ("age", 7, 7),
    ("old", 70, 70),
    ("ages", [1, 2], [1, 2]),
    ("place", PLACE, {"street": PLACE[0], "number": None, "built": "2024-02-29"}),
    ("place", (None, None, None), {"street": None, "number": None, "built": None}),
    ("place[]", [PLACE, None], [{"street": PLACE[0], "number": None, "built": "2024-02-29"}, None]),
    (
        "journey",
        (("a", 1, None), [("b", 2, None)], ["happy"], Range(1, 2)),
        {
            "start": {"street": "a", "number": 1, "built": None},
            "stops": [{"street": "b", "number": 2, "built": None}],
            "moods": ["happy"],
            "span": "[1,2)",
        },
    ),
    # Types that come as text, and arrays of them.
    ("inet[]", ["10.0.0.1", None, "::1"], ["10.0.0.1", None, "::1"]),
    ("box[]", ["(3,4),(1,2)", "(1,1),(0,0)"], ["(3,4),(1,2)", "(1,1),(0,0)"]),
    ("point[]", [["(1,2)"], ["(3,4)"]], [["(1,2)"], ["(3,4)"]]),
    ('"char"[]', ["a", "b"], ["a", "b"]),
    ("located", '("a b","(1,2)")', '("a b","(1,2)")'),
    ("inetrange", "[10.0.0.1,10.0.0.9)", "[10.0.0.1,10.0.0.9)"),
]  # fmt: skip


@pooled(size=2)
async def test_values_come_back(pool: pg.Pool) -> None:
    await pool.core.script(SCHEMA, None)
    for kind, value, in_json in VALUES:
        name = kind if kind.startswith('"') else f"own.{kind}" if is_own(kind) else kind
        sql = f"SELECT $1::{name} AS v"
        assert await pool.fetch_value(sql, value) == value, kind
        assert await pool.fetch_value(sql, None) is None
        # The same through the other session, whose statement is prepared anew.
        values = await pg.gather(*(pool.fetch_value(sql, value) for _ in range(20)))
        assert values == [value] * 20
        assert msgspec.json.decode(await pool.fetch_json(sql, value)) == [{"v": in_json}], kind
        assert await pool.fetch_value(sql + ", 1 AS other", value) == value
        their = await pool.fetch_value(f"SELECT to_json($1::{name})::text", value)
        assert same_json(msgspec.json.decode(their), in_json), kind


def is_own(kind: str) -> bool:
    return f" {kind.rstrip('[]')} " in SCHEMA.replace("(", " ").replace(";", " ")


def same_json(their: Any, ours: Any) -> bool:
    """The server writes the text of types that come as text with another form within JSON."""
    return their == ours or (isinstance(their, dict) and isinstance(ours, str))


class Mood(enum.Enum):
    HAPPY = "happy"
    SO_SO = "so so"


class Place(msgspec.Struct):
    street: str | None
    number: int | None
    built: dt.date | None


def test_codecs(server: Server) -> None:
    def to_cents(text: str) -> int:
        return int(text.lstrip("$").replace(",", "").replace(".", ""))

    codecs = [
        pg.Codec.enum("own.mood", Mood),
        pg.Codec.composite("own.place", Place),
        pg.Codec("numeric", float),
        pg.Codec("money", to_cents, lambda cents: f"{cents / 100:.2f}", as_text=True),
        pg.Codec("jsonb", as_text=True),
        pg.Codec("int8", decode=lambda number: f"<{number}>"),
    ]

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.core.script(SCHEMA, None)
        async with pg.Pool(server.dsn, size=2, codecs=codecs) as pool:
            assert await pool.fetch_value("SELECT $1::own.mood", Mood.SO_SO) is Mood.SO_SO
            assert await pool.fetch_value("SELECT $1::own.mood", "happy") is Mood.HAPPY
            moods = [Mood.HAPPY, None, Mood.SO_SO]
            assert await pool.fetch_value("SELECT $1::own.mood[]", moods) == moods
            place = Place("a, b", 1, None)
            assert await pool.fetch_value("SELECT $1::own.place", place) == place
            assert await pool.fetch_value("SELECT $1::own.place[]", [place]) == [place]
            as_dict = {"street": "a, b", "number": 1, "built": None}
            assert await pool.fetch_value("SELECT $1::own.place", as_dict) == place
            journey = await pool.fetch_value(
                "SELECT ROW($1::own.place, ARRAY[$1], ARRAY[$2::own.mood], NULL)::own.journey",
                place,
                Mood.HAPPY,
            )
            assert journey == (place, [place], [Mood.HAPPY], None)
            value = await pool.fetch_value("SELECT 1.5::numeric")
            assert (value, type(value)) == (1.5, float)
            assert await pool.fetch_value("SELECT numrange(1.5, 2)") == Range(1.5, 2.0)
            assert await pool.fetch_value("SELECT $1::money", 123456) == 123456
            assert await pool.fetch_value("SELECT ARRAY[$1::money]", 5) == [5]
            text = '{"a": 1}'
            assert await pool.fetch_value("SELECT $1::jsonb", text) == text
            assert await pool.fetch_value("SELECT 7::int8") == "<7>"
            # JSON is written without them.
            sql = "SELECT 1.5::numeric AS a, $1::jsonb AS b, $2::own.place AS c, 7::int8 AS d"
            assert msgspec.json.decode(await pool.fetch_json_one(sql, text, place)) == {
                "a": 1.5, "b": {"a": 1}, "c": as_dict, "d": 7,
            }  # fmt: skip
            rows = await pool.fetch("SELECT 1.5::numeric AS price", as_=dict)
            assert rows == [{"price": 1.5}]
        with pytest.raises(ConfigError, match=r"no type 'nothing\.here'"):
            await pg.Pool(server.dsn, codecs=[pg.Codec("nothing.here", str)]).open()

    asyncio.run(asyncio.wait_for(main(), 60))


@pooled(size=1)
async def test_a_codec_that_fails_is_the_error_of_its_statement(pool: pg.Pool) -> None:
    def refuse(value: object) -> object:
        raise ValueError(f"not {value}")

    broken = pg.Pool(
        f"host={pool.targets[0].host} user=tester dbname=postgres", size=1,
        codecs=[pg.Codec("date", refuse, refuse)],
    )  # fmt: skip
    async with broken:
        with pytest.raises(ValueError, match="not 2024-01-01"):
            await broken.fetch("SELECT '2024-01-01'::date")
        with pytest.raises(ValueError, match=r"parameter \$1: not 5"):
            await broken.fetch("SELECT $1::date", 5)
        assert await broken.fetch_value("SELECT 1") == 1


@pooled(size=2)
async def test_what_does_not_fit_is_refused(pool: pg.Pool) -> None:
    await pool.core.script(SCHEMA, None)
    for sql, value, error in (
        ("SELECT $1::int4range", (1, 2), "expected a Range"),
        ("SELECT $1::int4range", Range("a", 2), "expected int"),
        ("SELECT $1::own.place", ("a", 1), "expected 3 fields, got 2"),
        ("SELECT $1::own.place", {"street": "a"}, 'no field "number"'),
        ("SELECT $1::own.place", 5, "a tuple, a dict, or an object"),
        ("SELECT $1::own.mood", Mood, "expected str"),
        ("SELECT $1::int4multirange", Range(1, 2), "expected a list of Range"),
    ):
        with pytest.raises(TypeError, match=error):
            await pool.fetch(sql, value)
    with pytest.raises(pg.ServerError, match="invalid input value for enum"):
        await pool.fetch("SELECT $1::own.mood", "furious")
    with pytest.raises(pg.CheckViolation):
        await pool.fetch("SELECT $1::own.old", 5)
    # No quoting makes one value of another.
    text = "'); DROP TYPE own.mood; --"
    with pytest.raises(pg.ServerError, match="invalid input value for enum"):
        await pool.fetch("SELECT $1::own.mood", text)
    assert await pool.fetch_value("SELECT ($1::own.place).street", (text, 1, None)) == text
    assert await pool.fetch_value("SELECT lower($1::numrange)", Range(Decimal(1), None)) == 1
    with pytest.raises(ValueError, match="bounds"):
        Range(1, 2, "<)")  # pyright: ignore[reportArgumentType]


@pooled(size=2)
async def test_a_composite_type_that_changes(pool: pg.Pool) -> None:
    await pool.core.script(SCHEMA, None)
    sql = "SELECT ROW('a', 1, NULL)::own.place AS p"
    for call in (pool.fetch_value, pool.fetch_json):
        assert await call(sql)
    await pool.execute("ALTER TYPE own.place ADD ATTRIBUTE open bool")
    wider = "SELECT ROW('a', 1, NULL, true)::own.place AS p"
    assert await pool.fetch_value(wider) == ("a", 1, None, True)
    assert msgspec.json.decode(await pool.fetch_json(wider))[0]["p"]["open"] is True
    await pool.execute("ALTER TYPE own.place DROP ATTRIBUTE number")
    narrow = "SELECT ROW('a', NULL, true)::own.place AS p"
    assert msgspec.json.decode(await pool.fetch_json(narrow))[0]["p"] == {
        "street": "a", "built": None, "open": True,
    }  # fmt: skip
    assert await pool.fetch_value(narrow) == ("a", None, True)
    await pool.core.script("DROP TYPE own.mood CASCADE; CREATE TYPE own.mood AS ENUM ('new')", None)
    assert await pool.fetch_value("SELECT $1::own.mood", "new") == "new"


@pooled(size=1)
async def test_rows_without_a_type(pool: pg.Pool) -> None:
    assert await pool.fetch_value("SELECT ROW(1, 'a'::text, ROW(true, NULL))") == (
        1,
        "a",
        (True, None),
    )
    assert (
        await pool.fetch_json("SELECT ROW(1, ROW(NULL)) AS v")
        == b'[{"v":{"f1":1,"f2":{"f1":null}}}]'
    )
    assert await pool.fetch_value("SELECT array_agg(t) FROM (VALUES (1, 2), (3, 4)) t") == [
        (1, 2),
        (3, 4),
    ]
    for call in (pool.fetch_value, pool.fetch_json):
        with pytest.raises(ValueError, match="text only"):
            await call("SELECT ROW(point(1, 2))")
        assert await pool.fetch_value("SELECT 1") == 1


@pooled(size=1, named_statements=False)
async def test_without_names(pool: pg.Pool) -> None:
    await pool.core.script(SCHEMA, None)
    for _ in range(2):
        assert await pool.fetch_value("SELECT $1::own.place", PLACE) == PLACE
    async with pool.transaction() as tx:
        assert await tx.fetch_value("SELECT $1::own.mood[]", ["happy"]) == ["happy"]


@pooled(size=1)
async def test_others_wait_while_types_are_looked_up(pool: pg.Pool) -> None:
    """Statements behind one with an unknown type keep their order, and a caller that leaves harms none."""
    await pool.core.script(SCHEMA, None)
    calls = [
        asyncio.ensure_future(pool.fetch_value(f"SELECT {n}, $1::own.mood[]", ["happy"]))
        for n in range(8)
    ]
    await asyncio.sleep(0)
    calls[0].cancel()
    others = [asyncio.ensure_future(pool.fetch_value("SELECT $1::int", n)) for n in range(8)]
    assert await asyncio.gather(*calls[1:]) == [*range(1, 8)]
    assert await asyncio.gather(*others) == [*range(8)]


def test_ranges_hold_values() -> None:
    assert 1 in Range(1, 5)
    assert 5 not in Range(1, 5)
    assert 5 in Range(1, 5, "(]")
    assert 1 not in Range(1, 5, "()")
    assert 10**9 in Range(1, None)
    assert 1 not in Range(is_empty=True)
    assert not Range(is_empty=True)
    assert (str(Range(1, None, "(]")), str(Range(is_empty=True))) == ("(1,]", "empty")


@pytest.mark.parametrize("is_named", [True, False])
def test_codecs_of_types_that_were_made_anew(server: Server, is_named: bool) -> None:
    """They were by the numbers of the types at the start: text came in place of objects, without a word."""
    made = (
        "CREATE TYPE tone AS ENUM ({labels}); CREATE TYPE spot AS (street text, number int, built date);"
        "CREATE EXTENSION citext;"
    )
    dropped = "DROP TYPE IF EXISTS tone, spot CASCADE; DROP EXTENSION IF EXISTS citext CASCADE;"
    codecs = [
        pg.Codec.enum("tone", Mood),
        pg.Codec.composite("spot", Place),
        pg.Codec("citext", lambda text: text.upper(), lambda text: text.lower()),
    ]
    place = Place("it's", 1, None)

    async def check(place_of: Any) -> None:
        assert await place_of.fetch_value("SELECT $1::tone", Mood.HAPPY) is Mood.HAPPY
        moods = [Mood.HAPPY, Mood.SO_SO]
        assert await place_of.fetch_value("SELECT $1::tone[]", moods) == moods
        assert await place_of.fetch_value("SELECT ARRAY[$1::spot]", place) == [place]
        assert await place_of.fetch_value("SELECT ROW($1::spot, $2::tone)", place, moods[0]) == (
            place,
            Mood.HAPPY,
        )
        assert await place_of.fetch_value("SELECT $1::citext", "Abc") == "ABC"

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as other:
            await other.core.script(dropped + made.format(labels="'happy', 'so so'"), None)
            async with pg.Pool(
                server.dsn, size=2, codecs=codecs, named_statements=is_named
            ) as pool:
                await check(pool)
                labels = "'so so', 'sad', 'happy'"
                await other.core.script(dropped + made.format(labels=labels), None)
                if not is_named:
                    # The text of a statement is described once; that it has changed is an error, once.
                    for sql in ("SELECT $1::tone", "SELECT $1::citext"):
                        with contextlib.suppress(pg.ProtocolError):
                            await pool.fetch_value(sql, None)
                await check(pool)
                async with pool.transaction() as tx:
                    await check(tx)
                # As migrations replace an enumeration.
                await other.core.script(
                    "ALTER TYPE tone RENAME TO old_tone; CREATE TYPE tone AS ENUM ('happy', 'so so');"
                    "DROP TYPE old_tone",
                    None,
                )
                await asyncio.gather(*(check(pool) for _ in range(4 if is_named else 0)))

    asyncio.run(asyncio.wait_for(main(), 60))
