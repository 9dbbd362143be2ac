"""Transactions and cursors of ``citius.sqlite``: all or nothing, whatever happens to their callers."""

# Without postponed annotations: those of handlers name the pool of their function.

import asyncio
import random
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest
from citius import App, FromPool, HTTPError, sqlite
from citius.testing import AsyncClient


class Row(NamedTuple):
    x: int


NUMBERS = (
    "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < $1) SELECT x FROM c"
)


def test_all_or_nothing(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x UNIQUE)")
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")
                with pytest.raises(ZeroDivisionError):
                    async with tx.transaction() as inner:
                        await inner.execute("INSERT INTO t VALUES (2)")
                        raise ZeroDivisionError
                async with tx.transaction() as inner, inner.transaction() as innermost:
                    assert (
                        await innermost.execute_many("INSERT INTO t VALUES ($1)", [(3,), (4,)]) == 2
                    )
                with pytest.raises(sqlite.UniqueViolation):
                    await tx.execute("INSERT INTO t VALUES (1)")
                assert await pool.fetch("SELECT x FROM t") == []
                assert await tx.fetch("SELECT x FROM t") == [(1,), (3,), (4,)]
            with pytest.raises(RuntimeError, match="the transaction is not open"):
                tx.fetch("SELECT 1")
            with pytest.raises(RuntimeError, match="entered once"):
                await tx.__aenter__()
            assert await pool.fetch("SELECT x FROM t") == [(1,), (3,), (4,)]
            with pytest.raises(ZeroDivisionError):
                async with pool.transaction() as tx:
                    await tx.execute("DELETE FROM t")
                    raise ZeroDivisionError
            assert await pool.fetch_value("SELECT count(*) FROM t") == 3

    asyncio.run(main())


def test_a_commit_that_fails(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(
                "CREATE TABLE a (x PRIMARY KEY);"
                "CREATE TABLE b (x REFERENCES a DEFERRABLE INITIALLY DEFERRED)"
            )
            with pytest.raises(sqlite.ForeignKeyViolation):
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO b VALUES (1)")
            assert await pool.fetch_value("SELECT count(*) FROM b") == 0
            with pytest.raises(sqlite.StatementRefused, match="leave the block"):
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO a VALUES (1)")
                    await tx.execute("ROLLBACK")
            assert await pool.execute("INSERT INTO a VALUES (1)") == 1

    asyncio.run(main())


def test_a_transaction_that_reads_sees_one_state(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            async with pool.transaction(readonly=True, isolation="repeatable read") as tx:
                assert await tx.fetch_value("SELECT count(*) FROM t") == 0
                await pool.execute("INSERT INTO t VALUES (1)")
                assert await tx.fetch_value("SELECT count(*) FROM t") == 0
            wrong = pytest.raises(ValueError, match="isolation is one of")
            with wrong:
                pool.transaction(isolation="none")  # type: ignore[arg-type]

    asyncio.run(main())


def test_cursors(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path, readers=1) as pool:
            async with pool.cursor(NUMBERS, 1000, rows_max=100) as rows:
                assert [x async for (x,) in rows] == list(range(1, 1001))
            async with pool.cursor(NUMBERS, 10**9, as_=Row) as rows:
                async for row in rows:
                    if row.x == 700:
                        break
            async with pool.transaction() as tx:
                await tx.execute("CREATE TABLE t (x)")
                async with tx.cursor(NUMBERS, 3) as rows:
                    assert await rows.fetch() == [(1,), (2,), (3,)]
                    assert await rows.fetch() == []
            with pytest.raises(sqlite.SyntaxOrAccessError):
                async with pool.cursor("SELECT nothing") as rows:
                    await rows.fetch()
            with pytest.raises(ValueError, match="rows_max must be at least 1"):
                pool.cursor("SELECT 1", rows_max=0)
            assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(main())


def test_no_money_is_lost(path: Path) -> None:
    """Transfers whose callers leave at any moment: each is done or not, and the sum stays."""
    rng = random.Random(7)

    async def transfer(pool: sqlite.Pool) -> None:
        source, target = rng.sample(range(10), 2)
        async with pool.transaction() as tx:
            left = await tx.fetch_value(
                "UPDATE account SET balance = balance - 1 WHERE id = $1 RETURNING balance", source
            )
            await tx.execute("UPDATE account SET balance = balance + 1 WHERE id = $1", target)
            if left < 0:
                raise ValueError(left)

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
            await pool.execute_many(
                "INSERT INTO account VALUES ($1, 20)", [(i,) for i in range(10)]
            )
            for _ in range(40):
                tasks = [asyncio.create_task(transfer(pool)) for _ in range(10)]
                for _ in range(rng.randrange(40)):
                    await asyncio.sleep(0)
                # Time in which the threads do something.
                await asyncio.sleep(rng.random() / 500)
                for task in rng.sample(tasks, 5):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                assert await pool.fetch_value("SELECT sum(balance) FROM account") == 200

    asyncio.run(main())


def test_a_request_is_a_transaction(path: Path) -> None:
    pool = sqlite.Pool(path)
    app = App(lifespan=pool.lifespan)

    @app.post("/notes/{text}")
    async def note(text: str, tx: Annotated[sqlite.Transaction, FromPool(pool)]) -> int:
        number: int = await tx.fetch_value("INSERT INTO note VALUES ($1) RETURNING rowid", text)
        if text == "refused":
            raise HTTPError(409)
        return number

    async def main() -> None:
        async with AsyncClient(app) as client:
            await pool.script("CREATE TABLE note (text)")
            assert (await client.post("/notes/kept")).json() == 1
            assert (await client.post("/notes/refused")).status_code == 409
            assert await pool.fetch("SELECT text FROM note") == [("kept",)]

    asyncio.run(main())
