"""Commands that the server keeps waiting: on connections of their own, bounded, cancelled."""

from __future__ import annotations

import asyncio

import pytest
from citius.redis import TimedOut
from redis_rig import opened, until


@opened
async def test_the_shared_connection_never_waits(redis) -> None:
    waiting = asyncio.ensure_future(redis.blpop("queue"))
    reading = asyncio.ensure_future(redis.xread({"s": "$"}, block_ms=0))
    raw = asyncio.ensure_future(redis.execute("brpop", "other", 0))
    await until(lambda: redis.connections == 4, "connections of their own")
    assert await redis.ping()
    await redis.rpush("queue", "a")
    assert await waiting == (b"queue", b"a")
    while not reading.done():
        await redis.xadd("s", {"a": 1})
    assert len(await reading) == 1
    await redis.rpush("other", "b")
    assert await raw == [b"other", b"b"]
    # They are used again.
    for _ in range(3):
        assert await redis.blpop("queue", timeout=0.01) is None
    assert redis.connections == 4


@opened
async def test_a_cancelled_wait_takes_nothing(redis) -> None:
    """Its connection is closed, so that the server does not give an item to a command that was cancelled."""
    waiting = asyncio.ensure_future(redis.blpop("queue"))
    while (await redis.info("clients"))["blocked_clients"] != "1":
        pass
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    while (await redis.info("clients"))["blocked_clients"] != "0":
        pass
    await redis.rpush("queue", "a")
    assert await redis.lpop("queue") == b"a"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await redis.blpop("queue")
    await redis.rpush("queue", "b")
    assert await redis.blpop("queue", timeout=5) == (b"queue", b"b")


@opened(blocking_max=2, timeout_s=1)
async def test_connections_for_waiting_are_bounded(redis) -> None:
    waiting = [asyncio.ensure_future(redis.blpop("queue", timeout=2)) for _ in range(4)]
    results = await asyncio.gather(*waiting[2:], return_exceptions=True)
    assert {type(result) for result in results} == {TimedOut}
    assert redis.connections == 3
    # The others wait as long as they have asked for, which is longer than other commands may take.
    assert await asyncio.gather(*waiting[:2]) == [None, None]


@opened(blocking_max=2)
async def test_waiting_commands_take_turns(redis) -> None:
    waiting = [asyncio.ensure_future(redis.blpop(f"q{n}", timeout=10)) for n in range(10)]
    await asyncio.sleep(0)
    for number in range(10):
        await redis.rpush(f"q{number}", number)
    results = await asyncio.gather(*waiting)
    assert results == [(f"q{n}".encode(), str(n).encode()) for n in range(10)]
