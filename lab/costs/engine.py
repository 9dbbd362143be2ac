#!/usr/bin/env python3
"""What a message of a room costs beside its deliveries: in Redis, and in a node that sends or receives it.

    lab/costs/engine.py [--nodes 2] [--rooms 1000] [--rounds 20]
    lab/costs/engine.py --seams

One process is nodes without members: one sends a message to each room, all receive them. It says CPU
microseconds per message: of Redis (script, stream, publication to all nodes), and of all nodes. With
`--seams` it says the same of a session that is read or changed, a request that is counted, a cached value,
the members of a topic, and a lock, each asked by 16 tasks at the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from citius import Room
from citius.cluster import Cache, Lock, Presence, RedisBuckets, RedisStore
from citius.cluster.cachestores import RedisCache
from citius.cluster.locks import RedisLocks
from citius.cluster.ownredis import RedisByLoop
from citius.cluster.presencestores import RedisPresence
from citius.cluster.records import key_of
from citius.cluster.redislog import RedisLog
from citius.cluster.rooms import ClusterRooms
from citius.cluster.stats import Stats
from rooms import cpu_s, redis_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Node:
    """Rooms without members."""

    def __init__(self, url: str, count: int) -> None:
        self.stats = Stats()
        log = RedisLog(RedisByLoop(url), "citius:measured")
        self.cluster = ClusterRooms(log, key_of("secret", "measured"), self.stats)
        self.rooms = [Room() for _ in range(count)]
        for number, room in enumerate(self.rooms):
            self.cluster.share(f"room-{number}", room)


async def measure(
    url: str, count: int, rooms: int, rounds: int, payload: bytes, redis: int
) -> dict[str, object]:
    """Send to each room so often, and wait until all has come."""
    nodes = [Node(url, rooms) for _ in range(count)]
    for node in nodes:
        await node.cluster.start(60)
    before, own, begun = cpu_s(redis), time.process_time(), time.monotonic()
    for number in range(rounds):
        for room in nodes[0].rooms:
            room.send(payload)
        while any(node.stats.messages_received < rooms * (number + 1) for node in nodes):
            await asyncio.sleep(0)
    messages, took_s = rooms * rounds, time.monotonic() - begun
    result = {
        "messages": messages,
        "messages_per_s": round(messages / took_s),
        "redis_us": round(1e6 * (cpu_s(redis) - before) / messages, 1),
        "all_nodes_us": round(1e6 * (time.process_time() - own) / messages, 1),
    }
    for node in nodes:
        await node.cluster.stop()
    return result


async def measure_seams(url: str, redis: int) -> dict[str, dict[str, float]]:
    """Ask each seam so often, and say what a call costs."""
    client = RedisByLoop(url)
    sessions = RedisStore(client)
    buckets = RedisBuckets(client, sync_s=0.0)
    cache: Cache[str] = Cache(RedisCache(client, "cache"), type=str)
    locks = RedisLocks(client, "locks")
    nodes = [Presence(RedisPresence(client, "presence"), "topic") for _ in range(2)]
    for number in range(1000):
        await sessions.save(f"{number}", b"x" * 200, 3600)
        await cache.set(f"{number}", "x" * 200, tags=["tag"])

    async def limit(number: int) -> object:
        return await buckets.take(b"%d" % number, 1_000_000_000, 100)

    async def lock(number: int) -> None:
        async with Lock(locks, f"{number}").hold():
            pass

    seams: dict[str, Callable[[int], Awaitable[object]]] = {
        "session read": lambda number: sessions.load(f"{number}"),
        "session changed": lambda number: sessions.replace(f"{number}", b"y" * 200, 3600),
        "request counted": limit,
        "cached value read": lambda number: cache.get(f"{number}"),
        "lock taken and released": lock,
        "100 members read": lambda number: nodes[number % 2].members(),
    }
    found: dict[str, dict[str, float]] = {}
    async with AsyncExitStack() as present:
        for number in range(100):
            await present.enter_async_context(nodes[number % 2].enter(f"member-{number}"))
        while await nodes[0].count() < 100 or await nodes[1].count() < 100:
            await asyncio.sleep(0.01)
        for name, ask in seams.items():
            found[name] = await cost(ask, redis)
    await asyncio.gather(*(node.stop() for node in nodes), buckets.stop())
    await client.close()
    return found


async def cost(ask: Callable[[int], Awaitable[object]], redis: int) -> dict[str, float]:
    """CPU microseconds of a call, of 8 000 by 16 tasks after a first thousand."""

    async def some(first: int, count: int) -> None:
        for number in range(count):
            await ask((first + number) % 1000)

    await some(0, 1000)
    before, own = cpu_s(redis), time.process_time()
    await asyncio.gather(*(some(61 * task, 500) for task in range(16)))
    return {
        "redis_us": round(1e6 * (cpu_s(redis) - before) / 8000, 1),
        "node_us": round(1e6 * (time.process_time() - own) / 8000, 1),
    }


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rooms", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--seams", action="store_true", help="what is not messages")
    options = parser.parse_args()
    redis, payload = redis_server(), b"x" * options.bytes
    try:
        if options.seams:
            for name, costs in asyncio.run(measure_seams(redis.url, redis.pid)).items():
                print(json.dumps({"seam": name, **costs}))
        else:
            sizes = options.nodes, options.rooms, options.rounds
            print(json.dumps(asyncio.run(measure(redis.url, *sizes, payload, redis.pid))))
    finally:
        redis.remove()


if __name__ == "__main__":
    main()
