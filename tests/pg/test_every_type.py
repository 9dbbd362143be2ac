"""Every type of ``pg_type``: what Python gets is what psycopg gets, and what it gives back is the same value.

Types that have no class here come as their text; psycopg's object, written by psycopg, is that text. An array
of any type is a list of the same.
"""

from __future__ import annotations

import asyncio

import pytest
from citius import pg

psycopg = pytest.importorskip("psycopg", exc_type=ImportError)

# A value of each type, in SQL.
VALUES = {
    "aclitem": "tester=r/tester",
    "bit": "1",
    "bool": "t",
    "box": "(3,4),(1,2)",
    "bpchar": "x",
    "bytea": "\\x00ff",
    "char": "c",
    "cid": "7",
    "cidr": "10.0.0.0/8",
    "circle": "<(1,2),3>",
    "date": "2024-02-29",
    "datemultirange": "{[2024-01-01,2024-02-01),[2024-03-01,2024-04-01)}",
    "daterange": "[2024-01-01,2024-02-01)",
    "float4": "1.5",
    "float8": "0.1",
    "gtsvector": None,
    "inet": "10.0.0.1/8",
    "int2": "-32768",
    "int2vector": "1 2 3",
    "int4": "2147483647",
    "int4multirange": "{[1,5),[7,9)}",
    "int4range": "[1,5)",
    "int8": "-9223372036854775808",
    "int8multirange": "{}",
    "int8range": "empty",
    "interval": "1 day 02:03:04.5",
    "json": '{"a": [1, null]}',
    "jsonb": '{"a": [1.5, "x"]}',
    "jsonpath": '$."a"[*]',
    "line": "{1,2,3}",
    "lseg": "[(1,2),(3,4)]",
    "macaddr": "08:00:2b:01:02:03",
    "macaddr8": "08:00:2b:01:02:03:04:05",
    "money": "$1,234.56",
    "name": "x",
    "numeric": "-12345678901234567890.000120",
    "nummultirange": "{[1.1,2.2)}",
    "numrange": "(,2.5]",
    "oid": "4294967295",
    "oidvector": "1 2 3",
    "path": "((1,2),(3,4))",
    "pg_brin_bloom_summary": None,
    "pg_brin_minmax_multi_summary": None,
    "pg_dependencies": None,
    "pg_lsn": "0/10",
    "pg_mcv_list": None,
    "pg_ndistinct": None,
    "pg_node_tree": None,
    "pg_snapshot": "10:20:10,14",
    "point": "(1,2)",
    "polygon": "((1,2),(3,4),(5,6))",
    "refcursor": "c",
    "regclass": "pg_type",
    "regcollation": '"C"',
    "regconfig": "english",
    "regdictionary": "simple",
    "regnamespace": "pg_catalog",
    "regoper": "pg_catalog.||/",
    "regoperator": "+(integer,integer)",
    "regproc": "now",
    "regprocedure": "now()",
    "regrole": "tester",
    "regtype": "integer",
    "text": "héllo\n\\ \"' 😀",
    "tid": "(1,2)",
    "time": "23:59:59.999999",
    "timestamp": "1969-12-31 23:59:59.999999",
    "timestamptz": "2024-02-29 12:00:00+02",
    "timetz": "12:00:00.5+02",
    "tsmultirange": "{}",
    "tsquery": "'a' & 'b'",
    "tsrange": '["2024-01-01 00:00:00","2024-01-02 00:00:00")',
    "tstzmultirange": "{}",
    "tstzrange": '["2024-01-01 00:00:00+00",)',
    "tsvector": "'a':1 'b':2",
    "txid_snapshot": "10:20:10,14",
    "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "varbit": "1011",
    "varchar": "x",
    "xid": "7",
    "xid8": "7",
    "xml": "<a>b</a>",
}
DOMAINS = {
    "information_schema.cardinal_number": "7",
    "information_schema.character_data": "x",
    "information_schema.sql_identifier": "x",
    "information_schema.time_stamp": "2024-02-29 12:00:00.12+02",
    "information_schema.yes_or_no": "YES",
}
# Where values are that only the server makes, and those of pseudo-types that a column can have.
MADE = {
    "anyarray": "SELECT most_common_vals FROM pg_stats WHERE tablename = 'made' AND attname = 'b'",
    "cstring": "SELECT int4out(7)",
    "pg_dependencies": "SELECT stxddependencies FROM pg_statistic_ext_data",
    "pg_mcv_list": "SELECT stxdmcv FROM pg_statistic_ext_data",
    "pg_ndistinct": "SELECT stxdndistinct FROM pg_statistic_ext_data",
    "pg_node_tree": "SELECT adbin FROM pg_attrdef WHERE adrelid = 'made'::regclass",
    "record": "SELECT ROW(1, 'a'::text, NULL, ARRAY[1, 2], ROW(2.5))",
    "void": "SELECT pg_sleep(0)",
}
# The input of these is refused.
INTERNAL = {name for name, value in VALUES.items() if value is None}
TYPES = sorted(VALUES.keys() - INTERNAL)


def literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def fetched(server, *statements: tuple[str, tuple[object, ...]]) -> list[object]:
    async def main() -> list[object]:
        async with pg.Pool(server.dsn, size=1) as pool:
            return [await pool.fetch_value(sql, *arguments) for sql, arguments in statements]

    return asyncio.run(main())


@pytest.fixture(scope="module")
def theirs(server):
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def test_the_list_is_complete(server) -> None:
    """Types of applications are tested with the servers that have them."""
    [found] = fetched(
        server,
        (
            "SELECT array_agg(typname::text) FROM pg_type t WHERE typnamespace = 'pg_catalog'::regnamespace "
            "AND typtype IN ('b', 'r', 'm') AND NOT EXISTS "
            "(SELECT 1 FROM pg_type e WHERE e.typarray = t.oid)",
            (),
        ),
    )
    assert set(found) <= VALUES.keys()


def test_the_list_of_domains_is_complete(server) -> None:
    [found] = fetched(
        server, ("SELECT array_agg(oid::regtype::text) FROM pg_type WHERE typtype = 'd'", ())
    )
    assert set(found) == DOMAINS.keys()


def as_ours(value: object) -> object:
    """What psycopg has classes of its own for."""
    if isinstance(value, psycopg.types.range.Range):
        if value.isempty:
            return pg.Range(is_empty=True)
        return pg.Range(value.lower, value.upper, value.bounds)
    if isinstance(value, psycopg.types.multirange.Multirange):
        return [as_ours(one) for one in value]
    return value


def check(server, theirs, kind: str, text: str) -> None:
    sql = f"SELECT {literal(text)}::{kind}"
    [ours] = fetched(server, (sql, ()))
    their = as_ours(theirs.execute(sql).fetchone()[0])
    if isinstance(ours, str) and not isinstance(their, str):
        # No class here.
        their = theirs.execute(f"SELECT %s::{kind}::text", [their]).fetchone()[0]
    assert (ours, type(ours)) == (their, type(their))
    # `json` keeps the spaces that it is given.
    form = "jsonb::text" if kind == '"json"' else "text"
    statements = (f"SELECT $1::{kind}::{form}", (ours,)), (f"{sql}::{form}", ())
    back, in_sql = fetched(server, *statements)
    assert back == in_sql
    of_many = f"SELECT ARRAY[{literal(text)}::{kind}, NULL]"
    [many] = fetched(server, (of_many, ()))
    assert many == [ours, None]
    assert type(many[0]) is type(ours)
    compared = f"SELECT ($1::{kind}[])::text = ({of_many})::text"
    is_same, nothing = fetched(server, (compared, (many,)), (f"SELECT $1::{kind}[]", (None,)))
    assert is_same is (True if kind != '"json"' else is_same)
    assert nothing is None


@pytest.mark.parametrize("kind", TYPES)
def test_a_value(server, theirs, kind: str) -> None:
    check(server, theirs, f'"{kind}"', VALUES[kind])


@pytest.mark.parametrize("kind", sorted(DOMAINS))
def test_a_value_of_a_domain(server, theirs, kind: str) -> None:
    check(server, theirs, kind, DOMAINS[kind])


@pytest.fixture(scope="module")
def made(theirs) -> None:
    theirs.execute("CREATE TABLE made (a int DEFAULT 1 + 1, b int)")
    theirs.execute("INSERT INTO made SELECT g % 3, g % 2 FROM generate_series(1, 1000) g")
    theirs.execute("CREATE STATISTICS of_made (ndistinct, dependencies, mcv) ON a, b FROM made")
    theirs.execute("ANALYZE made")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("kind", sorted(MADE))
def test_a_value_that_is_only_read(server, theirs, kind: str) -> None:
    sql = MADE[kind]
    described = theirs.execute(sql).description[0].type_code
    assert theirs.execute("SELECT %s::oid::regtype::text", [described]).fetchone() == (kind,)
    [ours] = fetched(server, (sql, ()))
    # In the text format psycopg does not know what the fields of a row are.
    (their,) = theirs.cursor(binary=kind == "record").execute(sql).fetchone()
    assert (ours, type(ours)) == (their, type(their))
