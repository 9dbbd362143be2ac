"""What prepared statements take of the server's memory is bounded for a session, by all ways to it.

The server's own figures judge: ``pg_prepared_statements`` and ``pg_backend_memory_contexts``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from citius import pg
from citius.pg import Pool
from pg_rig import Server, pooled
from sqlalchemy.ext.asyncio import create_async_engine

MIB = 1024 * 1024
# By the guide a session keeps as many statements as take 64 MiB by an estimate: half as much again at most.
TAKEN_MAX = 96 * MIB
COUNT_MAX = 500
WIDE = 500
KEPT = (
    "SELECT (SELECT count(*) FROM pg_prepared_statements) AS number, "
    "(SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts "
    "WHERE name LIKE 'CachedPlan%' OR parent LIKE 'CachedPlan%')::bigint AS taken"
)
TABLE = f"CREATE TABLE wide ({', '.join(f'c{n} int' for n in range(WIDE))})"


def columns(number: int) -> str:
    return f"SELECT * FROM wide WHERE c0 = {number}"


def returned(number: int) -> str:
    return f"INSERT INTO wide (c0) VALUES ({number}) RETURNING *"


def values(number: int) -> str:
    return f"SELECT {number}, {', '.join(str(n % 10) for n in range(WIDE))}"


def expression(number: int) -> str:
    return f"SELECT {'+'.join(f'c{n % 10}' for n in range(WIDE))} FROM wide WHERE c0 = {number}"


def members(number: int) -> str:
    return f"SELECT c1 FROM wide WHERE c0 IN ({', '.join(str(number + n) for n in range(WIDE))})"


def parameters(number: int) -> str:
    return f"SELECT {number} WHERE 0 IN ({', '.join(f'${n + 1}::int' for n in range(WIDE))})"


@pytest.fixture(scope="module", autouse=True)
def table(server: Server) -> None:
    async def main() -> None:
        async with Pool(server.dsn, size=1) as pool:
            await pool.execute(TABLE)

    asyncio.run(main())


@pytest.mark.parametrize("text", [columns, returned, values, expression, members, parameters])
def test_wide_statements(server: Server, text: Callable[[int], str]) -> None:
    """3 000 of them grew one session to 328 MiB."""
    arguments = tuple(range(WIDE)) if text is parameters else ()

    async def main() -> None:
        async with Pool(server.dsn, size=1) as pool:
            peak = 0
            for number in range(600):
                for _ in range(2):
                    await pool.execute(text(number), *arguments)
                if number % 50 == 49:
                    count, taken = (await pool.fetch(KEPT))[0]
                    peak = max(peak, taken)
                    assert count <= COUNT_MAX
            assert MIB < peak <= TAKEN_MAX

    asyncio.run(asyncio.wait_for(main(), 100))


@pooled(size=1)
async def test_many_at_once(pool: Pool) -> None:
    """They are prepared before it is known how wide they are."""
    for first in range(0, 1500, 500):
        await pg.gather(*(pool.fetch(columns(first + number)) for number in range(500)))
    count, taken = (await pool.fetch(KEPT))[0]
    assert taken <= TAKEN_MAX
    assert 1 < count <= COUNT_MAX


@pooled(size=1)
async def test_a_session_of_a_block(pool: Pool) -> None:
    async with pool.transaction() as tx:
        for number in range(400):
            await tx.fetch(columns(number))
        count, taken = (await tx.fetch(KEPT))[0]
    assert taken <= TAKEN_MAX
    assert count <= COUNT_MAX


def test_calls_of_threads(server: Server) -> None:
    pool = Pool(server.dsn, size=1)
    with contextlib.closing(pool.sync):
        for number in range(400):
            pool.sync.fetch(columns(number))
        count, taken = pool.sync.fetch(KEPT)[0]
    assert taken <= TAKEN_MAX
    assert count <= COUNT_MAX


def test_sessions_of_sqlalchemy(server: Server) -> None:
    async def main() -> None:
        query = {"host": str(server.directory), "port": str(server.port)}
        url = sa.URL.create(
            "postgresql+citius", username=server.user, database="postgres", query=query
        )
        engine = create_async_engine(url)
        try:
            async with engine.connect() as connection:
                for number in range(400):
                    await connection.execute(sa.text(columns(number)))
                count, taken = (await connection.execute(sa.text(KEPT))).one()
            assert taken <= TAKEN_MAX
            assert count <= COUNT_MAX
        finally:
            await engine.dispose()

    asyncio.run(asyncio.wait_for(main(), 100))


@pooled(size=1)
async def test_what_is_used_again_and_again_stays(pool: Pool) -> None:
    for number in range(600):
        await pool.fetch_value("SELECT 'kept'")
        await pool.fetch(columns(number))
    kept = "SELECT count(*) FROM pg_prepared_statements WHERE statement = $1"
    assert await pool.fetch_value(kept, "SELECT 'kept'") == 1
