"""What a request costs by the size of the pool: `pool_sizes.py [--sizes N...] [KIND...]`.

The contestant `db-citius` with pools of several sizes, on one core; PostgreSQL with the tables of
`lab/workloads/db.sql` and h2load with 64 connections on another, if there is one. Printed are CPU times per
request, the least of the rounds: all else on the machine only adds to them. Beside other clients
`citius lab run data` measures.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from lab_database import lab_database

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from citius_lab.processes import launch  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Generator

CONTESTANTS = ROOT / "lab/contestants"
REQUESTS = {"one": 15_000, "rows": 4_000, "queries": 3_000, "updates": 2_000}
CORES = sorted(os.sched_getaffinity(0))


def target(kind: str, dice: random.Random) -> str:
    """Return what a request of a kind asks for."""
    if kind == "rows":
        first = dice.randrange(0, 900)
        return f"/async-db?min={first}&max={first + 9}&limit=20"
    fixed = {"queries": "/queries?n=20", "updates": "/updates?n=5"}
    return fixed.get(kind) or f"/db?id={dice.randrange(1, 10_001)}"


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of those below it."""
    return sum(launch.cpu_clocks_s(launch.tree(pid)).values())


@contextmanager
def served(size: int, url: str, folder: Path) -> Generator[tuple[int, int]]:
    """Serve the application with a pool of so many connections: its port, and its process."""
    source = (CONTESTANTS / "db-citius/app.py").read_text()
    if source.count("size=8") != 1:
        sys.exit("pool_sizes: the contestant's pool is another one")
    application = folder / f"with_{size}.py"
    application.write_text(source.replace("size=8", f"size={size}"))
    shared = f"{CONTESTANTS / 'shared/python'}:{ROOT / 'python'}"
    command = [
        "taskset",
        "-c",
        str(CORES[0]),
        sys.executable,
        "-m",
        "citius",
        "serve",
        f"{application}:app",
    ]
    server = subprocess.Popen(
        [*command, "--port", "0", "--no-access-log"],
        env=os.environ | {"DATABASE_URL": url, "PYTHONPATH": shared},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None, "it is a pipe"
        for line in server.stderr:
            if found := re.search(r"http://[\d.]+:(\d+)", line):
                yield int(found[1]), server.pid
                return
        sys.exit("pool_sizes: the server did not start")
    finally:
        server.terminate()
        server.communicate()


def measure(port: int, pids: list[int], kind: str, folder: Path) -> list[float]:
    """Return the CPU microseconds of a request, for each process."""
    dice, urls = random.Random(1), folder / "urls"
    urls.write_text("".join(f"http://127.0.0.1:{port}{target(kind, dice)}\n" for _ in range(1000)))
    command = [
        "taskset",
        "-c",
        str(CORES[-1]),
        "h2load",
        "--h1",
        "-c",
        "64",
        "-t",
        "1",
        "-i",
        str(urls),
    ]
    number = REQUESTS[kind]
    before = [cpu_s(pid) for pid in pids]
    said = subprocess.check_output([*command, "-n", str(number)], text=True)
    after = [cpu_s(pid) for pid in pids]
    if f"status codes: {number} 2xx" not in said:
        sys.exit(f"pool_sizes: {said}")
    return [(end - begin) / number * 1e6 for begin, end in zip(before, after, strict=True)]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8], metavar="N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(REQUESTS))
    given = parser.parse_args()
    print("| kind | connections | application µs | PostgreSQL µs |\n|---|---:|---:|---:|")
    with lab_database() as (url, _), tempfile.TemporaryDirectory() as name:
        (directory,) = parse_qs(urlsplit(url).query)["host"]
        database = int(Path(directory, "data/postmaster.pid").read_text().split("\n")[0])
        subprocess.run(
            ["taskset", "-a", "-p", "-c", str(CORES[-1]), str(database)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for kind in given.kinds or REQUESTS:
            for size in given.sizes:
                with served(size, url, Path(name)) as (port, pid):
                    found = [
                        measure(port, [pid, database], kind, Path(name))
                        for _ in range(given.rounds)
                    ]
                own, theirs = (min(times) for times in zip(*found, strict=True))
                print(f"| {kind} | {size} | {own:.1f} | {theirs:.1f} |", flush=True)


if __name__ == "__main__":
    main()
