#!/usr/bin/env python3
"""What a message of a room costs beside its deliveries: in Redis, and in a node that sends or receives it.

    scripts/measure_engine.py [--rooms 1000] [--rounds 20]

One process is two nodes without members: one sends a message to each room, the other receives them. It says
CPU microseconds per message: of Redis (script, stream, publication to both nodes), and of both nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from pathlib import Path

from citius import Room
from citius.cluster.records import key_of
from citius.cluster.redisclient import RedisPy
from citius.cluster.redislog import RedisLog
from citius.cluster.rooms import ClusterRooms
from citius.cluster.stats import Stats
from measure_rooms import cpu_s


class Node:
    """Rooms without members."""

    def __init__(self, url: str, count: int) -> None:
        self.stats = Stats()
        log = RedisLog(RedisPy(url), "citius:measured")
        self.cluster = ClusterRooms(log, key_of("secret", "measured"), self.stats)
        self.rooms = [Room() for _ in range(count)]
        for number, room in enumerate(self.rooms):
            self.cluster.share(f"room-{number}", room)


async def measure(
    url: str, rooms: int, rounds: int, payload: bytes, redis: int
) -> dict[str, object]:
    """Send to each room so often, and wait until all has come."""
    one, two = Node(url, rooms), Node(url, rooms)
    await one.cluster.start(60)
    await two.cluster.start(60)
    before, own, begun = cpu_s(redis), time.process_time(), time.monotonic()
    for number in range(rounds):
        for room in one.rooms:
            room.send(payload)
        while two.stats.messages_received < rooms * (number + 1):
            await asyncio.sleep(0)
    messages, took_s = rooms * rounds, time.monotonic() - begun
    result = {
        "messages": messages,
        "messages_per_s": round(messages / took_s),
        "redis_us": round(1e6 * (cpu_s(redis) - before) / messages, 1),
        "both_nodes_us": round(1e6 * (time.process_time() - own) / messages, 1),
    }
    await one.cluster.stop()
    await two.cluster.stop()
    return result


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rooms", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/redis.sock"
        redis = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", path, "--save", ""],
            stdout=subprocess.DEVNULL,
            cwd=directory,
        )
        while not Path(path).exists():
            time.sleep(0.02)
        try:
            payload = b"x" * options.bytes
            steps = measure(f"unix://{path}", options.rooms, options.rounds, payload, redis.pid)
            print(json.dumps(asyncio.run(steps)))
        finally:
            redis.kill()
            redis.wait()


if __name__ == "__main__":
    main()
