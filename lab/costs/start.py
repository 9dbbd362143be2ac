"""What a start and a worker take: `start.py [ROUNDS]`, on Linux.

Serves a hello in this checkout with a loop from the start or without, with its command line read by click or
without, and with two workers; the variants take turns. For each: CPU time of the processes, least and median,
and the proportional set size of the last process after 100 requests, in MB.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

APPLICATION = """
from citius import App

app = App()

@app.get("/")
def hello() -> str:
    return "Hello"
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
# An alias, which is left to click.
CLICK = ("--timeout-keep-alive", "5")
LOOP = ("--loop", "uvloop")
TWO = ("--workers", "2")
VARIANTS = [(*LOOP, *CLICK), LOOP, CLICK, (), (*TWO, *LOOP, *CLICK), TWO]
WAIT_S = 30.0


def cpu_ms() -> float:
    """Return what the children that have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def connect(port: int, process: subprocess.Popen[bytes]) -> socket.socket:
    """Return a connection, as soon as there is one."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.001)


def children(pid: int) -> list[int]:
    """Return the processes that one has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(one) for one in text.split()]


def memory_mb(pid: int) -> float:
    """Return the proportional set size of a process."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    assert found is not None, "Linux has it"
    return int(found[1]) * 1024 / 1e6


def start(arguments: tuple[str, ...], directory: str) -> tuple[float, float]:
    """Return CPU time and memory of one start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = cpu_ms()
    process = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", "main:app", "--port", str(port), *arguments],
        cwd=directory, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with connect(port, process) as client:
        for _ in range(100):
            client.sendall(REQUEST)
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        if arguments[:2] == TWO:
            time.sleep(0.5)  # the second worker is there too
        memory = memory_mb([process.pid, *children(process.pid)][-1])
    process.terminate()
    process.wait()
    return cpu_ms() - before, memory


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 14
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "main.py").write_text(APPLICATION)
        for variant in VARIANTS:
            start(variant, directory)  # fills caches
        found = [[start(variant, directory) for variant in VARIANTS] for _ in range(rounds)]
    for index, variant in enumerate(VARIANTS):
        times, memory = zip(*(one[index] for one in found), strict=True)
        print(
            f"{' '.join(variant) or 'the defaults':52} {min(times):4.0f}, {statistics.median(times):4.0f} ms "
            f"{statistics.median(memory):6.1f} MB"
        )


if __name__ == "__main__":
    main()
