"""What a pool adds to a statement of asyncpg: `asyncpg_pool.py [--rounds N]`.

`fetchrow` of one row, first on a connection that is held, then by asyncpg's own pool and by the pool of
`citius.pg.asyncpg`, one at a time on one process. Printed is the CPU time of this process alone in the
round that took the least, since all else on the machine only adds to it, and the median; the difference to
the held connection is what a pool costs. asyncpg's pool resets a connection at each release, which is a
statement more: its CPU time here is in the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any

import asyncpg
from citius.pg.asyncpg import create_pool
from citius.testing.postgres import database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STATEMENTS = 500
SQL = "SELECT $1::int AS id, 17 AS number"


async def cpu_us(fetch: Callable[[str, int], Awaitable[Any]]) -> float:
    """Return the CPU time of a statement, in microseconds."""
    for number in range(100):
        await fetch(SQL, number)
    began = time.process_time()
    for number in range(STATEMENTS):
        await fetch(SQL, number)
    return (time.process_time() - began) / STATEMENTS * 1e6


async def measure(url: str, rounds: int) -> dict[str, list[float]]:
    """Return the CPU times of each way, one of each round."""
    sizes = {"min_size": 8, "max_size": 8}
    found: dict[str, list[float]] = {"a connection": [], "asyncpg's pool": [], "this pool": []}
    held = await asyncpg.connect(url)
    async with asyncpg.create_pool(url, **sizes) as theirs, create_pool(url, **sizes) as ours:
        ways = zip(found, (held.fetchrow, theirs.fetchrow, ours.fetchrow), strict=True)
        ways = list(ways)
        for _ in range(rounds):
            for name, fetch in ways:
                found[name].append(await cpu_us(fetch))
    await held.close()
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    with database() as url:
        found = asyncio.run(measure(url, rounds))
    held = min(found["a connection"])
    print("| fetchrow by | least CPU µs | median | more than a connection |\n|---|---:|---:|---:|")
    for name, times in found.items():
        least = min(times)
        print(f"| {name} | {least:.1f} | {statistics.median(times):.1f} | {least - held:.1f} |")


if __name__ == "__main__":
    main()
