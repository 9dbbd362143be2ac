"""What the executors of one machine cost: `executors.py [KIND] [--calls N]`.

For each kind, in a process of its own, with four workers: from the making to the instant at which all four
have done something; the time of a small call there and back (`json.dumps` of a small object, one at a time);
the memory that the four add (proportional set size of the process and its children). Sub-interpreters need
CPython 3.14.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path

from citius.web.execution.executors import made_by

KINDS = ("threads", "processes", "interpreters")
WORKERS = 4
NAP_S = 0.2
ROUNDS = 5


def memory_mib(pid: str = "self") -> float:
    """Return the proportional set size of a process and all below it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += sum(memory_mib(child) for child in (task / "children").read_text().split())
    return found


def measure(kind: str, calls: int) -> tuple[float, float, float]:
    """Return the milliseconds of a start, the microseconds of a call, and the MiB of the workers."""
    before = memory_mib()
    began = time.perf_counter()
    make, _ = made_by(
        "measured", None, **{name: WORKERS if name == kind else None for name in KINDS}
    )
    executor = make()
    wait([executor.submit(time.sleep, NAP_S) for _ in range(WORKERS)])
    start_ms = (time.perf_counter() - began - NAP_S) * 1e3
    wait([executor.submit(json.dumps, {"n": number}) for number in range(100)])
    added = memory_mib() - before
    rounds: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for number in range(calls):
            executor.submit(json.dumps, {"n": number}).result()
        rounds.append((time.perf_counter() - began) / calls * 1e6)
    return start_ms, statistics.median(rounds), added


def main() -> None:
    """Measure one kind, or each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    if options.kind:
        start_ms, call_us, added = measure(options.kind, options.calls)
        print(f"| {options.kind} | {start_ms:.0f} ms | {call_us:.0f} µs | {added:.1f} MiB |")
        return
    print(f"| {WORKERS} of them | start | a call | memory |\n|---|---|---|---|", flush=True)
    for kind in KINDS:
        if kind != "interpreters" or sys.version_info >= (3, 14):
            command = [sys.executable, __file__, kind, "--calls", str(options.calls)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
