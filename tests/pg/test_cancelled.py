"""Nothing of a session is kept by what is cancelled at any await (issue 32 C4, databases 2, 4, 50 to 52)."""

# pyright: basic

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
import sqlalchemy as sa
from cancelling import Cancelled, at_every_await
from citius.pg import Pool, Transaction
from pg_rig import Server
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

STATE = (
    "SELECT current_setting('work_mem'), to_regclass('pg_temp.scratch')::text,"
    " (SELECT count(*) FROM pg_listening_channels())"
)
CLEAN = ("4MB", None, 0)
HELD = (
    "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
    " + (SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%')"
)
"""What any session holds: one whose connection was closed ends a little later."""


async def check_ended(held: Callable[[], Awaitable[int]], where: str) -> None:
    for _ in range(2000):
        if not await held():
            return
        await asyncio.sleep(0.01)  # between two questions
    pytest.fail(f"{where}: a session holds a lock or a transaction")


async def statement(pool: Pool) -> None:
    await pool.fetch("SELECT pg_advisory_xact_lock(1)")


async def transaction(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await tx.execute("SELECT pg_advisory_lock(1)")
        async with tx.transaction():
            await tx.execute("CREATE TEMP TABLE IF NOT EXISTS scratch (a int)")
        await tx.execute("SET work_mem = '9MB'")


async def cursor(pool: Pool) -> None:
    async with pool.cursor("SELECT generate_series(1, 2000)") as rows:
        async for _ in rows:
            pass


async def copy(pool: Pool) -> None:
    async def source() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"1\n"

    async with pool.transaction() as tx:
        await tx.execute("CREATE TEMP TABLE IF NOT EXISTS scratch (a int)")
        await tx.copy_in("COPY scratch FROM STDIN", source())


async def copied(pool: Pool) -> None:
    async with pool.copy_out("COPY (SELECT generate_series(1, 2000)) TO STDOUT") as chunks:
        async for _ in chunks:
            pass


async def many(pool: Pool) -> None:
    rows = [(number,) for number in range(1001)]  # three requests
    await pool.execute_many("SELECT pg_advisory_xact_lock($1)", rows)


async def listen(pool: Pool) -> None:
    async with pool.listen("news"):
        await asyncio.sleep(0)


@pytest.mark.parametrize("use", [statement, transaction, cursor, copy, copied, many, listen])
def test_a_pool(server: Server, use: Callable[[Pool], Coroutine[Any, Any, None]]) -> None:
    async def steps() -> None:
        async with Pool(server.dsn, size=1, wait_s=10) as pool:
            async for where in at_every_await(lambda: use(pool)):
                assert tuple(await pool.fetch_one(STATE)) == CLEAN, where
                await check_ended(lambda: pool.fetch_value(HELD), where)

    asyncio.run(steps())


class Interrupted(BaseException):
    """What is no cancellation, such as ``KeyboardInterrupt``."""


def test_a_session_that_comes_as_its_waiter_is_interrupted_goes_back(server: Server) -> None:
    """Whatever ends the wait: it is not only ``CancelledError`` that is thrown into coroutines."""

    async def steps() -> None:
        async with Pool(server.dsn, size=1, wait_s=2) as pool:

            async def wait() -> None:
                await Cancelled(pool.acquire(), 1, after=True, error=Interrupted)

            async with pool.transaction():
                waiting = asyncio.ensure_future(wait())
                await asyncio.sleep(0)
                assert pool.queued == 1
            with pytest.raises(Interrupted):
                await waiting
            async with pool.transaction() as tx:
                assert await tx.fetch_value("SELECT 1") == 1

    asyncio.run(steps())


OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'opened'"


def test_a_pool_that_is_opened(server: Server) -> None:
    """Neither the caller that opens it nor the one that closes it leaves a session behind."""

    async def use() -> None:
        async with Pool(f"{server.dsn} application_name=opened", size=2) as pool:
            await pool.fetch_value("SELECT 1")

    async def steps() -> None:
        async with Pool(server.dsn, size=1) as pool:
            async for where in at_every_await(use):
                await check_ended(lambda: pool.fetch_value(OTHERS), where)

    asyncio.run(steps())


def test_a_pool_of_asyncpg(server: Server) -> None:
    pytest.importorskip("asyncpg")
    from citius.pg.asyncpg import create_pool

    async def steps() -> None:
        where_it_is = {"host": str(server.directory), "user": server.user}
        async with create_pool(**where_it_is, database="postgres", min_size=1, max_size=1) as pool:

            async def use() -> None:
                async with pool.acquire() as connection:
                    await connection.execute("SELECT pg_advisory_lock(1)")

            async for where in at_every_await(use):
                async with asyncio.timeout(10):
                    await check_ended(lambda: pool.fetchval(HELD), where)

    asyncio.run(steps())


async def begin(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(sa.text("SELECT pg_advisory_lock(1)"))
        async with connection.begin_nested():
            await connection.execute(sa.text("CREATE TEMP TABLE IF NOT EXISTS scratch (a int)"))
        await connection.execute(sa.text("SET work_mem = '9MB'"))


async def stream(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        async for _ in await connection.stream(sa.text("SELECT generate_series(1, 2000)")):
            pass


async def held(engine: AsyncEngine) -> int:
    """In a transaction of its own each time: within one, what sessions do is looked at once."""
    async with engine.connect() as connection:
        return (await connection.execute(sa.text(HELD))).scalar_one()


@pytest.mark.parametrize("use", [begin, stream])
def test_sqlalchemy(
    server: Server, use: Callable[[AsyncEngine], Coroutine[Any, Any, None]]
) -> None:
    """Its greenlets suspend where a driver does."""

    async def steps() -> None:
        query = {"host": str(server.directory), "port": str(server.port)}
        url = sa.URL.create(
            "postgresql+citius", username=server.user, database="postgres", query=query
        )
        engine = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=10)
        async for where in at_every_await(lambda: use(engine)):
            async with engine.connect() as connection:
                row = (await connection.execute(sa.text(STATE))).one()
            assert tuple(row) == CLEAN, where
            await check_ended(lambda: held(engine), where)
        await engine.dispose()

    asyncio.run(steps())


def test_a_savepoint_that_raises_is_undone(server: Server) -> None:
    """The RELEASE was waited for: cancelled there, the block raised and what it had done was committed."""

    async def main() -> None:
        has_ended = False

        async def use(tx: Transaction) -> None:
            nonlocal has_ended
            has_ended = False
            async with tx.transaction() as inner:
                await inner.execute("INSERT INTO undone VALUES (1)")
                # Under way when the block ends, so that it waits.
                inner.fetch("SELECT generate_series(1, 1000)").start()
            has_ended = True

        async with Pool(server.dsn, size=1) as pool, pool.transaction() as tx:
            await tx.execute("CREATE TABLE undone (a int)")
            async for where in at_every_await(lambda: use(tx)):
                assert bool(await tx.fetch("SELECT 1 FROM undone")) == has_ended, where
                await tx.execute("DELETE FROM undone")

    asyncio.run(main())
