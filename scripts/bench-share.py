"""What a server adds to an application: CPU time per request in all, less what the application itself takes.

For a hello of Starlette, FastAPI, Flask and Django: the whole is the CPU time of the server's processes
(schedstat) under closed-loop load, in interleaved rounds. The application's own cost is measured in the
server's process, by another one of it under the same load whose application is timed where it is entered
and left; in a loop by itself its code and data would stay in the caches, and it would seem cheaper than it
is anywhere. The difference is the server's share.

    make .venv-frameworks/ready
    .venv-frameworks/bin/python scripts/bench-share.py [--seconds 2] [--rounds 3] [starlette …]

Medians; what is known of an idle machine is true on an idle machine only. Servers that are not installed are
passed over.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cpu_time import cpu_s

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "lab/citius_lab/bin/citius-load"
CONNECTIONS = 64
READY = re.compile(r"(?:serves on|running on|Listening at:) http://\S+?:(\d+)")

APPS = {
    "starlette": (
        "asgi",
        """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def hello(request):
    return PlainTextResponse("Hello, world")

app = Starlette(routes=[Route("/", hello)])
""",
    ),
    "fastapi": (
        "asgi",
        """
from fastapi import FastAPI

app = FastAPI()

@app.get("/")
async def hello():
    return {"hello": "world"}
""",
    ),
    "flask": (
        "wsgi",
        """
from flask import Flask

app = Flask(__name__)

@app.get("/")
def hello():
    return "Hello, world"
""",
    ),
    "django": (
        "wsgi",
        """
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="-",
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
)
urlpatterns = [path("", lambda request: HttpResponse("Hello, world"))]
app = get_wsgi_application()
""",
    ),
}

# Around the application in the server's process: how much CPU time its thread has used in the application's
# own code, which ends where that calls the server. `/-own` tells the microseconds per call, and begins anew.
# The two readings of the clock around each piece take time of their own, which is measured and left out.
OWN = """
import statistics, threading, time
from main import app as inner

now = time.thread_time_ns
spent_ns, pieces, calls = 0, 0, 0
lock = threading.Lock()

def between():
    seen = []
    for _ in range(10_000):
        begun = now()
        seen.append(now() - begun)
    return statistics.median(seen)

def add(ns, n):
    global spent_ns, pieces, calls
    with lock:
        spent_ns, pieces, calls = spent_ns + ns, pieces + n, calls + 1

def told():
    global spent_ns, pieces, calls
    with lock:
        own = (spent_ns - pieces * between()) / max(calls, 1) / 1e3
        spent_ns = pieces = calls = 0
    return str(own).encode()
"""
OWN_ASGI = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return await inner(scope, receive, send)
    if scope["path"] == "/-own":
        body = told()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        return await send({"type": "http.response.body", "body": body})
    spent, n = 0, 1

    async def timed_receive():
        nonlocal spent, n, begun
        spent += now() - begun
        n += 1
        try:
            return await receive()
        finally:
            begun = now()

    async def timed_send(message):
        nonlocal spent, n, begun
        spent += now() - begun
        n += 1
        try:
            await send(message)
        finally:
            begun = now()

    begun = now()
    await inner(scope, timed_receive, timed_send)
    add(spent + now() - begun, n)
"""
OWN_WSGI = """
class Timed:
    def __init__(self, environ, start_response):
        self.spent, self.n, self.start_response = 0, 1, start_response
        self.begun = now()
        self.answer = inner(environ, self.start)
        self.blocks = iter(self.answer)
        self.spent += now() - self.begun

    def start(self, *args):
        self.spent += now() - self.begun
        self.n += 1
        try:
            return self.start_response(*args)
        finally:
            self.begun = now()

    def __len__(self):
        return len(self.answer)

    def __iter__(self):
        return self

    def __next__(self):
        self.begun = now()
        self.n += 1
        try:
            return next(self.blocks)
        finally:
            self.spent += now() - self.begun

    def close(self):
        self.begun = now()
        if hasattr(self.answer, "close"):
            self.answer.close()
        add(self.spent + now() - self.begun, self.n + 1)

def app(environ, start_response):
    if environ["PATH_INFO"] == "/-own":
        body = told()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
    return Timed(environ, start_response)
"""
OWN_OF = {"asgi": OWN + OWN_ASGI, "wsgi": OWN + OWN_WSGI}

SERVERS = {
    "asgi": {
        "citius": ["citius", "serve", "main:app", "--port", "0", "--no-access-log"],
        "uvicorn": ["uvicorn", "main:app", "--port", "0", "--no-access-log"],
        "granian": ["granian", "--interface", "asgi", "--port", "{port}", "--loop", "uvloop", "main:app"],
    },
    "wsgi": {
        "citius": ["citius", "serve", "main:app", "--port", "0", "--no-access-log"],
        "gunicorn": ["gunicorn", "main:app", "--bind", "127.0.0.1:0", "-k", "gthread", "--threads", "2",
                     "--worker-connections", "1000", "--no-control-socket"],
        "granian": ["granian", "--interface", "wsgi", "--port", "{port}", "main:app"],
    },
}  # fmt: skip


class Server:
    """A server process on one CPU, and what its processes have used."""

    def __init__(self, words: list[str], folder: str, cpu: int) -> None:
        port = _free_port()
        command = [sys.executable, "-m", *(word.replace("{port}", str(port)) for word in words)]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )  # fmt: skip
        self._log = ""
        threading.Thread(target=self._collect, daemon=True).start()
        deadline = time.monotonic() + 20
        while (found := READY.search(self._log)) is None and "{port}" not in words:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{words[0]} does not listen:\n{self._log}")
            time.sleep(0.01)
        self.port = port if found is None else int(found[1])
        _wait_for(self.port, deadline)

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._log += line

    def stop(self) -> None:
        """TERM; KILL for who does not hear."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait_for(port: int, deadline: float) -> None:
    import socket

    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def load(server: Server, seconds: float, cpu: int) -> tuple[float, float]:
    """CPU microseconds per request, and the 99th percentile in milliseconds, of one round."""
    command = [
        str(LOAD), f"http://127.0.0.1:{server.port}/", "-c", str(CONNECTIONS), "-d", f"{seconds}s",
        "--cpus", str(cpu), "--quiet", "--json", "-",
    ]  # fmt: skip
    before = cpu_s(server.process.pid)
    done = subprocess.run(command, capture_output=True, text=True)
    spent = cpu_s(server.process.pid) - before
    if done.returncode:
        sys.exit(f"bench-share: {done.stderr}")
    record = json.loads(done.stdout)
    requests = record["completed"] + record["drained"]
    return spent / requests * 1e6, record["latency_us"]["p99"] / 1e3


@contextmanager
def served(interface: str, folder: str, cpu: int, module: str) -> Iterator[dict[str, Server]]:
    """All servers that are here."""
    running: dict[str, Server] = {}
    try:
        for name, words in SERVERS[interface].items():
            if find_spec(words[0]) is None:
                print(f"bench-share: no {words[0]} here", file=sys.stderr)
                continue
            words = [word.replace("main:", f"{module}:") for word in words]
            running[name] = Server(words, folder, cpu)
        yield running
    finally:
        for server in running.values():
            server.stop()


def own_us(server: Server) -> float:
    """What the application has taken per call since it was last asked."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/-own", timeout=10) as answer:
        return float(answer.read())


def share(name: str, seconds: float, rounds: int) -> None:
    """Measure one application, and print a line for each server."""
    interface, source = APPS[name]
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(source)
        (Path(folder) / "timed.py").write_text(OWN_OF[interface])
        with (
            served(interface, folder, cpus[0], "main") as plain,
            served(interface, folder, cpus[0], "timed") as timed,
        ):
            seen: dict[str, list[tuple[float, float, float]]] = {server: [] for server in plain}
            for turn in range(rounds + 1):
                for server, process in plain.items():
                    in_all, p99 = load(process, seconds, cpus[-1])
                    own_us(timed[server])
                    load(timed[server], seconds, cpus[-1])
                    if turn:  # the first is for warming up
                        seen[server].append((in_all, own_us(timed[server]), p99))
    shares = {
        server: statistics.median(in_all - own for in_all, own, _ in figures)
        for server, figures in seen.items()
    }
    print(name)
    for server, figures in seen.items():
        in_all, own, p99 = (statistics.median(column) for column in zip(*figures, strict=True))
        ratio = shares["citius"] / shares[server]
        print(
            f"  {server:9} {in_all:8.1f} µs in all {own:8.1f} µs the application's"
            f" {shares[server]:8.1f} µs the server's   citius/{server} {ratio:5.2f}   p99 {p99:6.2f} ms",
            flush=True,
        )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("apps", nargs="*", choices=[*APPS, []], default=[])
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="a round has for each server [2]"
    )
    parser.add_argument("--rounds", type=int, default=3, help="after one for warming up [3]")
    given = parser.parse_args()
    for name in given.apps or APPS:
        share(name, given.seconds, given.rounds)


main()
