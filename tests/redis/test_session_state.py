"""What a caller does to a connection is refused, or ends with its block; its calls end with the block too.

The defects of the trials that these tests hold: databases D8, M1, M3; hostile 5a, 5b.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from citius.redis import (
    BlockEnded,
    CommandLost,
    ConnectionLost,
    Message,
    Redis,
    ServerError,
    TimedOut,
    WatchFailed,
)
from redis_rig import WAIT_S, Server, opened, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NEVER: list[tuple[Any, ...]] = [
    ("CLIENT", "REPLY", "SKIP"), ("client", "reply", "off"), (b"CLIENT", b"REPLY", b"ON"),
    ("CLIENT", bytearray(b"Reply"), "OFF"), ("CLIENT", memoryview(b"REPLY"), "OFF"), ("SUBSCRIBE", "a"),
    ("PSUBSCRIBE", "a"), ("SSUBSCRIBE", "a"), ("HELLO", 2), ("RESET",), ("MONITOR",), ("PSYNC", "?", -1),
    ("POST", "x"), (b"Host:",),
]  # fmt: skip
OF_A_CONNECTION: list[tuple[Any, ...]] = [
    ("SELECT", 5), ("select", "5"), ("AUTH", "x"), ("MULTI",), ("EXEC",), ("DISCARD",),
    ("CLIENT", "TRACKING", "ON"), ("CLIENT", "CACHING", "YES"), ("CLIENT", "NO-EVICT", "on"),
    ("CLIENT", "NO-TOUCH", "on"),
    ("CLIENT", "SETNAME", "x"), ("CLIENT", "SETINFO", "lib-name", "x"), ("SCRIPT", "DEBUG", "YES"),
    ("READONLY",), ("READWRITE",), ("ASKING",), ("WAIT", 0, 0), ("QUIT",),
]  # fmt: skip


@opened
async def test_what_changes_a_connection_is_refused(redis) -> None:
    """databases D8, hostile 5a and 5b: the replies, or the data, of others."""
    for words in (*NEVER, *OF_A_CONNECTION, ("WATCH", "k"), ("UNWATCH",)):
        with pytest.raises(
            ValueError, match=r"is not sent (by this client|on a connection that is shared)"
        ):
            redis.execute(*words)
    async with redis.transaction() as tx:
        for words in (*NEVER, *OF_A_CONNECTION):
            with pytest.raises(ValueError, match="is not sent"):
                tx.execute(*words)
    async with redis.watch("k") as watched:
        for words in (*NEVER, *OF_A_CONNECTION):
            with pytest.raises(
                ValueError, match=r"is not sent (by this client|on a connection of redis\.watch)"
            ):
                watched.execute(*words)
        assert await watched.execute("WATCH", "other") == "OK"
        assert await watched.execute("UNWATCH") == "OK"
    async with redis.connection() as connection:
        for words in NEVER:
            with pytest.raises(ValueError, match="is not sent by this client"):
                connection.execute(*words)
        assert await connection.execute("SELECT", 5) == "OK"
        assert await connection.execute("CLIENT", "TRACKING", "ON") == "OK"
        assert await connection.execute("MULTI") == "OK"
    assert await redis.execute("CLIENT", "ID") > 0
    assert await redis.execute("CLIENT", "GETNAME") is None


@opened(blocking_max=1)
async def test_a_watch_leaves_its_connection_as_it_was(redis) -> None:
    """databases D8."""
    await redis.rpush("q", "job")
    for words in OF_A_CONNECTION:
        async with redis.watch("k") as watched:
            with pytest.raises(ValueError, match="is not sent"):
                await watched.execute(*words)
        assert await redis.blpop("q", timeout=1) == (b"q", b"job")
        await redis.rpush("q", "job")
        async with redis.watch("k") as watched:
            async with watched.transaction() as tx:
                count = tx.incr("k")
            assert await count > 0
    assert redis.connections == 2


@opened(blocking_max=1)
async def test_a_call_belongs_to_its_block(redis) -> None:
    """hostile 5d for Redis: awaited behind the block, it was sent on the connection of the next caller."""
    async with redis.watch("k") as watched:
        late = [watched.get("k"), watched.execute("UNWATCH"), watched.eval("return 1")]
        block = watched.transaction()
        held = block.incr("k")
        script = watched.register_script("return redis.call('INCR', 'k')")
    async with redis.watch("k") as other:
        for make in (script, watched.transaction):
            with pytest.raises(BlockEnded):
                make()
        for call in late:
            with pytest.raises(BlockEnded, match="await it within the block"):
                await call
        with pytest.raises(BlockEnded):
            await block.__aexit__(None, None, None)
        with pytest.raises(BlockEnded):
            await held
        async with other.transaction() as tx:
            count = tx.incr("k")
        assert await count == 1
    async with redis.connection() as connection:
        kept = connection.get("k")
    with pytest.raises((BlockEnded, ConnectionLost)):
        await kept


@opened
async def test_calls_of_a_transaction_that_fails_say_why(redis) -> None:
    """databases M3: each said to await it behind the block, which was where it was awaited."""
    async with redis.watch("k") as watched:
        await redis.set("k", 1)
        with pytest.raises(WatchFailed):
            async with watched.transaction() as tx:
                calls = [tx.incr("k"), tx.get("k")]
        for call in calls:
            with pytest.raises(WatchFailed):
                await call
    with pytest.raises(ServerError, match="wrong number of arguments"):
        async with redis.transaction() as tx:
            one, two = tx.incr("k"), tx.execute("GET")
    for call in (one, two):
        with pytest.raises(ServerError, match="wrong number of arguments"):
            await call
    assert await redis.get("k", as_=int) == 1


def test_calls_of_a_transaction_without_an_end_say_so(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.ping()
            own_server.pause()
            with pytest.raises(TimedOut):
                async with redis.transaction() as tx:
                    late = tx.incr("k")
            with pytest.raises(TimedOut):
                await late
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), redis.transaction() as tx:
                    left = tx.incr("k")
            with pytest.raises(CommandLost, match="did not wait for its end"):
                await left
            own_server.resume()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


async def watch(redis: Redis[bytes]) -> None:
    async with redis.watch("k") as watched:
        await watched.get("k")
        async with watched.transaction() as tx:
            tx.incr("k")


async def own(redis: Redis[bytes]) -> None:
    async with redis.connection() as connection:
        await connection.ping()


async def wait(redis: Redis[bytes]) -> None:
    await redis.blpop("none", timeout=0.01)


async def listen(redis: Redis[bytes]) -> None:
    async with redis.subscribe("news"):
        pass


@pytest.mark.parametrize("use", [watch, own, wait, listen])
def test_a_caller_may_be_cancelled_at_every_await(
    server: Server, use: Callable[[Redis[bytes]], Awaitable[None]]
) -> None:
    """databases D2, its kind: a connection that comes as its caller is cancelled goes back."""

    async def main() -> None:
        async with Redis(server.url, blocking_max=1, timeout_s=5) as redis:
            await use(redis)
            for behind in (False, True):
                for steps in range(25):
                    task = asyncio.ensure_future(use(redis))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    if behind:
                        # What was asked for has come, and is read in the same turn.
                        await asyncio.sleep(0.002)
                    task.cancel()
                    await asyncio.wait([task])
                    async with asyncio.timeout(5):
                        await use(redis)
            await until(lambda: redis.queued == 0, "nothing waits")

    asyncio.run(main())


def test_an_end_that_is_cancelled_leaves_nothing(server: Server) -> None:
    """databases D20, its kind."""

    async def main() -> None:
        async with Redis(server.url) as admin:
            for steps in range(8):
                redis = Redis(server.url, client_name="left")
                opening = asyncio.ensure_future(redis.open())
                for _ in range(steps):
                    await asyncio.sleep(0)
                opening.cancel()
                await asyncio.wait([opening])
                if not opening.cancelled():
                    closing = asyncio.ensure_future(redis.close())
                    await asyncio.sleep(0)
                    closing.cancel()
                    await asyncio.wait([closing])
                assert redis.connections == 0
            redis = Redis(server.url, client_name="left")
            await redis.open()
            slow = asyncio.ensure_future(redis.execute("DEBUG", "SLEEP", 0.3))
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(redis.close())
            await asyncio.sleep(0.01)  # it waits for the command
            closing.cancel()
            await asyncio.gather(closing, slow, return_exceptions=True)
            while any(one["name"] == "left" for one in await admin.client_list()):
                pass

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@opened
async def test_several_loops_over_one_subscription(redis) -> None:
    """databases M1: the first of two hung though a message waited. Each message goes to one of them."""
    got: list[Message[bytes]] = []

    async def consume(messages) -> None:
        async for message in messages:
            got.append(message)
            await asyncio.sleep(0)

    async with redis.subscribe("news") as messages:
        tasks = [asyncio.ensure_future(consume(messages)) for _ in range(3)]
        await asyncio.sleep(0)
        for number in range(30):
            await redis.publish("news", number)
        await until(lambda: len(got) == 30, "all messages")
        assert sorted(int(one.data) for one in got) == list(range(30))
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        await redis.publish("news", 30)
        await until(lambda: len(got) == 31, "the last one")
    await asyncio.wait(tasks)
