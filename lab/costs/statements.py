"""What a prepared statement takes of PostgreSQL's memory: `statements.py`.

A server of its own is started. Printed are the bytes of the contexts of plans that one statement of each
kind adds to a session, once it has been executed often enough for the plan that is kept.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from citius.pg import Pool  # noqa: E402
from pg_rig import Server, find_binaries  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 5
# The server decides for a plan for all values after five executions.
EXECUTIONS = 7
WIDTHS = (10, 100, 500, 1600)
TAKEN = (
    "SELECT coalesce(sum(total_bytes), 0)::bigint FROM pg_backend_memory_contexts "
    "WHERE name LIKE 'CachedPlan%' OR parent LIKE 'CachedPlan%'"
)


def kinds() -> dict[str, Callable[[int], str]]:
    """Texts by what they show; the number makes another statement."""
    made: dict[str, Callable[[int], str]] = {"a number": lambda n: f"SELECT {n}"}
    for width in WIDTHS:
        made[f"all of {width} columns"] = lambda n, width=width: (
            f"SELECT * FROM w{width} WHERE c0 = {n}"
        )
    made["one of 1600 columns"] = lambda n: f"SELECT c0 FROM w1600 WHERE c0 = {n}"
    made["500 columns returned"] = lambda n: f"INSERT INTO w500 (c0) VALUES ({n}) RETURNING *"
    values = ", ".join(map(str, range(500)))
    made["a list of 500 values"] = lambda n: (
        f"SELECT 1 FROM w10 WHERE c1 = {n} AND c0 IN ({values})"
    )
    added = "+".join(f"c{n % 10}" for n in range(500))
    made["a sum of 500 terms"] = lambda n: f"SELECT {added} FROM w10 WHERE c0 = {n}"
    joins = " ".join(f"JOIN w10 t{number} USING (c0)" for number in range(19))
    made["a join of 20 tables"] = lambda n: f"SELECT 1 FROM w10 a {joins} WHERE a.c1 = {n}"
    made["200 partitions"] = lambda n: f"SELECT count(*) FROM parts WHERE a <> {n}"
    return made


async def measure(dsn: str) -> None:
    """Print what each kind takes."""
    async with Pool(dsn, size=1) as pool:
        for width in WIDTHS:
            columns = ", ".join(f"c{number} int" for number in range(width))
            await pool.execute(f"CREATE TABLE w{width} ({columns})")
        await pool.execute("CREATE TABLE parts (a int) PARTITION BY RANGE (a)")
        for number in range(200):
            await pool.execute(
                f"CREATE TABLE part{number} PARTITION OF parts FOR VALUES FROM ({number}) TO ({number + 1})"
            )
    for name, text in kinds().items():
        async with Pool(dsn, size=1) as pool:
            await pool.fetch_value(TAKEN)
            before = await pool.fetch_value(TAKEN)
            for number in range(COUNT):
                for _ in range(EXECUTIONS):
                    await pool.execute(text(number))
            taken = (await pool.fetch_value(TAKEN) - before) // COUNT
        print(f"{name:24} {len(text(0)):6} bytes of text {taken:10} bytes taken", flush=True)


def main() -> None:
    """Start the server, and measure."""
    binaries = find_binaries()
    if binaries is None:
        sys.exit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    server = Server(binaries)
    try:
        server.start()
        asyncio.run(measure(server.dsn))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
