"""``FromPool``: a transaction for each request, committed before the response, or rolled back."""

# Without postponed annotations: those of handlers name the pool of their function.

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

import pytest
from citius import App, Depends, FromPool, HTTPError, pg
from citius.testing import AsyncClient
from pg_rig import Server


def shop(pool: pg.Pool) -> App:
    app = App(lifespan=pool.lifespan)

    async def noted(tx: Annotated[pg.Transaction, FromPool(pool)]) -> str:
        await tx.execute("INSERT INTO note VALUES ('by the dependency')")
        return await tx.fetch_value("SELECT pg_current_xact_id()::text")

    @app.post("/notes/{text}")
    async def note(
        text: str,
        tx: Annotated[pg.Transaction, FromPool(pool)],
        inner: Annotated[str, Depends(noted)],
    ) -> bool:
        await tx.execute("INSERT INTO note VALUES ($1)", text)
        if text == "refused":
            raise HTTPError(409)
        if text == "fails":
            raise RuntimeError(text)
        if text == "waits":
            await tx.execute("SELECT pg_sleep(60)")
        if text == "late":
            # Found at the end of the transaction.
            await tx.execute("INSERT INTO late VALUES (1), (1)")
        return inner == await tx.fetch_value("SELECT pg_current_xact_id()::text")

    @app.get("/isolation")
    async def isolation(
        tx: Annotated[pg.Transaction, FromPool(pool, isolation="serializable", readonly=True)],
        plain: Annotated[pg.Transaction, FromPool(pool)],
    ) -> list[str]:
        asked = "SELECT current_setting('transaction_isolation') || current_setting('transaction_read_only')"
        return [await one.fetch_value(asked) for one in (tx, plain)]

    return app


TABLES = """
    DROP TABLE IF EXISTS note, late;
    CREATE TABLE note (text text);
    CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)
"""


async def notes(pool: pg.Pool) -> list[str]:
    return [text for (text,) in await pool.fetch("SELECT text FROM note")]


def test_a_request_is_a_transaction(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        pool = pg.Pool(server.dsn, size=3)
        async with AsyncClient(shop(pool), raise_errors=False) as client:
            for statement in TABLES.split(";"):
                await pool.execute(statement)
            answer = await client.post("/notes/kept")
            assert (answer.status_code, answer.json()) == (200, True)
            assert await notes(pool) == ["by the dependency", "kept"]
            for text, status_code in (("refused", 409), ("fails", 500), ("late", 500)):
                assert (await client.post(f"/notes/{text}")).status_code == status_code
                assert await notes(pool) == ["by the dependency", "kept"], text
            assert (await client.get("/isolation")).json() == [
                "serializableon",
                "read committedoff",
            ]

    asyncio.run(main())


def test_a_request_whose_client_leaves_is_rolled_back(server: Server) -> None:
    async def main() -> None:
        pool = pg.Pool(server.dsn, size=2)
        async with AsyncClient(shop(pool)) as client:
            for statement in TABLES.split(";"):
                await pool.execute(statement)
            request = asyncio.ensure_future(client.post("/notes/waits"))
            sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            while not await pool.fetch_value(sleeping):
                await asyncio.sleep(0.01)
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            while await pool.fetch_value(sleeping):
                await asyncio.sleep(0.01)
            assert await notes(pool) == []

    asyncio.run(main())


def test_it_can_be_replaced_in_tests(server: Server) -> None:
    async def main() -> None:
        pool = pg.Pool(server.dsn, size=2)
        app = shop(pool)

        async def rolled_back() -> AsyncGenerator[pg.Transaction]:
            outer = pool.transaction()
            begun = await outer.__aenter__()
            try:
                yield begun
            finally:
                error = RuntimeError("the end of a test")
                await outer.__aexit__(type(error), error, None)

        app.dependency_overrides[FromPool(pool).call] = rolled_back
        async with AsyncClient(app) as client:
            for statement in TABLES.split(";"):
                await pool.execute(statement)
            assert (await client.post("/notes/kept")).status_code == 200
            assert await notes(pool) == []

    asyncio.run(main())
