"""The example of one piece beside the same service in Go: ``one_piece.py [--rounds N]``.

Both are built, and asked by turns, each on one core: ``GET /classify/helloworld``, which fans out to four
look-ups in Redis, and ``POST /lines`` of 100 texts, which go through the channels to the events. Redis and
the load generator have another core. Prints the CPU time of the service for each request, user's and the
kernel's, median and quartiles of the rounds. Needs a C++ compiler, Cython, Go, redis-server, two cores, and
an extension that was built without changes to its profile.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import beside_go

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lab")]

import redis_rig  # noqa: E402

from citius_lab.processes import launch  # noqa: E402

LINES = "\n".join(f"text number {n}" for n in range(100))
CASES = {
    "classify": ["-c", "64", "/classify/helloworld"],
    "lines": ["-c", "8", "-m", "POST", "-b", LINES, "--expect-status", "202", "/lines"],
}
SERVICE_CORE, OWN_CORE = 0, 1


def start(stack: ExitStack, command: list[str], directory: Path, **env: str) -> tuple[int, int]:
    """Start a service on its core; process and port."""
    log = directory / f"{Path(command[0]).name}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            ["taskset", "-c", str(SERVICE_CORE), *command],
            cwd=directory, stderr=stderr, env={**os.environ, **env},
        )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.kill)
    deadline = time.monotonic() + 20
    while (found := re.search(r"serves on http://127\.0\.0\.1:(\d+)", log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"one_piece: {log.read_text()}")
        time.sleep(0.01)
    return process.pid, int(found[1])


def measure(directory: Path, pid: int, port: int, case: str, seconds: float) -> float:
    """Microseconds of CPU for a request."""
    *options, path = CASES[case]
    report = directory / "load.json"
    (before,) = launch.cpu_clocks_s([pid]).values()
    load = [sys.executable, "-m", "citius", "load", "-d", f"{seconds}s", "--json", str(report)]
    subprocess.run(
        ["taskset", "-c", str(OWN_CORE), *load, *options, f"http://127.0.0.1:{port}{path}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (after,) = launch.cpu_clocks_s([pid]).values()
    return (after - before) * 1e6 / json.loads(report.read_text())["completed"]


def main() -> None:
    """Measure both by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "one-piece"
        shutil.copytree(ROOT / "examples/one-piece", directory)
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=directory, check=True
        )
        subprocess.run(["go", "build", "-o", "../in-go", "."], cwd=directory / "go", check=True)
        redis = redis_rig.Server(listens=True)
        stack.callback(redis.remove)
        redis.start()
        os.sched_setaffinity(redis.pid, {OWN_CORE})
        serve = [
            sys.executable,
            "-m",
            "citius",
            "serve",
            "app.py",
            "--port",
            "0",
            "--no-access-log",
        ]
        in_go = [str(directory / "in-go"), "-address", "127.0.0.1:0", "-rpc", "127.0.0.1:0"]
        services = {
            "Citius": start(stack, serve, directory, REDIS=redis.url),
            "Go": start(
                stack, [*in_go, "-redis", f"127.0.0.1:{redis.port}"], directory, GOMAXPROCS="1"
            ),
        }
        for case in CASES:
            figures: dict[str, list[float]] = {who: [] for who in services}
            for number in range(arguments.rounds + 1):
                for who, (pid, port) in services.items():
                    figure = measure(directory, pid, port, case, arguments.seconds)
                    if number:  # the first warms up
                        figures[who].append(figure)
            beside_go.write(case, figures, "µs", digits=1)


if __name__ == "__main__":
    main()
