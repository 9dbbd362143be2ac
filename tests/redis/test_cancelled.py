"""No connection is kept by what is cancelled at any await (issue 32 C4, databases D2)."""

# pyright: basic

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from cancelling import at_every_await
from citius.redis import Redis
from redis_rig import Server

Use = Callable[[Redis[bytes]], Coroutine[Any, Any, None]]


async def watch(redis: Redis[bytes]) -> None:
    async with redis.watch("k") as watched:
        await watched.get("k")
        async with watched.transaction() as tx:
            tx.incr("k")


async def own(redis: Redis[bytes]) -> None:
    async with redis.connection() as connection:
        await connection.execute("SELECT", 3)
        await connection.get("k")


async def wait(redis: Redis[bytes]) -> None:
    await redis.blpop("none", timeout=0.01)


async def listen(redis: Redis[bytes]) -> None:
    async with redis.subscribe("news"):
        await asyncio.sleep(0)


async def script(redis: Redis[bytes]) -> None:
    await redis.script_flush()
    await redis.register_script("return redis.call('INCR', KEYS[1])")(["counted"])


async def transaction(redis: Redis[bytes]) -> None:
    async with redis.transaction() as tx:
        tx.incr("k")


@pytest.mark.parametrize("use", [watch, own, wait, listen, script, transaction])
def test_nothing_is_kept(server: Server, use: Use) -> None:
    async def steps() -> None:
        async with Redis(server.url, blocking_max=1, timeout_s=10) as redis:
            async for where in at_every_await(lambda: use(redis)):
                async with asyncio.timeout(10):
                    await watch(redis)
                    async with redis.connection() as connection:
                        info = await connection.execute("CLIENT", "INFO")
                    assert "db=0 " in str(info), where
                    await wait(redis)

    asyncio.run(steps())


def test_a_client_that_is_opened(server: Server) -> None:
    """No connection is left."""

    async def use() -> None:
        async with Redis(server.url, client_name="opened") as redis:
            await redis.get("k")

    async def steps() -> None:
        async with Redis(server.url) as redis:
            async for _ in at_every_await(use):
                async with asyncio.timeout(10):
                    while "name=opened" in str(await redis.execute("CLIENT", "LIST")):
                        await asyncio.sleep(0.001)  # between two looks

    asyncio.run(steps())
