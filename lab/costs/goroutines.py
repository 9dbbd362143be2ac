"""Goroutines of compiled handlers beside Go's with GOMAXPROCS=1: ``python lab/costs/goroutines.py``.

Needs a C compiler, Go, and an extension that was built without changes to its profile. Prints the median of
each measure with the quartiles; of parked goroutines the bytes of resident memory for each.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import beside_go

HERE = Path(__file__).parent / "beside_go_sources"
COUNTS = {"ping_pong": 300_000, "select_four": 400_000, "start_end": 300_000, "parked": 100_000}


def resident_bytes() -> int:
    """Resident memory of this process."""
    found = re.search(r"^Rss:\s+(\d+) kB", Path("/proc/self/smaps_rollup").read_text(), re.M)
    assert found is not None
    return int(found[1]) * 1024


def measure(library: str, name: str, count: int) -> float:
    """One measure of Citius, in this process."""
    import citius
    from citius.testing import Client

    app = citius.App()
    handlers = citius.load_handlers(library)
    for one in COUNTS:
        app.get(f"/{one}", compiled=handlers[one], serial=True)
    client = Client(app)
    assert client.get("/start_end?count=1000").status_code == 200
    before = resident_bytes()
    response = client.get(f"/{name}?count={count}")
    assert response.status_code == 200, response.text
    if name == "parked":
        assert int(response.text) == count, f"{response.text} goroutines of {count}"
        return (resident_bytes() - before) / count
    return float(response.text)


def main() -> None:
    """Measure both by turns, or one of Citius where the arguments name it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", nargs=3, metavar=("LIBRARY", "NAME", "COUNT"))
    arguments = parser.parse_args()
    if arguments.one:
        library, name, count = arguments.one
        sys.stdout.write(f"{measure(library, name, int(count))}\n")
        return
    import citius

    with tempfile.TemporaryDirectory() as directory:
        library, program = f"{directory}/bench.so", f"{directory}/bench"
        include = f"-I{citius.get_include()}"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", include, HERE / "bench.c", "-o", library], check=True
        )
        subprocess.run(["go", "build", "-o", program, HERE / "bench.go"], check=True)
        environment = {**os.environ, "GOMAXPROCS": "1"}
        # One core for both: which of them the scheduler moves less must not decide.
        core = min(os.sched_getaffinity(0))
        for name, count in COUNTS.items():
            figures: dict[str, list[float]] = {"Citius": [], "Go": []}
            for _ in range(arguments.rounds):
                commands: dict[str, list[str]] = {
                    "Citius": [sys.executable, __file__, "--one", library, name, str(count)],
                    "Go": [program, name, str(count)],
                }
                for who, command in commands.items():
                    done = subprocess.run(
                        ["taskset", "-c", str(core), *command],
                        check=True,
                        capture_output=True,
                        text=True,
                        env=environment,
                    )
                    figures[who].append(float(done.stdout))
            unit = "bytes" if name == "parked" else "ns"
            beside_go.write(name, figures, unit)


if __name__ == "__main__":
    main()
