"""CPU time per request of the hot paths, server on one core and load on another where there are two.

Prints one line per path: requests per second, and microseconds of CPU per request of the server
(user and system, from /proc). For regressions of one checkout against another on one machine; claims
about others are the lab's business.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CITIUS = Path(sys.executable).parent / "citius"
APP = """
import asyncio
from citius import App

app = App()

@app.get("/def")
def plain():
    return "Welcome!\\n"

@app.get("/async")
async def coroutine():
    return "Welcome!\\n"

@app.get("/suspends")
async def suspends():
    await asyncio.sleep(0)
    return "Welcome!\\n"

@app.get("/items/{id:int}")
def item(id):
    return {"id": id}

@app.get("/query")
def query(page: int = 1, q: str = ""):
    return "Welcome!\\n"

@app.get("/request")
def request(request):
    return request.header("host")
"""
CASES = [
    ("/def", 1), ("/async", 1), ("/suspends", 1), ("/items/7", 1), ("/query?page=2&q=x", 1),
    ("/request", 1), ("/def", 24), ("/async", 24),
]  # fmt: skip


def cpu_s(pid: int) -> float:
    """Seconds of CPU time of a process and its descendants, all threads."""
    total_ns, pids = 0, [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").iterdir():
            total_ns += int((task / "schedstat").read_text().split()[0])
            pids += map(int, (task / "children").read_text().split())
    return total_ns / 1e9


def measure(pid: int, url: str, pipeline: int, seconds: float, cpu: int) -> str:
    """Load one path, and say what it cost."""
    command = [
        CITIUS, "load", "-c", "64", "-p", str(pipeline), "-d", f"{seconds}s", "--cpus", str(cpu),
        "--quiet", "--json", "-", url,
    ]  # fmt: skip
    before, begun = cpu_s(pid), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    spent, took = cpu_s(pid) - before, time.monotonic() - begun
    if done.returncode:
        sys.exit(f"hot_paths: {done.stderr}")
    record = json.loads(done.stdout)
    requests = record["completed"] + record["drained"]
    return f"{requests / took:>12,.0f} requests/s {spent / requests * 1e6:>8.2f} µs CPU"


def main() -> None:
    """Serve, measure, report."""
    seconds = float(os.environ.get("SECONDS_EACH", "2"))
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "main.py").write_text(APP)
        server = subprocess.Popen(
            [CITIUS, "serve", "main.py", "--port", "0", "--no-access-log"],
            cwd=directory, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}),
        )  # fmt: skip
        assert server.stderr is not None, "it is a pipe"
        try:
            found = re.search(r"http://\S+", server.stderr.readline())
            if found is None:
                sys.exit("hot_paths: the server did not start")
            for path, pipeline in CASES:
                figure = measure(server.pid, found[0] + path, pipeline, seconds, cpus[-1])
                print(f"{path:20} pipeline {pipeline:>2} {figure}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
