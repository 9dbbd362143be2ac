"""Nodes of a cluster that are there and say nothing: what others can do is done by them.

A node that stands still accepts connections, and all that is written to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from citius.redis import Redis, RedisError
from redis_rig import SERVER, WAIT_S, Nodes, Server, until

SLOT = 3300  # that of {b}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citius.redis.heartbeat.IDLE_S", 0.3)
    monkeypatch.setattr("citius.redis.heartbeat.DEAD_S", 0.3)


def started(made: Nodes) -> Iterator[Nodes]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    try:
        made.start()
        for server in made.servers:
            # Otherwise nodes that are there tell of one that is not.
            server.say("CONFIG", "SET", "cluster-require-full-coverage", "no")
        yield made
    finally:
        made.remove()


async def again(redis: Redis[bytes], key: str) -> None:
    """Write a key until it succeeds."""
    while True:
        try:
            await redis.set(key, "new")
        except RedisError:
            await asyncio.sleep(0.02)  # a pause between two attempts
        else:
            return


@pytest.mark.parametrize("timeout_s", [None, 1])
def test_a_replica_has_the_place_of_a_master_that_is_silent(timeout_s: float | None) -> None:
    """No node told of it: commands for its keys went to it for ever, or waited for ever."""
    for nodes in started(Nodes(3, replicas=True)):

        async def main() -> None:
            silent = nodes.owner(SLOT)
            async with Redis(nodes.url, timeout_s=timeout_s, connect_timeout_s=1) as redis:
                await redis.set("{b}k", "old")
                waiting = asyncio.ensure_future(redis.blpop("{b}q", timeout=0))
                await until(
                    lambda: b"blocked_clients:1" in silent.say("INFO", "clients"), "it waits"
                )
                silent.pause()
                await again(redis, "{b}k")
                with pytest.raises(RedisError):
                    await waiting

        asyncio.run(asyncio.wait_for(main(), WAIT_S))


def subscribers(server: Server) -> bool:
    return b":1\r\n" in server.say("PUBSUB", "NUMSUB", "news")


@pytest.mark.parametrize("when", ["first", "later"])
def test_messages_come_from_another_node(when: str) -> None:
    """A subscription stayed with a node that said nothing, without a gap, while others passed messages on."""
    for nodes in started(Nodes(3)):

        async def main() -> None:
            gaps: list[int] = []
            async with Redis(nodes.url, timeout_s=1, connect_timeout_s=1) as redis:
                if when == "later":
                    await redis.ping()
                async with redis.subscribe("news", on_gap=lambda: gaps.append(1)) as messages:
                    silent = next(one for one in nodes.servers if subscribers(one))
                    other = next(one for one in nodes.servers if one is not silent)
                    silent.pause()
                    await until(lambda: bool(gaps), "the gap is told")
                    other.say("PUBLISH", "news", "heard")
                    assert (await anext(aiter(messages))).data == b"heard"

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
