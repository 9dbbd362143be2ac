"""Messages of a server that come one by one and late: an error, then the status of its transaction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from citius import pg
from citius.pg.asyncpg import create_pool
from pg_rig import Server
from sqlalchemy.exc import InternalError, ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

asyncpg = pytest.importorskip("asyncpg")

PAUSE_S = 0.003
WRONG = "SELECT nothing"


@contextlib.asynccontextmanager
async def in_pieces(server: Server) -> AsyncIterator[int]:
    """The port of a proxy that passes on one message of the server after the other."""
    path = str(server.directory / f".s.PGSQL.{server.port}")

    async def forth(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async def back(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await source.readexactly(5)
                sink.write(head + await source.readexactly(int.from_bytes(head[1:], "big") - 4))
                await asyncio.sleep(PAUSE_S)  # the client reads it before the next one comes
        sink.close()

    carried: list[asyncio.Task[None]] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(path)
        carried.append(asyncio.ensure_future(forth(reader, up_writer)))
        carried.append(asyncio.ensure_future(back(up_reader, writer)))

    listener = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        # Each ends when its client has closed the connection.
        await asyncio.gather(*carried)


def with_pieces(server: Server, test: Callable[[int], Awaitable[None]]) -> None:
    async def main() -> None:
        async with in_pieces(server) as port:
            await asyncio.wait_for(test(port), 60)

    asyncio.run(main())


def test_sqlalchemy_knows_that_a_transaction_has_failed(server: Server) -> None:
    async def test(port: int) -> None:
        engine = create_async_engine(
            f"postgresql+citius://{server.user}@127.0.0.1:{port}/postgres?sslmode=disable"
        )
        async with engine.connect() as connection:
            await connection.execute(sa.text("SELECT 1"))
            with pytest.raises(ProgrammingError):
                await connection.execute(sa.text(WRONG))
            with pytest.raises(InternalError, match="COMMIT has rolled it back"):
                await connection.commit()
            await connection.rollback()
            assert await connection.scalar(sa.text("SELECT 2")) == 2
        await engine.dispose()

    with_pieces(server, test)


def test_a_pool_knows_that_a_transaction_has_failed(server: Server) -> None:
    async def test(port: int) -> None:
        dsn = f"host=127.0.0.1 port={port} user={server.user} dbname=postgres sslmode=disable"
        async with pg.Pool(dsn, 1) as pool:
            with pytest.raises(pg.PostgresError, match="so it was rolled back"):
                async with pool.transaction() as transaction:
                    await transaction.fetch("SELECT 1")
                    with pytest.raises(pg.PostgresError):
                        await transaction.fetch(WRONG)
            assert await pool.fetch_value("SELECT 2") == 2

    with_pieces(server, test)


def test_connections_of_asyncpg_know_that_a_transaction_has_failed(server: Server) -> None:
    async def test(port: int) -> None:
        where: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": server.user}
        pool = await create_pool(**where, database="postgres", ssl=False, min_size=1, max_size=1)
        async with pool.acquire() as connection:
            await connection.execute("BEGIN")
            with pytest.raises(asyncpg.UndefinedColumnError):
                await connection.fetch(WRONG)
            assert connection.is_in_transaction()
            with pytest.raises(asyncpg.InFailedSQLTransactionError):
                await connection.fetchval("SELECT 2")
        assert await pool.fetchval("SELECT 2") == 2
        await pool.close()

    with_pieces(server, test)
