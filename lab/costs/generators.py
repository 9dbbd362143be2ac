"""CPU time per request of load generators: `generators.py [--rounds N] [--seconds N]`.

wrk and citius-load ask the lab's floor server, h2load and citius-load nghttpd, by turns, each alone with the
server: the server on one core and the generator on another. Printed are the least and the most that a
request took of the generator's CPU time, and the ratios of the rounds. The tables of lab/load/README.md.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from citius_lab import paths  # noqa: E402
from citius_lab.definitions import certificate, contestants  # noqa: E402
from citius_lab.measure import drive, outside  # noqa: E402
from citius_lab.processes import launch  # noqa: E402

SERVER_CPU, OWN_CPU = 0, 1


@dataclass(frozen=True)
class Row:
    """A load, in the words of both generators; the URL follows."""

    title: str
    contestant: str
    target: str
    tool: outside.Tool
    words: tuple[str, ...]
    own: tuple[str, ...]
    tls: bool = False
    behind: tuple[str, ...] = ()


PIPELINED = str(ROOT / "lab" / "citius_lab" / "pipeline.lua")
STREAMS = ("-c", "32", "-m", "50")
OWN_STREAMS = ("--http2", "-c", "32", "--streams", "50")
ROWS = (
    Row("hello, 64 connections", "rust-floor", "/", "wrk", ("-c", "64"), ("-c", "64")),
    Row(
        "hello, 100 connections, 24 pipelined", "rust-floor", "/", "wrk",
        ("-c", "100", "-s", PIPELINED), ("-c", "100", "-p", "24"), behind=("--", "24"),
    ),
    Row("134 kB, 64 connections", "rust-floor", "/transfer-data", "wrk", ("-c", "64"), ("-c", "64")),
    Row("HTTP/2, clear text, 50 streams on each of 32", "nghttpd", "/", "h2load", STREAMS, OWN_STREAMS),
    Row("HTTP/2, TLS, 50 streams on each of 32", "nghttpd", "/", "h2load", STREAMS, OWN_STREAMS, tls=True),
)  # fmt: skip


def cost_us(command: list[str], pattern: str) -> float:
    """Return the CPU time per request of a generator, whose output counts the requests."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pinned = ["taskset", "-c", str(OWN_CPU), *command]
    done = subprocess.run(pinned, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = re.search(pattern, done.stdout)
    if counted is None:
        sys.exit(f"generators: {command[0]} does not say how many requests it made")
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used_s * 1e6 / int(counted[1])


def measure(row: Row, rounds: int, seconds: int) -> list[tuple[float, float]]:
    """Return what both took in each round."""
    found = contestants.load([paths.lab_root() / "contestants"])[row.contestant]
    if row.tls:
        certificate.make(found.build_root)
    manner = "tls" if row.tls else found.manner_of("h2c") if row.tool == "h2load" else "plain"
    (own,) = drive.load_command()
    with (
        tempfile.TemporaryDirectory() as folder,
        launch.Server(
            found, workers=1, cpus=(SERVER_CPU,), log_path=Path(folder, "log"), manner=manner
        ) as server,
    ):
        url = f"{'https' if row.tls else 'http'}://127.0.0.1:{server.port}{row.target}"
        span = f"{seconds}s" if row.tool == "wrk" else str(seconds)
        flag = "-d" if row.tool == "wrk" else "-D"
        theirs = [row.tool, "-t", "1", flag, span, *row.words, url, *row.behind]
        ours = [own, "-t", "1", "-d", f"{seconds}s", *row.own, "--json", "-", url]
        pattern = outside.PATTERNS[row.tool]["requests"]
        return [
            (cost_us(theirs, pattern), cost_us(ours, r'"completed":\s*(\d+)'))
            for _ in range(rounds)
        ]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose title contains this")
    options = parser.parse_args()
    print("| µs CPU per request | the other | `citius-load` | ratios of the rounds |")
    print("|---|---|---|---|")
    for row in ROWS:
        if options.only not in row.title:
            continue
        found = measure(row, options.rounds, options.seconds)
        theirs, ours = zip(*found, strict=True)
        ratios = " ".join(f"{own / other:.2f}" for other, own in found)
        spans = [f"{min(one):.2f} to {max(one):.2f}" for one in (theirs, ours)]
        print(f"| {row.title} | `{row.tool}` {spans[0]} | {spans[1]} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
