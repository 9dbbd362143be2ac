"""SQLAlchemy on sessions that the server ends (databases D14): who is told, and who gets another session.

The request that has the session is told at its next step. Those after it get none that is known to be dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from citius import pg
from pg_rig import Server
from sqlalchemy.exc import DBAPIError, NotSupportedError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

Kill = Callable[[], Awaitable[None]]
Ending = Callable[[AsyncConnection, Kill], Awaitable[Any]]
ROWS = sa.text("SELECT generate_series(1, 10000)")
NUMBER = sa.text("SELECT 1")


def engine_of(server: Server, **options: Any) -> AsyncEngine:
    query = {"host": str(server.directory), "port": str(server.port)}
    url = sa.URL.create("postgresql+citius", username=server.user, database="postgres", query=query)
    return create_async_engine(url, **options)


async def leaves(_: AsyncConnection, kill: Kill) -> None:
    await kill()


async def rolls_back(connection: AsyncConnection, kill: Kill) -> None:
    await kill()
    await connection.rollback()


async def commits(connection: AsyncConnection, kill: Kill) -> None:
    await kill()
    await connection.commit()


async def executes(connection: AsyncConnection, kill: Kill) -> None:
    await kill()
    await connection.execute(NUMBER)


async def executes_many(connection: AsyncConnection, kill: Kill) -> None:
    await kill()
    await connection.execute(sa.text("SELECT CAST(:x AS int)"), [{"x": 1}, {"x": 2}])


async def ends_a_savepoint(connection: AsyncConnection, kill: Kill) -> None:
    async with connection.begin_nested():
        await kill()


async def undoes_a_savepoint(connection: AsyncConnection, kill: Kill) -> None:
    nested = await connection.begin_nested()
    await kill()
    await nested.rollback()


async def streams(connection: AsyncConnection, kill: Kill) -> None:
    rows = await connection.stream(ROWS)
    await rows.fetchone()
    await kill()
    await rows.fetchall()


async def leaves_a_stream(connection: AsyncConnection, kill: Kill) -> None:
    rows = await connection.stream(ROWS)
    await rows.fetchone()
    await kill()
    await rows.close()


async def is_without_a_transaction(connection: AsyncConnection, kill: Kill) -> None:
    await connection.rollback()
    await kill()


async def commits_each_statement(connection: AsyncConnection, kill: Kill) -> None:
    await connection.rollback()
    connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
    await connection.execute(NUMBER)
    await kill()


TOLD: list[Ending] = [
    leaves, rolls_back, commits, executes, executes_many, ends_a_savepoint, undoes_a_savepoint, streams,
    leaves_a_stream,
]  # fmt: skip
# All that they have done is done.
NOT_TOLD: list[Ending] = [is_without_a_transaction, commits_each_statement]


@pytest.mark.parametrize("ending", [*TOLD, *NOT_TOLD], ids=lambda ending: ending.__name__)
def test_a_session_dies_in_a_block(server: Server, ending: Ending) -> None:
    """databases D14: the block is told, with an error of lost connections, and no later one is."""

    async def main() -> None:
        engine = engine_of(server, pool_size=1, max_overflow=0)

        async def block() -> None:
            async with engine.connect() as connection:
                await connection.execute(NUMBER)
                await ending(connection, lambda: kill(server, connection))

        if ending in TOLD:
            with pytest.raises(DBAPIError) as caught:
                await block()
            assert caught.value.connection_invalidated
        else:
            await block()
        for _ in range(3):
            async with engine.begin() as connection:
                assert await connection.scalar(NUMBER) == 1
        await engine.dispose()

    asyncio.run(main())


def test_sessions_die_in_the_pool(server: Server) -> None:
    """Without a ping of SQLAlchemy's: those that are known to be dead are not handed out."""

    async def main() -> None:
        engine = engine_of(server, pool_size=3, max_overflow=0)
        connections = [await engine.connect() for _ in range(3)]
        sessions = [await driver_of(connection) for connection in connections]
        for connection in connections:
            await connection.scalar(NUMBER)
            await connection.close()
        async with pg.Pool(server.dsn, size=1) as other:
            await other.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        async with asyncio.timeout(10):
            while not all(session.is_closed for session in sessions):
                await asyncio.sleep(0.01)
        for _ in range(6):
            async with engine.connect() as connection:
                assert await connection.scalar(NUMBER) == 1
        await engine.dispose()

    asyncio.run(main())


def test_the_server_is_killed_and_started_again(own_server: Server) -> None:
    """An engine recovers by itself, whatever its connections were doing."""
    server = own_server

    async def main() -> None:
        engine = engine_of(server, pool_size=4, max_overflow=0)
        connected = asyncio.Barrier(3)
        sleeping = [asyncio.create_task(sleeps(engine, connected)) for _ in range(2)]
        async with engine.connect() as idle:
            session = await driver_of(idle)
            await connected.wait()
            await asyncio.to_thread(server.stop)
            results = await asyncio.gather(*sleeping, return_exceptions=True)
            assert [getattr(one, "connection_invalidated", None) for one in results] == [True, True]
            async with asyncio.timeout(10):
                while not session.is_closed:
                    await asyncio.sleep(0.01)
        with pytest.raises(DBAPIError):
            async with engine.connect() as connection:
                await connection.scalar(NUMBER)
        await asyncio.to_thread(server.start)
        for _ in range(8):
            async with engine.connect() as connection:
                assert await connection.scalar(NUMBER) == 1
        await engine.dispose()

    asyncio.run(main())


def test_a_table_is_changed_by_another_program(server: Server) -> None:
    """databases D14b: one statement fails, not one for each connection of the pool."""

    async def main() -> None:
        engine = engine_of(server, pool_size=3, max_overflow=0)
        asked = sa.text("SELECT * FROM changed_outside")
        async with pg.Pool(server.dsn, size=1) as other:
            await other.execute("CREATE TABLE changed_outside AS SELECT 1 AS a")
            connections = [await engine.connect() for _ in range(3)]
            for connection in connections:
                assert len((await connection.execute(asked)).keys()) == 1
                await connection.rollback()
            await other.execute("ALTER TABLE changed_outside ADD COLUMN b int")
        with pytest.raises(NotSupportedError, match="cached plan"):
            await connections[0].execute(asked)
        await connections[0].rollback()
        for connection in connections:
            assert len((await connection.execute(asked)).keys()) == 2
            await connection.close()
        await engine.dispose()

    asyncio.run(main())


def test_nothing_is_logged_for_a_session_that_died_idle(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        engine = engine_of(server, pool_size=1, max_overflow=0)
        async with engine.connect() as connection:
            await connection.scalar(NUMBER)
            await connection.commit()
            await kill(server, connection)
        await engine.dispose()

    with caplog.at_level(logging.WARNING, logger="sqlalchemy"):
        asyncio.run(main())
    assert not caplog.records


async def driver_of(connection: AsyncConnection) -> Any:
    raw = await connection.get_raw_connection()
    return raw.driver_connection


async def kill(server: Server, connection: AsyncConnection) -> None:
    """End the session of a connection, and wait until it is known."""
    session = await driver_of(connection)
    async with pg.Pool(server.dsn, size=1) as other:
        await other.fetch("SELECT pg_terminate_backend($1)", session.core.process)
    async with asyncio.timeout(10):
        while not session.is_closed:
            await asyncio.sleep(0.01)


async def sleeps(engine: AsyncEngine, connected: asyncio.Barrier) -> None:
    async with engine.connect() as connection:
        await connection.execute(NUMBER)
        await connected.wait()
        await connection.execute(sa.text("SELECT pg_sleep(60)"))
