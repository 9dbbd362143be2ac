"""Instructions per request with a database: `databases.py [--together N] [--asyncpg] [KIND...]`.

The applications are the lab's contestants `db-citius` and `db-citius-json` (`json` kinds), or with
`--asyncpg` `db-citius-asyncpg`; PostgreSQL is started with the tables of `lab/workloads/db.sql`. The way of
counting is that of `counter.py`: the whole server under callgrind, each request alone, or N sent at
once. What PostgreSQL executes is not counted.
"""

from __future__ import annotations

import argparse
import os
import random

from counter import ROOT, App, Workload, counts
from lab_database import lab_database

REQUESTS = 1000
CONTESTANTS = ROOT / "lab" / "contestants"
NONE = """

@app.get("/none")
async def none(id: int) -> World | None:
    return World(id, 1)
"""


def application(name: str) -> App:
    """Return a contestant, with a path whose handler asks no database."""
    shared = str(CONTESTANTS / "shared" / "python")
    source = (
        (CONTESTANTS / name / "app.py")
        .read_text()
        .replace("from __future__ import annotations\n", "")
    )
    if "class World" not in source:
        source = source.replace(
            "pool =",
            "class World(__import__('msgspec').Struct):\n    id: int\n    n: int\n\npool =",
            1,
        )
    return App(f"import sys\nsys.path.insert(0, {shared!r})\n{source}{NONE}")


def requests(kind: str) -> tuple[bytes, ...]:
    """Return requests of a kind, of which few are alike."""
    dice = random.Random(1)

    def target() -> str:
        if kind == "rows":
            first = dice.randrange(0, 900)
            return f"/async-db?min={first}&max={first + 9}&limit=20"
        if kind in ("queries", "updates"):
            return {"queries": "/queries?n=20", "updates": "/updates?n=5"}[kind]
        if kind == "fortunes":
            return "/fortunes"
        return f"/{'db' if kind == 'one' else kind}?id={dice.randrange(1, 10_001)}"

    head = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    return tuple(head.format(target()).encode() for _ in range(REQUESTS))


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--together", type=int, default=1, metavar="N", help="requests sent at once"
    )
    parser.add_argument("--asyncpg", action="store_true", help="the same on asyncpg")
    parser.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="none, one, rows, queries, updates, fortunes, json-one, json-rows",
    )
    given = parser.parse_args()
    kinds = given.kinds or ["none", "one", "rows", "queries", "updates", "fortunes"]
    if not given.kinds and not given.asyncpg:
        kinds += ["json-one", "json-rows"]
    with lab_database() as (url, _):
        os.environ["DATABASE_URL"] = url
        plain = "db-citius-asyncpg" if given.asyncpg else "db-citius"
        print("| kind | instructions |\n|---|---:|", flush=True)
        for name in (plain, "db-citius-json"):
            of_name = [
                kind for kind in kinds if kind.startswith("json-") == (name == "db-citius-json")
            ]
            if not of_name:
                continue
            app = application(name)
            workloads = {
                kind: Workload(
                    app, together=given.together, requests=requests(kind.removeprefix("json-"))
                )
                for kind in of_name
            }
            for kind, count in counts(ROOT, app, of_name, workloads).items():
                print(f"| {kind} | {count:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
