"""What tests of applications stand on: a database of their own, and transactions that are rolled back."""

# Not `from __future__ import annotations`: those of handlers name a pool that is made in a function.

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from citius import App, FromPool, pg
from citius.testing import AsyncClient, Client
from citius.testing.postgres import VARIABLE, NoPostgres, database, rolled_back
from pg_rig import Server

TABLE = "CREATE TABLE IF NOT EXISTS kept (a int PRIMARY KEY)"


def shop(pool: pg.Pool) -> App:
    app = App(lifespan=pool.lifespan)

    @app.post("/add/{a}")
    async def add(a: int, tx: Annotated[pg.Transaction, FromPool(pool)]) -> int:
        await tx.execute("INSERT INTO kept VALUES ($1)", a)
        # A statement beside the transaction waits for none of its own.
        return await pool.fetch_value("SELECT $1::int", a)

    @app.post("/fail/{a}")
    async def fail(a: int, tx: Annotated[pg.Transaction, FromPool(pool)]) -> None:
        await tx.execute("INSERT INTO kept VALUES ($1)", a)
        raise RuntimeError("as the test wants it")

    @app.exception_handler(pg.UniqueViolation)
    def taken(request: object, error: Exception) -> str:
        return "taken"

    @app.get("/all")
    async def everything() -> list[int]:
        return [a for (a,) in await pool.fetch("SELECT a FROM kept ORDER BY a")]

    @app.get("/several")
    async def several() -> list[int]:
        return await pg.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(3)))

    return app


@pytest.fixture
def elsewhere(server: Server) -> pg.Pool:
    async def make() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute(TABLE)

    asyncio.run(make())
    return pg.Pool("host=/nonexistent", size=2)


def test_each_test_is_a_transaction(server: Server, elsewhere: pg.Pool) -> None:
    pool = elsewhere
    app = shop(pool)
    for _ in range(2):
        with rolled_back(pool, server.dsn), Client(app, raise_errors=False) as client:
            assert client.get("/all").json() == []
            assert client.post("/add/1").json() == 1
            assert client.post("/add/1").text == "taken"
            assert client.post("/fail/2").status_code == 500
            assert client.get("/all").json() == [1]
            assert client.get("/several").json() == [0, 1, 2]
            assert client.run(pool.fetch_value("SELECT count(*) FROM kept")) == 1
            with pytest.raises(pg.ServerError, match="division"):
                client.run(pool.fetch("SELECT 1 / 0"))
            assert client.run(pool.execute_many("INSERT INTO kept VALUES ($1)", [(5,), (6,)])) == 2
            assert client.run(pool.copy_in("COPY kept FROM STDIN", [(7,)])) == 1
            assert client.run(rows_of(pool)) == [(1,), (5,), (6,), (7,)]
            assert client.get("/all").json() == [1, 5, 6, 7]
    # It is what it was.
    assert pool.targets[0].host == "/nonexistent"
    with pytest.raises(pg.SessionLost):
        asyncio.run(pool.open())


async def rows_of(pool: pg.Pool) -> list[tuple[int]]:
    async with pool.cursor("SELECT a FROM kept ORDER BY a") as rows:
        return [row async for row in rows]


def test_requests_side_by_side(server: Server, elsewhere: pg.Pool) -> None:
    pool = elsewhere

    async def main() -> None:
        async with AsyncClient(shop(pool)) as client:
            added = await asyncio.gather(*(client.post(f"/add/{n}") for n in range(20)))
            assert [response.json() for response in added] == [*range(20)]
            failed = [client.post(f"/fail/{n}") for n in range(30, 40)]
            await asyncio.gather(
                *failed, *(client.get("/all") for _ in range(5)), return_exceptions=True
            )
            assert (await client.get("/all")).json() == [*range(20)]

            async def both() -> None:
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO kept VALUES (100)")
                    async with tx.transaction(), pool.transaction() as other:
                        await other.execute("INSERT INTO kept VALUES (101)")

            await asyncio.wait_for(both(), 10)
            assert await pool.fetch_value("SELECT count(*) FROM kept") == 22

    with rolled_back(pool, server.dsn):
        asyncio.run(main())


def test_a_database_in_a_server_that_is_there(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def names(dsn: str) -> list[str]:
        async with pg.Pool(dsn, size=1) as pool:
            return [name for (name,) in await pool.fetch("SELECT datname::text FROM pg_database")]

    for dsn in (server.dsn, server.url):
        monkeypatch.setenv(VARIABLE, dsn)
        with database() as url:
            made = asyncio.run(names(url))
            assert sum(name.startswith("citius_test_") for name in made) == 1

            async def where(url: str = url) -> str:
                async with pg.Pool(url, size=1) as pool:
                    return await pool.fetch_value("SELECT current_database()::text")

            assert asyncio.run(where()).startswith("citius_test_")
        assert not any(name.startswith("citius_test_") for name in asyncio.run(names(server.dsn)))


def test_without_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("citius.testing.postgres.find_binaries", lambda: None)
    with pytest.raises(NoPostgres, match=f"install it .*{VARIABLE}"), database():
        pass


SUITE = """
import asyncio
from citius import pg

async def ask(dsn):
    async with pg.Pool(dsn, size=1) as pool:
        await pool.execute("CREATE TABLE t (a int)")
        return await pool.fetch_value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")

def test_database(citius_postgres):
    assert asyncio.run(ask(citius_postgres)) == 1
"""


@pytest.mark.parametrize("is_given", [True, False])
def test_the_fixture(server: Server, tmp_path: Path, is_given: bool) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    if is_given:
        environment[VARIABLE] = server.dsn
    plugin = ["-p", "no:citius", "-p", "citius.testing.plugin", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, env=environment, check=False,
    )  # fmt: skip
    assert "1 passed" in ended.stdout, ended.stdout


def test_copy_out_is_of_the_transaction_of_the_test(server: Server, elsewhere: pg.Pool) -> None:
    """It had a session of its own: it saw nothing of the test, and what it wrote stayed."""
    added = "COPY (INSERT INTO kept VALUES (91) RETURNING a) TO STDOUT"
    many = "COPY (SELECT generate_series(1, 100000) AS a) TO STDOUT"

    async def read(sql: str) -> bytes:
        async with elsewhere.copy_out(sql) as chunks:
            return b"".join([chunk async for chunk in chunks])

    def read_sync() -> list[bytes]:
        with elsewhere.sync.copy_out("COPY (SELECT max(a) FROM kept) TO STDOUT") as chunks:
            return list(chunks)

    async def main() -> None:
        with rolled_back(elsewhere, server.dsn):
            async with elsewhere:
                await elsewhere.execute("INSERT INTO kept VALUES (90)")
                assert await read(added) == b"91\n"
                assert await asyncio.to_thread(read_sync) == [b"91\n"]
                async with elsewhere.copy_out(many) as chunks:
                    assert await anext(chunks)
                with pytest.raises(pg.SyntaxOrAccessError):
                    await read("COPY (SELECT x FROM kept) TO STDOUT")
                assert await elsewhere.fetch_value("SELECT min(a) FROM kept WHERE a >= 90") == 90
        async with pg.Pool(server.dsn, size=1) as pool:
            assert await pool.fetch("SELECT a FROM kept WHERE a >= 90") == []

    asyncio.run(asyncio.wait_for(main(), 60))
