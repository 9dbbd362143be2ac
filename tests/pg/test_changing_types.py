"""Types that change while a pool is open: values have the names that the server gives them."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from decimal import Decimal
from typing import Any

import msgspec
import psycopg
import pytest
from citius import pg
from pg_rig import Server, pooled

TABLE = """
DROP TABLE IF EXISTS acc CASCADE;
CREATE TABLE acc (id int, price int, stock int);
INSERT INTO acc VALUES (1, 500, 3);
"""
REPLACED = "ALTER TABLE acc DROP COLUMN price; ALTER TABLE acc ADD COLUMN weight int DEFAULT 80"
NOW = {"id": 1, "stock": 3, "weight": 80}
READ = "SELECT a AS acc, ARRAY[a] AS list FROM acc a"
WRITE = "SELECT row_to_json($1::acc)::text"


async def read(place: Any) -> Any:
    return msgspec.json.decode(await place.fetch_json_one(READ))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_dropped_and_an_added_column_of_one_type(server: Server, is_named: bool) -> None:
    """databases D5: the wire does not tell them apart, the number and the types of fields are as before."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=2, named_statements=is_named) as pool:
            await pool.core.script(TABLE, None)
            old = {"id": 1, "price": 500, "stock": 3}
            for _ in range(3):
                assert await read(pool) == {"acc": old, "list": [old]}
                assert msgspec.json.decode(await pool.fetch_value(WRITE, old)) == old
            await pool.core.script(REPLACED, None)
            for _ in range(3):
                assert await read(pool) == {"acc": NOW, "list": [NOW]}
                assert msgspec.json.decode(await pool.fetch_value(WRITE, NOW)) == NOW
                with pytest.raises(TypeError, match="there is no field"):
                    await pool.fetch_value(WRITE, old)
                new = {"id": 9, "stock": 5, "weight": 7}
                assert msgspec.json.decode(await pool.fetch_value(WRITE, new)) == new
            assert await pool.fetch_value("SELECT a FROM acc a") == (1, 3, 80)

    asyncio.run(main())


@pooled(size=2)
async def test_a_field_that_was_renamed_or_added_when_it_is_only_written(pool: pg.Pool) -> None:
    """databases D5: RENAME and ADD ATTRIBUTE, which no row that is read shows."""
    await pool.core.script(
        "DROP TYPE IF EXISTS pair CASCADE; CREATE TYPE pair AS (a int, b int)", None
    )
    sql = "SELECT row_to_json($1::pair)::text"
    many = "SELECT ($1::pair[])[1].a"
    assert msgspec.json.decode(await pool.fetch_value(sql, (1, 2))) == {"a": 1, "b": 2}
    assert await pool.fetch_value(many, [(1, 2)]) == 1
    await pool.execute("ALTER TYPE pair RENAME ATTRIBUTE b TO c")
    # A look-up is made once a second when values do not fit.
    await asyncio.sleep(1.1)  # the interval of look-ups is the object of the test
    assert msgspec.json.decode(await pool.fetch_value(sql, {"a": 1, "c": 2})) == {"a": 1, "c": 2}
    await pool.execute("ALTER TYPE pair ADD ATTRIBUTE d text")
    await asyncio.sleep(1.1)  # the same
    wider = {"a": 1, "c": 2, "d": "x"}
    assert msgspec.json.decode(await pool.fetch_value(sql, (1, 2, "x"))) == wider
    assert await pool.fetch_value(many, [wider]) == 1
    with pytest.raises(TypeError, match="expected 3 fields, got 2"):
        await pool.fetch_value(sql, (1, 2))


@pooled(size=2)
async def test_a_change_that_a_running_statement_waits_for(pool: pg.Pool) -> None:
    """databases D5: the statement is sent before the change, and executed behind it."""
    await pool.core.script(TABLE, None)
    assert (await read(pool))["acc"]["price"] == 500
    async with pool.transaction() as tx:
        await tx.execute("LOCK TABLE acc IN ACCESS EXCLUSIVE MODE")
        await tx.execute("ALTER TABLE acc DROP COLUMN price")
        await tx.execute("ALTER TABLE acc ADD COLUMN weight int DEFAULT 80")
        waiting = asyncio.ensure_future(read(pool))
        locked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not await tx.fetch_value(locked):
            await asyncio.sleep(0.01)  # a look at a condition
    assert await waiting == {"acc": NOW, "list": [NOW]}


@pooled(size=1)
async def test_the_same_in_a_transaction_is_one_error(pool: pg.Pool) -> None:
    """databases D5: a statement cannot be repeated in a failed transaction; the next one is right."""
    await pool.core.script(TABLE, None)
    assert (await read(pool))["acc"]["price"] == 500
    await pool.core.script(REPLACED, None)
    with pytest.raises(pg.ServerError, match="a composite type has changed"):
        async with pool.transaction() as tx:
            await read(tx)
    async with pool.transaction() as tx:
        assert await read(tx) == {"acc": NOW, "list": [NOW]}


def test_a_look_up_that_fails_is_tried_again(server: Server) -> None:
    """databases D7: a type is never text because its look-up was cancelled once."""

    async def main() -> None:
        dsn = server.dsn + " options='-c statement_timeout=200'"
        async with pg.Pool(server.dsn, size=1) as other, pg.Pool(dsn, size=2) as pool:
            await other.core.script(
                "DROP TYPE IF EXISTS duo CASCADE; CREATE TYPE duo AS (a int, b text);"
                "DROP TYPE IF EXISTS hue; CREATE TYPE hue AS ENUM ('red')", None,
            )  # fmt: skip
            async with other.transaction() as tx:
                await tx.execute("LOCK TABLE pg_catalog.pg_range IN ACCESS EXCLUSIVE MODE")
                calls = [pool.fetch_value("SELECT ROW(1, 'x')::duo") for _ in range(3)]
                calls.append(pool.fetch_value("SELECT ARRAY['red']::hue[]"))
                for outcome in await asyncio.gather(*calls, return_exceptions=True):
                    assert isinstance(outcome, pg.QueryCanceled)
            for _ in range(3):
                assert await pool.fetch_value("SELECT ROW(1, 'x')::duo") == (1, "x")
                assert await pool.fetch_value("SELECT ARRAY['red']::hue[]") == ["red"]
            assert await pool.fetch_value("SELECT ($1::duo).b", (2, "y")) == "y"

    asyncio.run(main())


@pooled(size=1)
async def test_two_look_ups_at_once(pool: pg.Pool) -> None:
    """Kin of databases D7: one look-up does not make text of the types that another one asks for."""
    names = [f"kind_{number}" for number in range(20)]
    await pool.core.script(
        ";".join(f"DROP TYPE IF EXISTS {n}; CREATE TYPE {n} AS (a int, b text)" for n in names),
        None,
    )
    found = await asyncio.gather(*(pool.fetch_value(f"SELECT ROW(1, 'x')::{n}") for n in names))
    assert found == [(1, "x")] * 20


def test_notices(server: Server) -> None:
    """Issue 32 I: what the server remarks is given to a hook."""
    heard: list[tuple[str, str]] = []

    async def main() -> None:
        def on_notice(notice: pg.ServerError) -> None:
            heard.append((notice.severity, str(notice).splitlines()[0]))
            raise LookupError("a hook that fails")

        async with pg.Pool(server.dsn, size=1, on_notice=on_notice) as pool:
            await pool.core.script(
                "DO $$ BEGIN RAISE WARNING 'careful'; RAISE NOTICE 'so'; END $$", None
            )
            assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(main())
    assert [severity for severity, _ in heard] == ["WARNING", "NOTICE"]
    assert "careful" in heard[0][1]


def test_psycopg_sees_what_was_written(server: Server) -> None:
    """databases D16: infinity that was read is infinity when it is written, in ranges and COPY too."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.core.script("DROP TABLE IF EXISTS inf; CREATE TABLE inf (v text)", None)
            for type_name in (
                "timestamptz",
                "timestamp",
                "date",
                "tstzrange",
                "daterange",
                "date[]",
            ):
                for sign in ("", "-"):
                    text = f"{sign}infinity"
                    if "range" in type_name:
                        text = f"[{text},{text}]"
                    if "[]" in type_name:
                        text = f"{{{text}}}"
                    value = await pool.fetch_value(f"SELECT '{text}'::{type_name}")
                    back = f"SELECT ($1::{type_name})::text = ('{text}'::{type_name})::text"
                    assert await pool.fetch_value(back, value) is True, (type_name, text)
            # Days that are no infinity are what they were, too.
            for text in ("9999-12-31", "0001-01-01"):
                for type_name in ("date", "timestamp", "timestamptz"):
                    value = await pool.fetch_value(f"SELECT '{text}'::{type_name}")
                    back = f"SELECT $1::{type_name} = '{text}'::{type_name}"
                    assert await pool.fetch_value(back, value) is True, (type_name, text)
            moment = await pool.fetch_value("SELECT 'infinity'::timestamptz")
            day = await pool.fetch_value("SELECT '-infinity'::date")
            assert await pool.copy_in("COPY inf FROM STDIN", [(moment,), (day,)]) == 2

    asyncio.run(main())
    with psycopg.connect(server.dsn) as other:
        assert other.execute("SELECT v FROM inf").fetchall() == [("infinity",), ("-infinity",)]


@pooled(size=1)
async def test_years_of_json(pool: pg.Pool) -> None:
    """databases D18: ISO 8601 before the year 1 and beyond 9999; ranges are in the server's own text."""
    got = await pool.fetch_json_one(
        "SELECT '0044-03-15 BC'::date AS a, '12024-01-02'::date AS b, '0001-01-01 BC'::date AS c,"
        " '0044-03-15 12:00 BC'::timestamptz AS d, '0001-01-01'::date AS e,"
        " daterange('0044-03-15 BC', '12024-01-02') AS f, tsrange('0044-03-15 12:00 BC', null) AS g"
    )
    assert msgspec.json.decode(got) == {
        "a": "-0043-03-15", "b": "+12024-01-02", "c": "0000-01-01", "d": "-0043-03-15T12:00:00Z",
        "e": "0001-01-01", "f": '["0044-03-15 BC",12024-01-02)', "g": '["0044-03-15 12:00:00 BC",)',
    }  # fmt: skip


@pooled(size=1)
async def test_lone_surrogates(pool: pg.Pool) -> None:
    """databases M5: a column of json with a lone surrogate is read, and written as it was."""
    value = await pool.fetch_value("""SELECT '{"a": ["\\ud800", "é"]}'::json""")
    assert value == {"a": ["\ud800", "é"]}
    assert await pool.fetch_value("SELECT $1::json", value) == value
    # One row does not fail the others.
    rows = await pool.fetch("""SELECT * FROM (VALUES ('1'::json), ('"\\ud800"')) AS t""")
    assert rows == [(1,), ("\ud800",)]


@pooled(size=1)
async def test_parameters_of_types_that_are_text(pool: pg.Pool) -> None:
    """Issue 32 I: objects of `ipaddress`, dicts for hstore; money is refused with the remedy."""
    await pool.core.script("CREATE EXTENSION IF NOT EXISTS hstore", None)
    addresses = [
        ipaddress.ip_address("10.0.0.1"), ipaddress.ip_interface("10.0.0.1/8"),
        ipaddress.ip_address("::1"), ipaddress.ip_network("fe80::/10"),
    ]  # fmt: skip
    for address in addresses:
        assert await pool.fetch_value("SELECT $1::inet", address) == str(address)
        assert await pool.fetch_value("SELECT $1::inet[]", [address]) == [str(address)]
    network = ipaddress.ip_network("10.0.0.0/8")
    assert await pool.fetch_value("SELECT $1::cidr", network) == "10.0.0.0/8"
    with pytest.raises(TypeError, match="ipaddress, got int"):
        await pool.fetch_value("SELECT $1::inet", 1)
    odd = {'a"b': "\\c", "": "", "null": None, "é=>": 'x",'}
    back = await pool.fetch_value("SELECT hstore_to_json($1)", odd)
    assert back == odd
    assert await pool.fetch_value("SELECT hstore_to_json(($1::hstore[])[1])", [odd]) == odd
    assert await pool.fetch_value("SELECT $1::hstore", {}) == ""
    assert await pool.fetch_value("SELECT $1::hstore", '"k"=>"v"') == '"k"=>"v"'
    with pytest.raises(TypeError, match="str or None as a value, got int"):
        await pool.fetch_value("SELECT $1::hstore", {"a": 1})
    with pytest.raises(TypeError, match="numeric::money"):
        await pool.fetch_value("SELECT $1::money", Decimal("1.5"))
    assert await pool.fetch_value("SELECT $1::numeric::money::numeric", Decimal("1.5")) == 1.5


@pooled(size=1)
async def test_composites_with_citext(pool: pg.Pool) -> None:
    """databases 25: a field of citext does not make text of the whole value."""
    await pool.core.script(
        "CREATE EXTENSION IF NOT EXISTS citext; DROP TYPE IF EXISTS tag;"
        "CREATE TYPE tag AS (name citext, number int)", None,
    )  # fmt: skip
    assert await pool.fetch_value("SELECT ROW('A b', 1)::tag") == ("A b", 1)
    assert await pool.fetch_value("SELECT ARRAY[ROW('A', 1)::tag]") == [("A", 1)]
    assert await pool.fetch_value("SELECT $1::tag[]", [("Q", 2)]) == [("Q", 2)]
    assert await pool.fetch_value("SELECT ROW('A'::citext, 1)") == ("A", 1)
    assert await pool.fetch_value("SELECT $1::citext = 'abc'", "ABC") is True
    assert await pool.fetch_value("SELECT ARRAY['a,b', NULL]::citext[]") == ["a,b", None]
    assert msgspec.json.decode(await pool.fetch_json_one("SELECT ROW('A', 1)::tag AS t")) == {
        "t": {"name": "A", "number": 1}
    }


@pooled(size=1)
async def test_values_that_the_server_would_take_for_others(pool: pg.Pool) -> None:
    """Debatable points of databases: refused with the number of their parameter."""
    aware = dt.time(12, tzinfo=dt.UTC)
    with pytest.raises(TypeError, match="a naive time for time"):
        await pool.fetch_value("SELECT $1::time", aware)
    assert await pool.fetch_value("SELECT $1::timetz", aware) == aware
    with pytest.raises(TypeError, match="expected Decimal, int or float, got bool"):
        await pool.fetch_value("SELECT $1::numeric", True)


@pooled(size=1)
async def test_another_client_encoding_ends_the_session(pool: pg.Pool) -> None:
    """databases 49: texts are never read or written in an encoding that is not theirs."""
    with pytest.raises(pg.SessionLost, match="client_encoding was set to LATIN1"):
        async with pool.transaction() as tx:
            await tx.execute("SET client_encoding = 'LATIN1'")
            await tx.fetch_value("SELECT 'é'")
    assert await pool.fetch_value("SELECT 'é'") == "é"


@pooled(size=1)
async def test_a_change_of_one_type_leaves_lists_of_others_what_they_are(pool: pg.Pool) -> None:
    """databases D5, D7: their elements were forgotten and they were not, so that they were lists of texts."""
    await pool.core.script(
        TABLE
        + "DROP TYPE IF EXISTS held, pair CASCADE; CREATE TYPE pair AS (a int, b int);"
        + "CREATE TYPE held AS (pairs pair[]); DROP DOMAIN IF EXISTS many; CREATE DOMAIN many AS pair[]",
        None,
    )
    texts = {
        "SELECT ARRAY[ROW(1, 2)::pair] AS n{}": [(1, 2)],
        "SELECT ROW(ARRAY[ROW(1, 2)::pair])::held AS n{}": ([(1, 2)],),
        "SELECT (SELECT ARRAY[ROW(1, 2)::pair]::many) AS n{}": [(1, 2)],
    }
    for number in range(4):
        for text, value in texts.items():
            # Text that is new: it is described with what is known now.
            assert await pool.fetch_value(text.format(number)) == value
        written = f"SELECT ($1::pair[])[1].b AS n{number}"
        assert await pool.fetch_value(written, [{"b": 4, "a": 3}]) == 4
        await read(pool)
        await pool.core.script(f"ALTER TABLE acc ADD COLUMN c{number} int", None)
        await read(pool)


@pytest.mark.parametrize("is_named", [True, False])
def test_several_rows_of_a_composite_type(server: Server, is_named: bool) -> None:
    """databases D5: without a name, those behind the first were executed as its look at the catalog."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1, named_statements=is_named) as pool:
            for names in ("ab", "b") if is_named else ("cd", "c"):
                fields = ", ".join(f"{name} text" for name in names)
                await pool.core.script(
                    f"CREATE TYPE part_{names} AS ({fields});"
                    f"CREATE TABLE several_{names} (it part_{names}, n int)",
                    None,
                )
                value = {name: name for name in names}
                rows = [(value, number) for number in range(3)]
                sql = f"INSERT INTO several_{names} VALUES ($1, $2)"
                # Long texts have no name.
                for text in (sql, f"{sql} /* {'x' * 9000} */"):
                    assert await pool.execute_many(text, rows) == 3
                    found = await pool.fetch_many(f"{text} RETURNING to_json(it)", rows)
                    assert found == [(value,)] * 3

    asyncio.run(main())


@pooled(size=1)
async def test_several_rows_of_a_type_that_was_replaced(pool: pg.Pool) -> None:
    """databases D5: values that do not fit have a statement described anew, also one for several rows."""
    for names in ("ab", "cd", "dbc"):
        fields = ", ".join(f"{name} text" for name in names)
        made = f"DROP TYPE IF EXISTS replaced CASCADE; CREATE TYPE replaced AS ({fields})"
        await pool.core.script(made, None)
        value = {name: name for name in names}
        rows = await pool.fetch_many("SELECT to_json($1::replaced)", [(value,)] * 2)
        assert rows == [(value,)] * 2
    with pytest.raises(TypeError, match=r"rows\[1\]"):
        await pool.fetch_many("SELECT to_json($1::replaced)", [(value,), ({"x": "x"},)])


WIDER = [("text", "2"), ("bigint", 2), ("numeric", Decimal(2))]


@pytest.mark.parametrize("place", ["pool", "transaction"])
@pytest.mark.parametrize(("becomes", "value"), WIDER, ids=[one for one, _ in WIDER])
def test_columns_that_change_under_a_statement_without_a_name(
    server: Server, becomes: str, value: object, place: str
) -> None:
    """Each such statement failed once, after it had been executed: what changes rows had done so."""

    async def reads(pool: Any) -> list[Any]:
        found = [
            await pool.fetch_value("SELECT n FROM wider"),
            await pool.fetch("SELECT * FROM wider", as_=dict),
            await pool.fetch("UPDATE wider SET id = id + 1 RETURNING id, n"),
            msgspec.json.decode(await pool.fetch_json_one("SELECT p, n FROM wider")),
        ]
        await pool.execute("UPDATE wider SET id = 1")
        return found

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1, named_statements=False) as pool:
            await pool.core.script(
                "DROP TABLE IF EXISTS wider; DROP TYPE IF EXISTS part; CREATE TYPE part AS (x int);"
                "CREATE TABLE wider (id int, n int, p part); INSERT INTO wider VALUES (1, 2, ROW(3))",
                None,
            )
            for _ in range(2):
                assert (await reads(pool))[0] == 2
            await pool.core.script(f"ALTER TABLE wider ALTER n TYPE {becomes}", None)
            in_json = value if becomes != "numeric" else 2
            expected = [
                value, [{"id": 1, "n": value, "p": (3,)}], [(2, value)], {"p": {"x": 3}, "n": in_json},
            ]  # fmt: skip
            if place == "pool":
                assert await reads(pool) == expected
            else:
                async with pool.transaction() as tx:
                    assert await reads(tx) == expected
            assert await reads(pool) == expected

    asyncio.run(main())


@pytest.mark.parametrize("is_named", [True, False])
def test_a_number_for_a_column_that_has_become_wider(server: Server, is_named: bool) -> None:
    """It was too large for the type of before until the session ended."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1, named_statements=is_named) as pool:
            await pool.core.script(
                "DROP TABLE IF EXISTS wider; CREATE TABLE wider (n int); INSERT INTO wider VALUES (1)",
                None,
            )
            sql = "UPDATE wider SET n = $1"
            assert await pool.execute(sql, 2) == 1
            with pytest.raises(OverflowError):
                await pool.execute(sql, 5_000_000_000)
            await pool.core.script("ALTER TABLE wider ALTER n TYPE bigint", None)
            # What clients may send has statements described again once a second.
            await asyncio.sleep(1.1)  # that interval is the object of the test
            async with pool.transaction() as tx:
                assert await tx.execute(sql, 5_000_000_000) == 1
            assert await pool.fetch_value("SELECT n FROM wider") == 5_000_000_000

    asyncio.run(main())
