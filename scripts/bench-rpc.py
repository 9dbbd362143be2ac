"""CPU time of the server per call: procedures on one connection, many in flight, against HTTP/1.1 keep-alive.

Both ports belong to one process and both ways end in the same function. Rounds are interleaved; a ratio is
that of the medians, with the smallest and the largest of the rounds' own ratios. Every answer's length and a
sample of its bytes are checked. ``scripts/bench-rpc.py [--seconds 2] [--rounds 4] [--in-flight 256]``.
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
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from cpu_time import cpu_s

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "python/citius/bin/citius-load"
RECORDS = 1000
APP = f"""
import msgspec
from citius import App

class Record(msgspec.Struct):
    id: int
    name: str
    score: float

RECORDS = msgspec.msgpack.encode([Record(n, "name %d" % n, n / 2) for n in range({RECORDS})])
decode = msgspec.msgpack.Decoder(list[Record]).decode
app = App()

@app.rpc
@app.get("/")
def hello() -> str:
    return "Hello World!"

@app.rpc("parse-msgpack")
@app.get("/parse-msgpack")
def parse_msgpack() -> str:
    return str(len(decode(RECORDS)))
"""


class Way(NamedTuple):
    """One way to ask for a work."""

    name: str
    options: list[str]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=256)
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        server, http, rpc = serve(Path(directory), cpus[0])
        try:
            for work, path, text in [
                ("hello", "", "Hello World!"),
                ("parse-msgpack",) * 2 + (str(RECORDS),),
            ]:
                result = Path(directory) / work
                result.write_bytes(msgspec.msgpack.encode(text))
                ways = [
                    Way("HTTP/1.1, 64 connections",
                        [f"http://127.0.0.1:{http}/{path}", "-c", "64", "--expect-body", text]),
                    Way(f"RPC, {options.in_flight} in flight on one connection",
                        [f"rpc://127.0.0.1:{rpc}/{work}", "-c", "1", "-p", str(options.in_flight),
                         "--expect-body-file", str(result)]),
                ]  # fmt: skip
                compare(work, ways, server.pid, options.seconds, options.rounds, cpus[-1])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(10)


def serve(directory: Path, cpu: int) -> tuple[subprocess.Popen[str], int, int]:
    """A server on one CPU, and its two ports."""
    (directory / "main.py").write_text(APP)
    server = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", "main.py", "--port", "0", "--rpc", "127.0.0.1:0",
         "--no-access-log"],
        cwd=directory, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.sched_setaffinity(server.pid, {cpu})
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://\S+:(\d+) and rpc://\S+:(\d+)", line):
            return server, int(found[1]), int(found[2])
    raise SystemExit("the server did not start")


def compare(work: str, ways: list[Way], pid: int, seconds: float, rounds: int, cpu: int) -> None:
    """Print one work's table."""
    costs: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, of_way in zip(ways, costs, strict=True):
            of_way.append(cost_us(way, pid, seconds, cpu))
    print(work)
    for way, of_way in zip(ways, costs, strict=True):
        print(f"  {way.name:44}{statistics.median(of_way):9.2f} µs of CPU per call")
    ratios = [first / second for first, second in zip(*costs, strict=True)]
    print(f"  {'calls per CPU second, RPC to HTTP':44}"
          f"{statistics.median(costs[0]) / statistics.median(costs[1]):9.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f})")  # fmt: skip


def cost_us(way: Way, pid: int, seconds: float, cpu: int) -> float:
    """CPU time of the server per valid answer."""
    before = cpu_s(pid)
    done = subprocess.run(
        [str(LOAD), *way.options, "-d", f"{seconds}s", "--cpus", str(cpu), "--json", "-", "--quiet"],
        capture_output=True, check=True,
    )  # fmt: skip
    used_s = cpu_s(pid) - before
    record: dict[str, Any] = json.loads(done.stdout)
    if wrong := {kind: n for kind, n in record["errors"].items() if n}:
        raise SystemExit(f"{way.name}: {wrong}")
    return used_s / record["completed"] * 1e6


if __name__ == "__main__":
    main()
