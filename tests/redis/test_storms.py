"""Storms: many callers that leave at any moment, connections that are cut; each reply is its caller's own.

The storms of the trials (databases, rows 58, 59, 66; hostile, "what held") at a length that
`make test-nightly` has time for.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
import rig
from citius.redis import ClientCache, Redis, RedisError, WatchFailed
from redis_rig import Server, until

ROUNDS, CALLERS = 150, 60


@rig.storm
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("cached", [False, True])
def test_callers_that_leave_at_any_moment(server: Server, cut: bool, cached: bool) -> None:
    rng = random.Random(11)
    wrong: list[object] = []

    async def ask(redis: Redis[bytes], number: int) -> None:
        kind = number % 6
        expected: Any = number
        if kind == 0:
            found: Any = int(await redis.echo(number))
        elif kind == 1:
            async with redis.transaction() as tx:
                one, two = tx.echo(number), tx.incr("{s}n")
            found = int(await one)
            assert await two > 0
        elif kind == 2:
            try:
                async with redis.watch("{s}w") as watched:
                    async with watched.transaction() as tx:
                        one = tx.echo(number)
                        tx.incr("{s}w")
                    found = int(await one)
            except WatchFailed:
                found = number
        elif kind == 3:
            found = await redis.eval("return tonumber(ARGV[1])", args=[number])
        elif kind == 4:
            key = f"s:{number % 97}"
            found, expected = await redis.get(key, as_=int), number % 97
        else:
            found, expected = await redis.blpop(f"none:{number}", timeout=0.01), None
        if found != expected:
            wrong.append((kind, number, found))

    async def main() -> None:
        options: dict[str, Any] = {"cache": ClientCache()} if cached else {}
        async with (
            Redis(server.url, timeout_s=5, blocking_max=8, **options) as redis,
            Redis(server.url) as admin,
        ):
            await admin.mset({f"s:{number}": number for number in range(97)})
            own = await admin.client_id()
            for _ in rig.rounds(ROUNDS):
                tasks = [
                    asyncio.create_task(
                        asyncio.wait_for(ask(redis, rng.randrange(10**6)), rng.random() / 20)
                    )
                    for _ in range(CALLERS)
                ]
                await asyncio.sleep(rng.random() / 200)  # they get on for a while
                for task in rng.sample(tasks, CALLERS // 3):
                    task.cancel()
                if cut and rng.random() < 0.3:
                    for one in await admin.client_list():
                        if int(one["id"]) != own:
                            await admin.execute("CLIENT", "KILL", "ID", one["id"])
                results = await asyncio.gather(*tasks, return_exceptions=True)
                allowed = (TimeoutError, asyncio.CancelledError, RedisError)
                assert all(one is None or isinstance(one, allowed) for one in results), results
            await until(lambda: redis.queued == 0, "nothing waits")
            # All kinds of connections serve on.
            assert await redis.ping()
            for kind in range(6):
                await ask(redis, kind + 6 * 1000)

    asyncio.run(main())
    assert wrong == []
