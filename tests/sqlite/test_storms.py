"""Storms: many callers that leave at any moment; each result is its caller's own, nothing is lost or held.

The storms of the trials (databases, rows 1 to 4, 77, 81) at a length that `make test-nightly` has time for.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import rig
from citius import sqlite

ROUNDS, CALLERS = 150, 40


@rig.storm
def test_callers_that_leave_at_any_moment(path: Path) -> None:
    rng = random.Random(11)
    wrong: list[object] = []

    async def ask(pool: sqlite.Pool, number: int) -> None:
        kind = number % 4
        if kind == 0:
            found = await pool.fetch_value("SELECT $1", number)
        elif kind == 1:
            async with pool.transaction() as tx:
                await tx.execute("UPDATE account SET balance = balance - 1 WHERE id = 1")
                async with tx.transaction() as inner:
                    await inner.execute("UPDATE account SET balance = balance + 1 WHERE id = 2")
                found = await tx.fetch_value("SELECT $1", number)
        elif kind == 2:
            async with pool.cursor("SELECT $1 UNION ALL SELECT $1", number, rows_max=1) as rows:
                [(found,), _] = [row async for row in rows]
        else:
            async with pool.transaction(readonly=True) as tx:
                found = await tx.fetch_value("SELECT $1", number)
        if found != number:
            wrong.append((number, found))

    async def main() -> None:
        async with sqlite.Pool(path, readers=2) as pool:
            await pool.script(
                "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);"
                "INSERT INTO account VALUES (1, 0), (2, 0)"
            )
            for _ in rig.rounds(ROUNDS):
                tasks = [
                    asyncio.create_task(
                        asyncio.wait_for(ask(pool, rng.randrange(10**6)), rng.random() / 20)
                    )
                    for _ in range(CALLERS)
                ]
                await asyncio.sleep(rng.random() / 200)  # they get on for a while
                for task in rng.sample(tasks, CALLERS // 3):
                    task.cancel()
                await asyncio.wait(tasks)
                assert await pool.fetch_value("SELECT sum(balance) FROM account") == 0
                assert await pool.execute("UPDATE account SET balance = balance") == 2
            assert pool.queued == 0

    asyncio.run(main())
    assert wrong == []
