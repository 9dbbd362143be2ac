"""``tx.on_commit`` of PostgreSQL: newcomer A3. See ``tests/sqlite/test_on_commit.py`` for what both share."""

# Not `from __future__ import annotations`: those of handlers name a pool that is made in a function.

import asyncio
import contextlib
from typing import Annotated

import pytest
from citius import App, FromPool, pg
from citius.testing import Client
from citius.testing.postgres import rolled_back
from pg_rig import Server

TABLE = "CREATE TABLE committed (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"


def test_after_the_commit_and_not_otherwise(server: Server) -> None:
    async def main() -> list[object]:
        seen: list[object] = []
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("DROP TABLE IF EXISTS committed")
            await pool.execute(TABLE)

            async def later() -> None:
                # The one session is free, and the row is there.
                seen.append(await pool.fetch_value("SELECT count(*) FROM committed"))

            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO committed VALUES (1)")
                tx.on_commit(later)
                async with tx.transaction() as inner:
                    inner.on_commit(seen.append, "inner")
                assert seen == []
            with pytest.raises(pg.ServerError):
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO committed VALUES (1)")
                    tx.on_commit(seen.append, "a commit that failed")
            with pytest.raises(KeyError):
                async with pool.transaction() as tx:
                    tx.on_commit(seen.append, "raised")
                    raise KeyError
            with pytest.raises(pg.PostgresError):
                async with pool.transaction() as tx:
                    tx.on_commit(seen.append, "a statement that failed")
                    with contextlib.suppress(pg.ServerError):
                        await tx.execute("SELECT 1 / 0")
        return seen

    assert asyncio.run(main()) == [1, "inner"]


WAITS = """
CREATE TABLE waiting (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER a_first AFTER INSERT ON waiting DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait()
"""


def test_a_caller_that_leaves_during_the_commit(server: Server) -> None:
    """A COMMIT that succeeds is followed by the functions, one that fails by none of them."""

    async def main() -> list[object]:
        seen: list[object] = []
        async with pg.Pool(server.dsn, size=3) as pool:
            await pool.core.script(WAITS, None)

            async def work(*values: int) -> None:
                async with pool.transaction() as tx:
                    for value in values:
                        await tx.execute("INSERT INTO waiting VALUES ($1)", value)
                    async with tx.transaction() as inner:
                        inner.on_commit(seen.append, values)

            for values in ((1,), (2, 2)):
                async with pool.transaction() as tx:
                    await tx.execute("SELECT pg_advisory_xact_lock(7)")
                    task = asyncio.create_task(work(*values))
                    while not await tx.fetch_value(
                        "SELECT count(*) FROM pg_locks WHERE NOT granted"
                    ):
                        pass
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
            # Both have ended when the pool has got its sessions back.
            blocks = [pool.transaction() for _ in range(3)]
            for block in blocks:
                await block.__aenter__()
            for block in blocks:
                await block.__aexit__(None, None, None)
            assert await pool.fetch("SELECT a FROM waiting") == [(1,)]
        return seen

    assert asyncio.run(asyncio.wait_for(main(), 60)) == [(1,)]


def test_serial_code(server: Server) -> None:
    pool, seen = pg.Pool(server.dsn, size=1), list[str]()
    with pool.sync as sync:
        with sync.transaction() as tx:
            tx.on_commit(seen.append, "committed")
            assert seen == []
        with pytest.raises(KeyError), sync.transaction() as tx:
            tx.on_commit(seen.append, "raised")
            raise KeyError
    assert seen == ["committed"]


def test_in_tests_that_are_rolled_back(server: Server) -> None:
    pool, seen = pg.Pool(server.dsn), list[int]()
    app = App(lifespan=pool.lifespan)

    @app.get("/{a:int}")
    async def add(a: int, tx: Annotated[pg.Transaction, FromPool(pool)]) -> int:
        tx.on_commit(seen.append, a)
        return a

    with rolled_back(pool, server.dsn), Client(app) as client:
        assert client.get("/3").json() == 3
    assert seen == [3]
