"""Requests per second of a compiled handler with ``pool=True``: one thread of the pool against several.

The handler is the lab's loop of a million steps, compiled by numba; both servers are one process each and
may use all CPUs, and the load generator needs next to none of them. Rounds are interleaved; the ratio is
that of the medians, with the smallest and the largest of the rounds' own ratios. Every answer is checked.
``scripts/bench-pool.py [--seconds 2] [--rounds 4] [--threads 2]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cpu_time import cpu_s

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "python/citius/bin/citius-load"
APP = """
from citius import App

app = App()

@app.get("/million-loop", compiled=True, pool=True, content_type="text/plain")
def million_loop(seed: int = 1, steps: int = 1000000):
    total = seed
    for i in range(min(steps, 1000000)):
        total += i * 3
        if total % 7 == 0:
            total -= i
    return total
"""


class Round(NamedTuple):
    """What one run came to."""

    rate: float
    """Valid answers a second."""
    cores: float
    """CPUs that the server kept busy."""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    namespace: dict[str, Any] = {}
    exec(APP[APP.index("def ") :], namespace)  # the same function, not compiled
    expected = str(namespace["million_loop"]())
    counts = [1, options.threads]
    rounds: list[list[Round]] = [[], []]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "main.py").write_text(APP)
        with serving(directory, counts[0]) as first, serving(directory, counts[1]) as second:
            for _ in range(options.rounds):
                for server, of_server in zip((first, second), rounds, strict=True):
                    of_server.append(ask(*server, options.seconds, 2 * options.threads, expected))
    for count, of_server in zip(counts, rounds, strict=True):
        rate, cores = (statistics.median(column) for column in zip(*of_server, strict=True))
        print(
            f"{count} thread{'s' if count > 1 else ' '}{rate:9.0f} requests/s{cores:7.2f} CPUs busy"
        )
    ratios = [two.rate / one.rate for one, two in zip(*rounds, strict=True)]
    one, two = (statistics.median(one.rate for one in of_server) for of_server in rounds)
    print(f"ratio     {two / one:9.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


@contextmanager
def serving(directory: str, threads: int) -> Generator[tuple[int, int]]:
    """A server with so many threads in its pool: its process and its port."""
    server = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", "main.py", "--port", "0", "--no-access-log",
         "--compiled-threads", str(threads)],
        cwd=directory, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line
            if found := re.search(r"http://\S+:(\d+)", line):
                yield server.pid, int(found[1])
                return
        raise SystemExit(f"the server did not start:\n{said}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(10)


def ask(pid: int, port: int, seconds: float, connections: int, expected: str) -> Round:
    """One run of the load generator."""
    before = cpu_s(pid)
    done = subprocess.run(
        [str(LOAD), f"http://127.0.0.1:{port}/million-loop", "-c", str(connections), "-d", f"{seconds}s",
         "--expect-body", expected, "--json", "-", "--quiet"],
        capture_output=True, check=True,
    )  # fmt: skip
    used_s = cpu_s(pid) - before
    record: dict[str, Any] = json.loads(done.stdout)
    if wrong := {kind: n for kind, n in record["errors"].items() if n}:
        raise SystemExit(f"wrong answers: {wrong}")
    return Round(record["completed"] / record["elapsed_s"], used_s / record["elapsed_s"])


if __name__ == "__main__":
    main()
