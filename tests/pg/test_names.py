"""Prepared statements that a text has deallocated are prepared anew (issue 32 C1, databases 42)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from citius import pg
from pg_rig import Server, pooled
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

ENDS = [
    "DEALLOCATE ALL", "/* a */ deallocate\nprepare all", "DO $$BEGIN EXECUTE 'DEALLOCATE ALL'; END$$",
    "DO 'BEGIN EXECUTE ''deallocate prepare'' || ''/**/all''; END'",
]  # fmt: skip
HIDDEN = "DO $$BEGIN EXECUTE 'DEALLOC' || 'ATE ALL'; END$$"
"""Of a text that is put together it is not seen what it does."""
LEFT = "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT 42'"


def engine_of(server: Server, **options: Any) -> AsyncEngine:
    query = {"host": str(server.directory), "port": str(server.port)}
    url = sa.URL.create("postgresql+citius", username=server.user, database="postgres", query=query)
    return create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=5, **options)


async def ask(engine: AsyncEngine) -> Any:
    async with engine.connect() as connection:
        return (await connection.exec_driver_sql("SELECT 42")).scalar()


@pytest.mark.parametrize("level", [None, "AUTOCOMMIT"])
@pytest.mark.parametrize("text", [*ENDS, "DISCARD ALL", "DISCARD PLANS"])
def test_sqlalchemy(server: Server, text: str, level: str | None) -> None:
    if text == "DISCARD ALL" and level is None:
        pytest.skip("not within a transaction")

    async def main() -> None:
        engine = engine_of(server, **({"isolation_level": level} if level else {}))
        assert [await ask(engine) for _ in range(2)] == [42, 42]
        async with engine.connect() as connection:
            for _ in range(2):
                await connection.exec_driver_sql(text)
                # In the same block, too.
                assert (await connection.exec_driver_sql("SELECT 42")).scalar() == 42
            await connection.exec_driver_sql(text)
        assert [await ask(engine) for _ in range(2)] == [42, 42]
        async with engine.connect() as connection:
            assert (await connection.exec_driver_sql(LEFT)).scalar() >= 1, "they have names yet"
        await engine.dispose()

    asyncio.run(main())


def test_sqlalchemy_where_the_text_does_not_show_it(server: Server) -> None:
    """One statement fails at most, and the session is not taken for one of a pooler."""

    async def main() -> None:
        engine = engine_of(server)
        await ask(engine)
        async with engine.connect() as connection:
            await connection.exec_driver_sql("SELECT 43")
            await connection.exec_driver_sql(HIDDEN)
        with pytest.raises(sa.exc.DBAPIError, match="does not exist"):
            await ask(engine)
        async with engine.connect() as connection:
            await connection.exec_driver_sql("SELECT 43")
        assert await ask(engine) == 42
        async with engine.connect() as connection:
            assert (await connection.exec_driver_sql(LEFT)).scalar() == 1
        await engine.dispose()

    asyncio.run(main())


def test_what_discard_all_undoes_of_the_application_is_not_lost(server: Server) -> None:
    """A session that the application has set up where it was connected is closed behind it."""

    async def main() -> None:
        engine = engine_of(server, isolation_level="AUTOCOMMIT")

        @sa.event.listens_for(engine.sync_engine, "connect")
        def set_up(connection: Any, _: object) -> None:
            cursor = connection.cursor()
            cursor.execute("SET application_name = 'set up'")
            cursor.close()

        for _ in range(2):
            async with engine.connect() as connection:
                name = await connection.exec_driver_sql("SHOW application_name")
                assert name.scalar() == "set up"
                await connection.exec_driver_sql("DISCARD ALL")
        await engine.dispose()

    asyncio.run(main())


@pytest.mark.parametrize("text", [*ENDS, "DISCARD ALL"])
def test_a_pool_refuses_it(server: Server, text: str) -> None:
    @pooled(size=1)
    async def check(pool: pg.Pool) -> None:
        with pytest.raises(pg.StatementRefused):
            await pool.execute(text)
        async with pool.transaction() as tx:
            with pytest.raises(pg.StatementRefused):
                await tx.execute(text)

    check(server)


@pooled(size=1)
async def test_a_pool_goes_on_with_names(pool: pg.Pool) -> None:
    for _ in range(2):
        assert await pool.fetch_value("SELECT 42") == 42
        await pool.fetch("SELECT 43")
        await pool.execute(HIDDEN)
        # Those behind it were sent, and are executed once more.
        assert await pg.gather(*(pool.fetch_value("SELECT 42") for _ in range(5))) == [42] * 5
        assert await pool.fetch_value("SELECT 43") == 43
    async with pool.transaction() as tx:
        await tx.execute(HIDDEN)
        with pytest.raises(pg.ServerError) as raised:
            async with tx.transaction() as inner:
                await inner.fetch_value("SELECT 42")
        assert raised.value.sqlstate == "26000"
        assert await tx.fetch_value("SELECT 42") == 42
        assert await tx.fetch_value("SELECT 43") == 43
    assert pool.has_names
    assert await pool.fetch_value(LEFT) == 1


@pytest.mark.parametrize("text", [*ENDS, "DISCARD ALL"])
@pytest.mark.parametrize("way", ["execute", "fetch"])
def test_asyncpg(server: Server, text: str, way: str) -> None:
    """Its statements were lost for good: each use of the connection failed from then on."""
    pytest.importorskip("asyncpg")
    from citius.pg.asyncpg import create_pool

    async def main() -> None:
        where = {"host": str(server.directory), "user": server.user, "database": "postgres"}
        async with create_pool(**where, min_size=1, max_size=1) as pool:
            for _ in range(2):
                assert await pool.fetchval("SELECT 42") == 42
                async with pool.acquire() as connection:
                    await getattr(connection, way)(text)
                    assert await connection.fetchval("SELECT 42") == 42
                    await getattr(connection, way)(text)
                assert await pool.fetchval("SELECT 42") == 42

    asyncio.run(main())


def test_asyncpg_where_the_text_does_not_show_it(server: Server) -> None:
    asyncpg = pytest.importorskip("asyncpg")
    from citius.pg.asyncpg import create_pool

    async def main() -> None:
        where = {"host": str(server.directory), "user": server.user, "database": "postgres"}
        async with create_pool(**where, min_size=1, max_size=1) as pool:
            for through_pool in (True, False):
                await pool.fetchval("SELECT 42")
                await pool.execute(HIDDEN)
                with pytest.raises(asyncpg.InvalidSQLStatementNameError):
                    if through_pool:
                        await pool.fetchval("SELECT 42")
                    else:
                        async with pool.acquire() as connection:
                            await connection.fetchval("SELECT 42")
                assert await pool.fetchval("SELECT 42") == 42

    asyncio.run(main())
