"""Statements, parameters and rows of ``citius.sqlite``."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID, uuid4

import msgspec
import pytest
from citius import sqlite
from citius.sqlite.texts import may_only_read, prepare


class Colour(enum.Enum):
    RED = "red"


class Part(msgspec.Struct):
    size: int


class Item(msgspec.Struct, kw_only=True):
    id: int
    name: str
    tags: list[str] = []
    is_open: bool | None = None
    at: datetime.datetime | None = None
    day: Annotated[datetime.date | None, msgspec.Meta(title="day")] = None
    price: Decimal | None = None
    key: UUID | None = None
    colour: Colour | None = None
    kind: Literal["a", "b"] | None = None
    part: Part | None = None
    data: bytes | None = None


@dataclasses.dataclass
class Pair:
    name: str
    tags: dict[str, int]


class Named(NamedTuple):
    id: int
    name: str


TABLE = """
    CREATE TABLE item (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tags JSON, is_open BOOLEAN, at TIMESTAMP, day DATE,
        price TEXT, key UUID, colour TEXT, kind TEXT, part JSON, data BLOB
    );
    CREATE TABLE owner (item INTEGER REFERENCES item (id), share INTEGER CHECK (share > 0));
"""


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT $1, $2", "SELECT ?1, ?2"),
        ("SELECT '$1', \"$1\", [$1], `$1`, $1", "SELECT '$1', \"$1\", [$1], `$1`, ?1"),
        (
            "SELECT 'it''s $1' -- $1\n, $1 /* $2 * / */",
            "SELECT 'it''s $1' -- $1\n, ?1 /* $2 * / */",
        ),
        ("SELECT ?, $name, 'open $1", "SELECT ?, $name, 'open ?1"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_numbers_of_parameters(sql: str, text: str) -> None:
    assert prepare(sql, ()) == (text, ())


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT 1", True),
        ("  \n select(1)", False),
        ("(VALUES (1))", True),
        ("values\n(1)", True),
        ("WITH x AS (SELECT 1) SELECT 1", True),
        ("INSERT INTO x VALUES (1)", False),
        ("-- note\nSELECT 1", False),
        ("", False),
    ],
)
def test_first_words(sql: str, reads: bool) -> None:
    assert may_only_read(sql) is reads


def test_values_return_as_they_were(path: Path) -> None:
    item = Item(
        id=1,
        name="a'; DROP TABLE item --",
        tags=["x", "y"],
        is_open=True,
        at=datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        day=datetime.date(2026, 1, 2),
        price=Decimal("1.10"),
        key=uuid4(),
        colour=Colour.RED,
        kind="b",
        part=Part(3),
        data=b"\x00\xff",
    )

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLE)
            names = item.__struct_fields__
            places = ", ".join(f"${number}" for number in range(1, len(names) + 1))
            values = [getattr(item, name) for name in names]
            inserted = await pool.execute(
                f"INSERT INTO item ({', '.join(names)}) VALUES ({places})", *values
            )
            assert inserted == 1
            assert await pool.fetch("SELECT * FROM item", as_=Item) == [item]
            assert await pool.fetch_one("SELECT id, name FROM item", as_=Named) == Named(
                1, item.name
            )
            assert await pool.fetch_one("SELECT id, name FROM item", as_=dict) == {
                "id": 1,
                "name": item.name,
            }
            assert await pool.fetch("SELECT id, data FROM item") == [(1, b"\x00\xff")]
            assert (
                await pool.fetch_value(
                    "SELECT day FROM item WHERE at < $1", datetime.datetime(2027, 1, 1)
                )
                == "2026-01-02"
            )
            assert await pool.fetch_one(
                "SELECT 'x' AS name, '{\"a\":1}' AS tags", as_=Pair
            ) == Pair("x", {"a": 1})
            assert await pool.fetch_one("SELECT 1 WHERE 0") is None
            assert await pool.fetch_value("SELECT 1 WHERE 0") is None
            # A time without a zone has none.
            assert await pool.fetch_one(
                "SELECT 2 AS id, 'n' AS name, datetime('2026-01-02') AS at", as_=Item
            ) == Item(id=2, name="n", at=datetime.datetime(2026, 1, 2))

    asyncio.run(main())


def test_json(path: Path) -> None:
    sql = """
        SELECT id, name AS "a.name", part AS "a.part [json]", data, is_open AS "is_open [bool]" FROM item
    """

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLE)
            assert await pool.fetch_json(sql) == b"[]"
            assert await pool.fetch_json_one(sql) == b"null"
            for name, part, is_open in (('é"', {"size": 3}, True), ("b", None, None)):
                await pool.execute(
                    "INSERT INTO item (name, part, data, is_open) VALUES ($1, $2, $3, $4)",
                    name,
                    part,
                    b"\x01",
                    is_open,
                )
            first = '{"id":1,"a":{"name":"é\\"","part":{"size":3}},"data":"AQ==","is_open":true}'.encode()
            assert await pool.fetch_json_one(sql) == first
            second = b'{"id":2,"a":{"name":"b","part":null},"data":"AQ==","is_open":null}'
            assert await pool.fetch_json(sql) == b"[" + first + b"," + second + b"]"
            assert (
                await pool.fetch_json("SELECT id FROM item ORDER BY id", items="items")
                == b'{"items":[{"id":1},{"id":2}],"count":2}'
            )
            await pool.execute("UPDATE item SET part = '{'")
            with pytest.raises(sqlite.RowMismatch, match="column 'part' is not JSON"):
                await pool.fetch_json(sql)

    asyncio.run(main())


def test_a_row_that_does_not_become_the_class_names_the_column(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            for sql, message in (
                (
                    "SELECT 1 AS id, 'a' AS name, 'monday' AS day",
                    "column 'day' of Item: .*; got 'monday'",
                ),
                ("SELECT 1 AS id, 'a' AS name, '[1]' AS tags", "column 'tags' of Item"),
                ("SELECT 1 AS id, 'a' AS name, 7 AS is_open", "column 'is_open' of Item"),
            ):
                with pytest.raises(sqlite.RowMismatch, match=message):
                    await pool.fetch_one(sql, as_=Item)
            with pytest.raises(TypeError, match="other"):
                await pool.fetch_one("SELECT 1 AS id, 'a' AS name, 2 AS other", as_=Item)
            wrong: Any = "Item"
            with pytest.raises(TypeError, match="as_ is tuple, dict or a class"):
                await pool.fetch("SELECT 1", as_=wrong)

    asyncio.run(main())


def test_many(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLE)
            insert = "INSERT INTO item (name, tags) VALUES ($1, $2)"
            assert await pool.execute_many(insert, [(f"n{i}", [i]) for i in range(1000)]) == 1000
            with pytest.raises(sqlite.UniqueViolation):
                await pool.execute_many(insert, [("new", None), ("n1", None)])
            assert await pool.fetch_value("SELECT count(*) FROM item") == 1000
            rows = await pool.fetch_many(
                "SELECT id, name FROM item WHERE id = $1", [(1,), (3,), (5000,)], as_=Named
            )
            assert rows == [Named(1, "n0"), Named(3, "n2")]
            returned = await pool.fetch_many(
                "INSERT INTO item (name) VALUES ($1) RETURNING name", [("p",), ("q",)]
            )
            assert returned == [("p",), ("q",)]
            with pytest.raises(sqlite.UniqueViolation):
                await pool.fetch_many(
                    "INSERT INTO item (name) VALUES ($1) RETURNING name", [("r",), ("p",)]
                )
            assert await pool.fetch_value("SELECT name FROM item WHERE name = 'r'") is None
            assert await sqlite.gather(
                *(pool.fetch_value("SELECT $1", i) for i in range(50))
            ) == list(range(50))

    asyncio.run(main())


def test_errors_say_what_sqlite_says(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLE)
            await pool.execute("INSERT INTO item (id, name) VALUES (1, 'a')")
            for sql, arguments, kind, name in (
                (
                    "INSERT INTO item (name) VALUES ($1)",
                    ("a",),
                    sqlite.UniqueViolation,
                    "SQLITE_CONSTRAINT_UNIQUE",
                ),
                (
                    "INSERT INTO item (id, name) VALUES (1, 'b')",
                    (),
                    sqlite.UniqueViolation,
                    "SQLITE_CONSTRAINT_PRIMARYKEY",
                ),
                (
                    "INSERT INTO item (name) VALUES (NULL)",
                    (),
                    sqlite.NotNullViolation,
                    "SQLITE_CONSTRAINT_NOTNULL",
                ),
                (
                    "INSERT INTO owner VALUES (7, 1)",
                    (),
                    sqlite.ForeignKeyViolation,
                    "SQLITE_CONSTRAINT_FOREIGNKEY",
                ),
                (
                    "INSERT INTO owner VALUES (1, 0)",
                    (),
                    sqlite.CheckViolation,
                    "SQLITE_CONSTRAINT_CHECK",
                ),
                ("SELECT nothing", (), sqlite.SyntaxOrAccessError, "SQLITE_ERROR"),
                ("SELECT $2", ("a",), sqlite.SyntaxOrAccessError, ""),
                ("SELECT 1", ("a",), sqlite.SyntaxOrAccessError, ""),
                ("SELECT 1; DROP TABLE item", (), sqlite.SyntaxOrAccessError, ""),
            ):
                with pytest.raises(kind) as caught:
                    await pool.fetch(sql, *arguments)
                assert caught.value.name == name, sql
                assert str(caught.value)
            with pytest.raises(TypeError, match="a parameter is a number"):
                await pool.fetch("SELECT $1", object())
            with pytest.raises(TypeError, match="a statement is a str or a t-string"):
                await pool.fetch(b"SELECT 1")  # pyright: ignore[reportCallIssue, reportArgumentType]
            with pytest.raises(OverflowError):
                await pool.fetch("SELECT $1", 2**63)
            assert await pool.fetch_value("SELECT count(*) FROM item") == 1

    asyncio.run(main())


@dataclasses.dataclass
class Ending:
    """Its rows raise what ends a loop."""

    x: int

    def __post_init__(self) -> None:
        raise StopIteration(3) if self.x == 1 else StopAsyncIteration


def test_the_end_of_an_iterator_is_no_result(path: Path) -> None:
    """The kind of review B3: the call never ended, and those behind it waited for the next one."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            for sql in ("SELECT 1 AS x", "SELECT 2 AS x"):
                call = asyncio.ensure_future(pool.fetch(sql, as_=Ending))
                beside = asyncio.ensure_future(pool.fetch_value("SELECT 5"))
                with pytest.raises(RuntimeError, match="has raised Stop"):
                    await asyncio.wait_for(call, 10)
                assert await asyncio.wait_for(beside, 10) == 5
                with pytest.raises(RuntimeError):
                    async with pool.cursor(sql, as_=Ending) as rows:
                        async for _ in rows:
                            pass
                with pytest.raises((RuntimeError, StopIteration, StopAsyncIteration)):
                    await asyncio.to_thread(pool.sync.fetch, sql, as_=Ending)

    asyncio.run(main())


def resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_long_texts_are_not_kept(path: Path) -> None:
    """Lists of parameters as long as clients like take a bounded memory (issue 32 C6).

    100 of 30 000 took 790 MiB: the `sqlite3` module counts its statements, not their bytes.
    """

    async def main() -> int:
        async with sqlite.Pool(path, readers=1) as pool:
            await pool.fetch_value("SELECT 1")
            before = resident_bytes()
            async with pool.transaction() as tx:
                for shorter in range(100):
                    values = range(30_000 - shorter)
                    marks = ",".join("?" * len(values))
                    sql = f"SELECT count(*) FROM (SELECT 5 AS a) WHERE a IN ({marks})"
                    user = tx if shorter % 2 else pool
                    assert await user.fetch_value(sql, *values) == 1
                assert await tx.fetch_value("SELECT $1", 7) == 7
            return resident_bytes() - before

    assert asyncio.run(main()) < 300 * 1024 * 1024
