"""A forked child has the pool and copies of its sockets (issue 32 C7): it is refused, the parent goes on."""

from __future__ import annotations

import asyncio
import os

import pytest
from citius import pg
from pg_rig import Server
from rig import in_child
from sqlalchemy import URL, text
from sqlalchemy.ext.asyncio import create_async_engine

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
BEFORE = "was opened before a fork"


def test_a_child_is_refused_and_may_open_the_pool_again(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=2) as pool:
            await pool.fetch_value("SELECT 1")
            processes = {session.core.process for session in pool.open_sessions}

            async def act() -> None:
                for use in (
                    lambda: pool.fetch_value("SELECT 1"),
                    lambda: pool.transaction().__aenter__(),
                    lambda: pool.cursor("SELECT 1").__aenter__(),
                    lambda: pool.copy_in("COPY a FROM STDIN", [b"x"]),
                    lambda: pool.copy_out("COPY a TO STDOUT").__aenter__(),
                    lambda: pool.listen("a").__aenter__(),
                    lambda: asyncio.to_thread(pool.sync.fetch_value, "SELECT 1"),
                ):
                    with pytest.raises(RuntimeError, match=BEFORE):
                        await use()
                async with pool:
                    own = await pool.fetch_value("SELECT pg_backend_pid()")
                    assert own not in processes
                    async with pool.transaction() as tx:
                        assert await tx.fetch_value("SELECT 5") == 5

            async def closes() -> None:
                await pool.close()

            for _ in range(3):
                await in_child(act)
                await in_child(closes)
                assert await pool.fetch_value("SELECT pg_backend_pid()") in processes

    asyncio.run(main())


def test_a_child_that_is_forked_within_a_block(server: Server) -> None:
    """Whatever it leaves on its way out, the transaction is the parent's."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS forked (x int)")
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO forked VALUES (1)")

                async def act() -> None:
                    with pytest.raises((RuntimeError, pg.PostgresError)):
                        await tx.execute("INSERT INTO forked VALUES (2)")
                    with pytest.raises((RuntimeError, pg.PostgresError)):
                        await tx.__aexit__(None, None, None)

                await in_child(act)
                await tx.execute("INSERT INTO forked VALUES (3)")
            assert await pool.fetch("SELECT x FROM forked ORDER BY x") == [(1,), (3,)]
            async with pool.cursor("SELECT generate_series(1, 2000)", rows_max=100) as rows:
                seen = [await anext(aiter(rows))]

                async def reads() -> None:
                    with pytest.raises((RuntimeError, pg.PostgresError)):
                        async for _ in rows:
                            pass

                await in_child(reads)
                seen += [row async for row in rows]
            assert seen == [(number,) for number in range(1, 2001)]

    asyncio.run(main())


def test_sqlalchemy_connects_anew_in_a_child(server: Server) -> None:
    query = {"host": str(server.directory), "port": str(server.port)}
    url = URL.create("postgresql+citius", username=server.user, database="postgres", query=query)

    async def main() -> None:
        engine = create_async_engine(url, pool_size=2)

        async def identity() -> int:
            async with engine.connect() as connection:
                return (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()

        first = await identity()

        async def act() -> None:
            await engine.dispose(close=False)  # as SQLAlchemy asks for
            assert await identity() != first

        await in_child(act)
        assert await identity() == first
        await engine.dispose()

    asyncio.run(main())
