"""What a core, a machine, ten machines and a Redis carry, from measured costs: tables of the scaling guide.

    lab/costs/capacity.py            prints the tables
    lab/costs/capacity.py --write    writes them into docs/guides/scaling.md

The first table divides a core's time by a cost. The second is a simulation: rooms are put on nodes and
on Redis servers by chance, as hashes of their names do, each message is charged where it passes, and
the rate is found at which the first processor is busy all the time. A worker on each core is a node. The
third divides Redis's core.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/scaling.md"
BEGIN, END = "<!-- lab/costs/capacity.py begins -->\n", "<!-- lab/costs/capacity.py ends -->\n"

# Measured; each with the command that measures it.
HELLO_US = 5.6  # make lab RUN=quick
STREAM_KIB = 4.3  # lab/costs/streams.py
WEBSOCKET_KIB = 3.3  # lab/costs/rooms.py --idle 9000 --nodes 1
DELIVERY_US = 3.7  # lab/costs/rooms.py --rate 200, 200 000 deliveries/s
MESSAGE_NODE_US = 46.0  # lab/costs/engine.py, half of both nodes: one of them sends it, too
MESSAGE_REDIS_US = 9.0  # lab/costs/engine.py, of a room on two nodes
SEAMS_REDIS_US = {  # lab/costs/engine.py --seams
    "sessions read": 5.5,
    "sessions changed": 5.8,
    "requests counted, each by a call": 8.9,
    "cached values read, each with a tag": 13.2,
    "locks taken and released": 17.7,
    "lists of 100 members on two nodes": 22.3,
}

CORES, MACHINES, ROOMS, NODES_OF_A_ROOM = 8, 10, 1000, 2


@dataclass(frozen=True)
class Limit:
    """Messages per second that a cluster carries, and what is busy then."""

    per_s: float
    busiest: str


def simulate(nodes: int, redis: int, members: int, seed: int = 1) -> Limit:
    """Put rooms on nodes and Redis servers, and find what is busy first.

    Args:
        nodes: Workers of all machines.
        redis: Redis servers, each with a core of its own.
        members: Of each room, in equal parts on the nodes that it is on.
        seed: Of the places of rooms.
    """
    chance = random.Random(seed)
    spread = min(NODES_OF_A_ROOM, nodes)
    load = {
        **{f"node {at}": 0.0 for at in range(nodes)},
        **{f"Redis {at}": 0.0 for at in range(redis)},
    }
    for _ in range(ROOMS):
        load[f"Redis {chance.randrange(redis)}"] += MESSAGE_REDIS_US
        for at in chance.sample(range(nodes), spread):
            load[f"node {at}"] += MESSAGE_NODE_US + DELIVERY_US * members / spread
    name, busy_us = max(load.items(), key=lambda one: one[1])
    return Limit(1e6 * ROOMS / busy_us, name.split()[0])


def rounded(number: float) -> str:
    """Return a number with two digits that count, as people write it."""
    digits = len(str(int(number))) - 2
    value = round(number, -digits) if digits > 0 else round(number)
    if value >= 1e6:
        return f"{value / 1e6:g} million"
    return f"{int(value):,}".replace(",", " ")


def tables() -> str:
    """Return both tables in Markdown."""

    def row(name: str, cost_us: float) -> str:
        cells = [f"{rounded(n / cost_us * 1e6)}/s" for n in (1, CORES, CORES * MACHINES)]
        return f"| {name} | {' | '.join(cells)} |"

    def held(name: str, kib: float) -> str:
        one, ten = rounded(2**20 / kib), rounded(MACHINES * 2**20 / kib)
        return f"| {name}, {kib} KiB each, in 1 GiB of each machine | {one} | {one} | {ten} |"

    lines = [
        f"| | one core | one machine of {CORES} cores | ten such machines |",
        "|---|---|---|---|",
        row(f"requests, {HELLO_US} µs for a hello", HELLO_US),
        held("event streams", STREAM_KIB),
        held("idle WebSockets", WEBSOCKET_KIB),
        row(f"deliveries, {DELIVERY_US} µs each", DELIVERY_US),
        row(f"messages sent or received, {MESSAGE_NODE_US:g} µs in each node", MESSAGE_NODE_US),
        "",
        f"Messages per second to {ROOMS} rooms, each on {NODES_OF_A_ROOM} nodes, and the bottleneck; each "
        "Redis has a core of its own beside them:",
        "",
        "| members of a room | one machine, one Redis | ten machines, one Redis | ten machines, four Redis |",
        "|---|---|---|---|",
    ]
    for members in (2, 10, 100, 1000):
        found = [simulate(CORES * n, r, members) for n, r in ((1, 1), (MACHINES, 1), (MACHINES, 4))]
        cells = [f"{rounded(one.per_s)}, {one.busiest}" for one in found]
        lines.append(f"| {members} | {' | '.join(cells)} |")
    lines += ["", "| what else one Redis carries, alone | µs of it | per second |", "|---|---|---|"]
    for name, cost_us in SEAMS_REDIS_US.items():
        lines.append(f"| {name} | {cost_us:g} | {rounded(1e6 / cost_us)} |")
    return "\n".join(lines) + "\n"


def guide_with(text: str) -> str:
    """Return the guide with the tables in their place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write them into the guide")
    if parser.parse_args().write:
        GUIDE.write_text(guide_with(GUIDE.read_text()))
    else:
        print(tables(), end="")


if __name__ == "__main__":
    main()
