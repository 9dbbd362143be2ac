"""Requests that are cancelled and connections that are killed: no reply of one request is another's.

Each request asks for what only it asks for. Counters say what has been done: what was reported as done is
done once, what was reported as lost once or not at all, and what was never sent not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from citius.redis import CommandLost, Redis, RedisError, TimedOut
from redis_rig import Server


class History:
    """Clients of several kinds, and what they have seen."""

    def __init__(self, redis: Redis[bytes], seed: int) -> None:
        self.redis, self.random = redis, random.Random(seed)
        self.done: list[str] = []
        self.unknown: list[str] = []
        self.refused: list[str] = []
        self.mixed: list[object] = []
        self.numbers = iter(range(10**9))
        self.is_over = False

    def expect(self, asked: object, found: object) -> None:
        if asked != found:
            self.mixed.append((asked, found))

    async def count(self, key: str) -> None:
        assert await self.redis.incr(key) in (1, 2)

    async def echo(self, key: str) -> None:
        self.expect(key.encode(), await self.redis.echo(key))
        await self.count(key)

    async def block(self, key: str) -> None:
        async with self.redis.transaction() as tx:
            one, two, three = tx.echo(key), tx.incr(key), tx.mget(key, "none")
        self.expect((key.encode(), 1, [b"1", None]), (await one, await two, await three))

    async def script(self, key: str) -> None:
        source = "return {KEYS[1], redis.call('INCR', KEYS[1]), ARGV[1]}"
        found = await self.redis.register_script(source)([key], [key])
        self.expect([key.encode(), 1, key.encode()], found)

    async def watch(self, key: str) -> None:
        async with self.redis.watch(key) as watched:
            self.expect(None, await watched.get(key))
            async with watched.transaction() as tx:
                one, two = tx.incr(key), tx.echo(key)
            self.expect((1, key.encode()), (await one, await two))

    async def queue(self, key: str) -> None:
        await self.redis.rpush(f"queue:{key}", key)
        found = await self.redis.blpop(f"queue:{key}", timeout=5)
        self.expect((f"queue:{key}".encode(), key.encode()), found)
        await self.count(key)

    async def long(self, key: str) -> None:
        text = key * 20_000
        found = await self.redis.eval("return {KEYS[1], ARGV[1], {KEYS[1]}}", [key], [text])
        self.expect([key.encode(), text.encode(), [key.encode()]], found)
        await self.count(key)

    async def client(self) -> None:
        kinds = (self.echo, self.echo, self.block, self.script, self.watch, self.queue, self.long)
        while not self.is_over:
            key = f"n{next(self.numbers)}"
            try:
                async with asyncio.timeout(self.random.choice([0.0005, 0.002, 0.01, 30])):
                    await self.random.choice(kinds)(key)
            except (TimeoutError, CommandLost):
                # Cancelled or cut off at any moment.
                self.unknown.append(key)
            except RedisError:
                self.refused.append(key)
                await asyncio.sleep(0.005)  # a client that is refused does not ask at once
            else:
                self.done.append(key)

    async def progress(self, count: int) -> None:
        goal = len(self.done) + count
        while len(self.done) < goal:
            await asyncio.sleep(0.005)  # a look at a condition

    async def run(self, harm) -> None:
        tasks = [asyncio.create_task(self.client()) for _ in range(24)]
        try:
            await harm(self)
            await self.progress(200)
        finally:
            self.is_over = True
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if result is not None] == []

    async def check(self) -> None:
        assert self.mixed == []
        assert len(self.unknown) > 0
        counts = await self.redis.mget(*self.done, as_=int)
        assert set(counts) == {1}
        unsure = await self.redis.mget(*self.unknown, *self.refused, as_=int)
        assert set(unsure) <= {None, 1}


async def cancelled_requests(history: History) -> None:
    await history.progress(800)


async def killed_connections(history: History) -> None:
    for _ in range(15):
        await history.progress(30)
        with contextlib.suppress(RedisError, TimedOut):
            clients = await history.redis.client_list()
            victim = history.random.choice(clients)["id"]
            await history.redis.execute("CLIENT", "KILL", "ID", victim, "SKIPME", "no")


@pytest.mark.parametrize(
    "harm", [cancelled_requests, killed_connections], ids=["cancelled", "killed"]
)
@pytest.mark.parametrize("size", [1, 3])
def test_no_reply_of_one_request_is_another_s(own_server: Server, harm, size: int) -> None:
    async def main() -> None:
        async with Redis(own_server.url, size=size, timeout_s=10) as redis:
            history = History(redis, seed=size)
            await history.run(harm)
            await history.check()

    asyncio.run(asyncio.wait_for(main(), 60))
