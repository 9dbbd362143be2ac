"""SQLAlchemy's dialect on ``citius.pg``: types both ways, transactions, errors, cursors, what gets lost."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import functools
import ipaddress
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from citius import pg
from pg_rig import Server
from sqlalchemy.dialects import postgresql as types
from sqlalchemy.dialects.postgresql.ranges import MultiRange, Range
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, selectinload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Test = Callable[..., Awaitable[None]]


class Base(DeclarativeBase):
    pass


class Mood(enum.Enum):
    GOOD = "good"
    BAD = 'b"a\\d'


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    books: Mapped[list[Book]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")


def engine_of(server: Server, **options: Any) -> AsyncEngine:
    url = sa.URL.create(
        "postgresql+citius",
        username=server.user,
        database="postgres",
        query={"host": str(server.directory), "port": str(server.port)},
    )
    return create_async_engine(url, **options)


def with_engine(test: Test) -> Callable[[Server], None]:
    """Run a test in a loop with an engine whose database has the tables above, empty."""

    @functools.wraps(test)
    def run(server: Server) -> None:
        async def main() -> None:
            engine = engine_of(server)
            try:
                async with engine.begin() as connection:
                    await connection.run_sync(Base.metadata.drop_all)
                    await connection.run_sync(Base.metadata.create_all)
                await test(engine)
            finally:
                await engine.dispose()

        asyncio.run(main())

    del run.__wrapped__  # pytest would ask for an engine
    return run


@with_engine
async def test_objects_and_their_relations(engine: AsyncEngine) -> None:
    async with AsyncSession(engine) as session:
        names = [f"author {number}" for number in range(300)]
        session.add_all(Author(name=name, books=[Book(title=f"{name}'s")]) for name in names)
        await session.commit()
    async with AsyncSession(engine) as session:
        asked = sa.select(Author).options(selectinload(Author.books)).order_by(Author.id)
        authors = (await session.scalars(asked)).all()
        assert [author.name for author in authors] == names
        assert all(author.books[0].title == f"{author.name}'s" for author in authors)
        changed = await session.execute(
            sa.update(Author).where(Author.id <= 10).values(name=sa.func.upper(Author.name))
        )
        assert changed.rowcount == 10
        assert (await session.execute(sa.delete(Book).returning(Book.id))).scalars().all()
        await session.rollback()
        assert await session.scalar(sa.select(sa.func.count(Book.id))) == 300


VALUES: list[tuple[Any, Any]] = [
    (sa.Integer, -5),
    (sa.BigInteger, 2**62),
    (sa.SmallInteger, 7),
    (sa.Boolean, True),
    (sa.String(20), "text 'with\" quotes"),
    (sa.CHAR(3), "abc"),
    (sa.Text, "snow ☃"),
    (sa.LargeBinary, bytes(range(256))),
    (sa.Numeric(12, 4), Decimal("-1234.5678")),
    (sa.Numeric(asdecimal=False), 1.5),
    (sa.Float, 2.25),
    (sa.Float(asdecimal=True), Decimal("0.5")),
    (sa.Date, dt.date(2024, 2, 29)),
    (sa.Time, dt.time(23, 59, 59, 123456)),
    (sa.DateTime, dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    (sa.DateTime(timezone=True), dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC)),
    (sa.Interval, dt.timedelta(days=-3, seconds=5, microseconds=7)),
    (sa.Uuid, uuid.UUID(int=5)),
    (sa.Uuid(as_uuid=False), str(uuid.UUID(int=6))),
    (sa.Enum(Mood), Mood.BAD),
    (sa.JSON, {"a": [1, None, "ü"]}),
    (types.JSONB, {"b": {"c": 1.5}}),
    (types.JSONB, "text"),
    (types.ARRAY(sa.Integer), [1, None, 3]),
    (types.ARRAY(sa.Text, dimensions=2), [["a", "b,c"], ['"', "\\"]]),
    (types.ARRAY(sa.Enum(Mood)), [Mood.GOOD, Mood.BAD]),
    (types.ARRAY(types.JSONB), [{"a": 1}, [2]]),
    (types.ARRAY(types.INET), ["10.0.0.1", None]),
    (types.ARRAY(types.INT4RANGE), [Range(1, 10), None, Range(empty=True)]),
    (types.ARRAY(types.BIT(2), dimensions=2), [[types.BitString("10")], [types.BitString("01")]]),
    (types.INT4RANGE, Range(1, 10)),
    (types.INT8RANGE, Range(None, 10)),
    (types.NUMRANGE, Range(Decimal("1.5"), None, bounds="(]")),
    (types.NUMRANGE, Range(empty=True)),
    (types.DATERANGE, Range(dt.date(2024, 1, 1), dt.date(2024, 2, 1))),
    (types.TSRANGE, Range(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 5, 6, 7, 8))),
    (types.TSTZRANGE, Range(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None)),
    (types.INT4MULTIRANGE, MultiRange([Range(1, 3), Range(5, 9)])),
    (types.DATEMULTIRANGE, MultiRange([])),
    (types.INET, "10.0.0.1"),
    (types.OID, 4_000_000_000),
    (types.BIT(4), types.BitString("1010")),
]


@with_engine
async def test_values_of_every_type_come_back(engine: AsyncEngine) -> None:
    metadata = sa.MetaData()
    columns = [sa.Column(f"c{at}", kind) for at, (kind, _) in enumerate(VALUES)]
    table = sa.Table("value", metadata, sa.Column("id", sa.Integer, primary_key=True), *columns)
    row = {column.name: value for column, (_, value) in zip(columns, VALUES, strict=True)}
    empty = dict.fromkeys(row)
    async with engine.connect() as connection:
        await connection.run_sync(metadata.create_all)
        await connection.execute(sa.insert(table), {"id": 1, **row})
        await connection.execute(sa.insert(table), [{"id": 2, **row}, {"id": 3, **empty}])
        found = (await connection.execute(sa.select(table).order_by(table.c.id))).mappings().all()
        for one in found[:2]:
            for name, value in row.items():
                assert one[name] == value, table.c[name].type
                assert type(one[name]) is type(value), table.c[name].type
        assert all(value is None for name, value in found[2].items() if name not in ("id",))
        for column in columns:
            if not isinstance(column.type, sa.JSON):
                asked = sa.select(table.c.id).where(column == row[column.name])
                assert len((await connection.execute(asked)).all()) == 2, column.type
        await connection.rollback()


@with_engine
async def test_json_paths_and_serializers_of_the_engine(engine: AsyncEngine) -> None:
    literal = sa.literal({"a": {"b": [1, 2]}}, types.JSONB).label("value")
    column = sa.select(literal).subquery().c.value
    async with engine.connect() as connection:
        asked = sa.select(column["a"], column[("a", "b", 1)], column["a"]["b"][0].as_integer())
        assert (await connection.execute(asked)).one() == ({"b": [1, 2]}, 2, 1)
        null = sa.select(sa.literal(None, sa.JSON(none_as_null=False)))
        assert (await connection.execute(null)).scalar_one() is None


@with_engine
async def test_a_text_for_json_is_json(engine: AsyncEngine) -> None:
    """As with the other drivers, for which such statements are written: not a JSON string."""
    asked = (
        ("SELECT jsonb_typeof(CAST(:value AS jsonb))", '{"a": 1}', "object"),
        ("SELECT json_typeof(CAST(:value AS json))", "[1]", "array"),
        ("SELECT CAST(:value AS jsonb)", '"text"', "text"),
        ("SELECT CAST(:value AS jsonb)", {"a": "ü"}, {"a": "ü"}),
        ("SELECT CAST(:value AS jsonb[])", ['{"a": 1}', None], [{"a": 1}, None]),
        ("SELECT '{\"a\": 1}'::jsonb @> :value", '{"a": 1}', True),
    )
    async with engine.connect() as connection:
        for text, value, expected in asked:
            found = await connection.scalar(sa.text(text), {"value": value})
            assert found == expected, text
        typed = sa.select(sa.literal('{"a": 1}', types.JSONB))
        assert await connection.scalar(typed) == '{"a": 1}'
        with pytest.raises(DBAPIError, match="invalid input syntax for type json"):
            await connection.scalar(sa.text("SELECT CAST(:value AS jsonb)"), {"value": "{"})


def test_addresses_are_objects_if_the_engine_is_told_so(server: Server) -> None:
    values = [
        (types.INET, ipaddress.ip_address("::1")),
        (types.INET, ipaddress.ip_interface("10.0.0.1/24")),
        (types.CIDR, ipaddress.ip_network("10.0.0.0/8")),
        (types.ARRAY(types.INET), [ipaddress.ip_address("10.0.0.1"), None]),
    ]
    texts = ["::1", "10.0.0.1/24", "10.0.0.0/8", ["10.0.0.1", None]]

    async def main() -> None:
        for options in ({}, {"native_inet_types": False}, {"native_inet_types": True}):
            engine = engine_of(server, **options)
            async with engine.connect() as connection:
                row = (
                    await connection.execute(
                        sa.select(
                            *(sa.cast(sa.literal(value, kind), kind) for kind, value in values)
                        )
                    )
                ).one()
            is_native = options.get("native_inet_types")
            assert [*row] == ([value for _, value in values] if is_native else texts)
            await engine.dispose()

    asyncio.run(main())


def test_the_serializers_of_an_engine(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(
            server,
            json_serializer=lambda value: '{"out": 1}',
            json_deserializer=lambda text: ("in", text.replace(" ", "")),
        )
        async with engine.connect() as connection:
            asked = sa.select(sa.literal({"x": 1}, types.JSONB), sa.cast(sa.null(), sa.JSON))
            assert (await connection.execute(asked)).one() == (("in", '{"out":1}'), None)
        await engine.dispose()

    asyncio.run(main())


@with_engine
async def test_transactions_and_isolation(engine: AsyncEngine) -> None:
    level = sa.text("SHOW transaction_isolation")
    async with engine.connect() as connection:
        assert await connection.scalar(level) == "read committed"
        await connection.rollback()
        await connection.execution_options(isolation_level="SERIALIZABLE")
        assert await connection.scalar(level) == "serializable"
        assert await connection.get_isolation_level() == "SERIALIZABLE"
    async with engine.connect() as connection:
        assert await connection.scalar(level) == "read committed"
    options = {"postgresql_readonly": True, "postgresql_deferrable": True}
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="SERIALIZABLE", **options)
        assert await connection.scalar(sa.text("SHOW transaction_read_only")) == "on"
        assert await connection.scalar(sa.text("SHOW transaction_deferrable")) == "on"
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with autocommit.connect() as connection:
        await connection.execute(sa.insert(Author), {"name": "kept"})
        await connection.rollback()
        await connection.execute(sa.text("VACUUM author"))
    async with engine.connect() as connection, connection.begin() as outer:
        await connection.execute(sa.insert(Author), {"name": "kept too"})
        async with connection.begin_nested() as inner:
            await connection.execute(sa.insert(Author), {"name": "undone"})
            await inner.rollback()
        await outer.commit()
    async with engine.connect() as connection:
        names = await connection.scalars(sa.select(Author.name).order_by(Author.name))
        assert names.all() == ["kept", "kept too"]


@with_engine
async def test_the_commit_of_a_failed_transaction_is_an_error(engine: AsyncEngine) -> None:
    """databases 37: COMMIT of a failed transaction is a ROLLBACK, without an error of the server's."""
    async with engine.connect() as connection:
        await connection.execute(sa.insert(Author), {"name": "lost"})
        with pytest.raises(ProgrammingError):
            await connection.execute(sa.text("SELECT nothing"))
        with pytest.raises(InternalError, match="COMMIT has rolled it back"):
            await connection.commit()
        # As behind any commit that fails.
        await connection.rollback()
        assert await connection.scalar(sa.select(sa.func.count(Author.id))) == 0
        await connection.execute(sa.insert(Author), {"name": "kept"})
        await connection.commit()
    with pytest.raises(InternalError, match="COMMIT has rolled it back"):
        async with engine.begin() as connection:
            await connection.execute(sa.insert(Author), {"name": "lost too"})
            with pytest.raises(ProgrammingError):
                await connection.execute(sa.text("SELECT nothing"))
    async with engine.begin() as connection:
        with pytest.raises(ProgrammingError):
            async with connection.begin_nested():
                await connection.execute(sa.text("SELECT nothing"))
        await connection.execute(sa.insert(Author), {"name": "kept too"})
    async with engine.connect() as connection:
        names = await connection.scalars(sa.select(Author.name).order_by(Author.name))
        assert names.all() == ["kept", "kept too"]


@with_engine
async def test_what_a_rolled_back_transaction_held_is_free(engine: AsyncEngine) -> None:
    async with engine.connect() as first, engine.connect() as second:
        await first.execute(sa.insert(Author), {"name": "one"})
        await first.rollback()
        await second.execute(sa.insert(Author), {"name": "one"})
        await second.commit()
        assert await first.scalar(sa.select(sa.func.count(Author.id))) == 1


@with_engine
async def test_errors_are_those_of_pep_249(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(sa.insert(Author), {"name": "one"})
        with pytest.raises(IntegrityError) as caught:
            await connection.execute(sa.insert(Author), {"name": "one"})
        assert caught.value.orig.sqlstate == "23505"
        assert isinstance(caught.value.orig.__cause__, pg.UniqueViolation)
        with pytest.raises(DBAPIError, match="current transaction is aborted"):
            await connection.scalar(sa.select(1))
        await connection.rollback()
        for sql, kind in (
            ("SELEC 1", ProgrammingError),
            ("SELECT * FROM nowhere", ProgrammingError),
            ("SELECT 1 / 0", DataError),
            ("SELECT 1; SELECT 2", ProgrammingError),
        ):
            with pytest.raises(kind):
                await connection.execute(sa.text(sql))
            await connection.rollback()
        with pytest.raises(DataError, match="expected int, got str"):
            await connection.execute(sa.select(sa.literal("x", sa.Integer)))
        await connection.rollback()
        assert await connection.scalar(sa.select(1)) == 1


def test_a_server_that_is_not_there(server: Server) -> None:
    async def main() -> None:
        engine = create_async_engine("postgresql+citius://nobody@127.0.0.1:1/nowhere")
        with pytest.raises(OperationalError, match="Connection refused|127.0.0.1"):
            await engine.connect()
        unknown = create_async_engine(
            engine_of(server).url.set(database="missing"),
        )
        with pytest.raises(ProgrammingError, match="missing"):
            await unknown.connect()

    asyncio.run(main())


@with_engine
async def test_rows_that_stay_on_the_server(engine: AsyncEngine) -> None:
    numbers = sa.text("SELECT g FROM generate_series(1, 2500) g")
    async with engine.connect() as connection:
        result = await connection.stream(numbers)
        assert await result.fetchone() == (1,)
        assert [row[0] for row in await result.fetchmany(3)] == [2, 3, 4]
        assert [row[0] async for row in result] == list(range(5, 2501))
        # Half of it, and the connection serves on.
        result = await connection.stream(numbers)
        assert await result.fetchone() == (1,)
        await result.close()
        assert await connection.scalar(sa.select(1)) == 1
        both = [await connection.stream(numbers), await connection.stream(numbers)]
        for result in both:
            assert len(await result.all()) == 2500
        with pytest.raises(DataError):
            await connection.stream(sa.select(sa.literal("x", sa.Integer)))
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with autocommit.connect() as connection:
        result = await connection.stream(numbers)
        assert len(await result.all()) == 2500


@with_engine
async def test_many_rows_of_parameters(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        rows = [{"name": f"name {number}"} for number in range(2500)]
        await connection.execute(sa.text("INSERT INTO author (name) VALUES (:name)"), rows)
    async with engine.connect() as connection:
        assert await connection.scalar(sa.select(sa.func.count(Author.id))) == 2500
        with pytest.raises(IntegrityError):
            await connection.execute(
                sa.text("INSERT INTO author (name) VALUES (:name)"),
                [{"name": "new"}, {"name": "name 1"}],
            )
        await connection.rollback()
        assert await connection.scalar(sa.select(sa.func.count(Author.id))) == 2500


@with_engine
async def test_many_rows_behind_one_statement_of_a_cursor(engine: AsyncEngine) -> None:
    """A sequence of a table without RETURNING is asked by the cursor that inserts: its row is no result."""
    number = sa.Column("id", sa.Integer, sa.Sequence("names_id"), primary_key=True)
    name = sa.Column("name", sa.Text)
    names = sa.Table("names", sa.MetaData(), number, name, implicit_returning=False)
    async with engine.connect() as connection:
        await connection.run_sync(names.metadata.create_all)
        rows = [{"name": "a"}, {"name": "b"}]
        result = await connection.execute(names.insert().return_defaults(), rows)
        assert not result.returns_rows
        await connection.rollback()


@pytest.mark.parametrize("is_of_another", [False, True])
def test_a_table_that_changes_under_a_statement(server: Server, is_of_another: bool) -> None:
    async def main() -> None:
        engine, other = engine_of(server), engine_of(server)
        try:
            async with engine.begin() as connection:
                await connection.run_sync(Base.metadata.drop_all)
                await connection.run_sync(Base.metadata.create_all)
            await changes_under_a_statement(engine, other if is_of_another else engine)
        finally:
            await engine.dispose()
            await other.dispose()

    asyncio.run(main())


async def changes_under_a_statement(engine: AsyncEngine, other: AsyncEngine) -> None:
    asked = sa.text("SELECT * FROM author")
    async with engine.connect() as first, other.connect() as second:
        await first.execute(sa.insert(Author), {"name": "one"})
        await first.commit()
        assert len((await first.execute(asked)).keys()) == 2
        await first.commit()
        await second.execute(sa.text("ALTER TABLE author ADD COLUMN age int"))
        await second.commit()
        if other is engine:  # it knows
            assert len((await first.execute(asked)).keys()) == 3
            return
        with pytest.raises(NotSupportedError, match="cached plan"):
            await first.execute(asked)
        await first.rollback()
        assert len((await first.execute(asked)).keys()) == 3


@with_engine
async def test_reflection(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        found = sa.MetaData()
        await connection.run_sync(found.reflect)
        book = found.tables["book"]
        assert list(book.columns.keys()) == ["id", "title", "author_id"]
        assert [key.column.table.name for key in book.foreign_keys] == ["author"]


def test_a_connection_that_is_killed_is_replaced(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, pool_size=1, max_overflow=0, pool_pre_ping=True)
        identity = sa.text("SELECT pg_backend_pid()")
        async with engine.connect() as connection:
            first = await connection.scalar(identity)
        async with pg.Pool(server.dsn, size=1) as other:
            await other.fetch("SELECT pg_terminate_backend($1)", first)
            while await other.fetch("SELECT 1 FROM pg_stat_activity WHERE pid = $1", first):
                pass
        async with engine.connect() as connection:
            assert await connection.scalar(identity) != first
        # Without a ping the statement fails, and the connection after it is a new one.
        async with engine.connect() as connection:
            second = await connection.scalar(identity)
            async with pg.Pool(server.dsn, size=1) as other:
                await other.fetch("SELECT pg_terminate_backend($1)", second)
            with pytest.raises(OperationalError) as caught:
                while True:
                    await connection.scalar(identity)
            assert caught.value.connection_invalidated
        async with engine.connect() as connection:
            assert await connection.scalar(identity) != second
        await engine.dispose()

    asyncio.run(main())


def test_a_statement_whose_caller_leaves_is_cancelled(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, pool_size=1, max_overflow=0)

        async def sleeps() -> None:
            async with engine.connect() as connection:
                await connection.execute(sa.text("SELECT pg_sleep(60)"))

        task = asyncio.create_task(sleeps())
        active = """
            SELECT count(*) FROM pg_stat_activity
            WHERE query LIKE 'SELECT pg_sleep(60)%' AND state = 'active'
        """
        async with pg.Pool(server.dsn, size=1) as other:
            while not await other.fetch_value(active):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(10):
                while await other.fetch_value(active):
                    await asyncio.sleep(0.01)
        async with engine.connect() as connection:
            assert await connection.scalar(sa.select(1)) == 1
        await engine.dispose()

    asyncio.run(main())


def test_no_request_sees_the_rows_of_another(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, pool_size=4, max_overflow=0)

        async def ask(number: int) -> bool:
            async with AsyncSession(engine) as session:
                return await session.scalar(sa.select(sa.literal(number, sa.Integer))) == number

        assert all(await asyncio.gather(*map(ask, range(500))))
        await engine.dispose()

    asyncio.run(main())
