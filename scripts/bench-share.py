"""What a server adds to an application: CPU time per request in all, less what the application itself takes.

For a hello of Starlette, FastAPI, Flask and Django: the application's own cost is measured in a process
that calls it in a loop with a ready scope or environ; the whole is the CPU time of the server's processes
(schedstat) under closed-loop load, in interleaved rounds. The difference is the server's share.

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
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cpu_time import cpu_s

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "python/citius/bin/citius-load"
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

# Run by themselves, in the applications' folder: they print microseconds of CPU time per call.
OWN_ASGI = """
import asyncio, sys, time, uvloop
from main import app

SCOPE = {
    "type": "http", "asgi": {"version": "3.0", "spec_version": "2.5"}, "http_version": "1.1",
    "method": "GET", "scheme": "http", "path": "/", "raw_path": b"/", "query_string": b"",
    "root_path": "", "headers": [(b"host", b"127.0.0.1:8000")], "client": ("127.0.0.1", 4000),
    "server": ("127.0.0.1", 8000), "extensions": {},
}
MESSAGE = {"type": "http.request", "body": b"", "more_body": False}

async def receive():
    return MESSAGE

async def send(message):
    pass

async def main():
    for n in (2000, int(sys.argv[1])):
        begun = time.process_time()
        for _ in range(n):
            await app({**SCOPE, "state": {}}, receive, send)
    print((time.process_time() - begun) / n * 1e6)

uvloop.run(main())
"""
OWN_WSGI = """
import io, sys, time
from main import app

ENVIRON = {
    "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/", "QUERY_STRING": "",
    "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000",
    "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "127.0.0.1:8000", "REMOTE_ADDR": "127.0.0.1",
    "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.errors": sys.stderr, "wsgi.multithread": False,
    "wsgi.multiprocess": False, "wsgi.run_once": False, "wsgi.input": io.BytesIO(),
}

def start_response(status, headers, exc_info=None):
    pass

for n in (2000, int(sys.argv[1])):
    begun = time.process_time()
    for _ in range(n):
        answer = app(dict(ENVIRON), start_response)
        for _block in answer:
            pass
        if hasattr(answer, "close"):
            answer.close()
print((time.process_time() - begun) / n * 1e6)
"""
OWN = {"asgi": OWN_ASGI, "wsgi": OWN_WSGI}

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
def served(interface: str, folder: str, cpu: int) -> Iterator[dict[str, Server]]:
    """All servers that are here."""
    running: dict[str, Server] = {}
    try:
        for name, words in SERVERS[interface].items():
            if find_spec(words[0]) is None:
                print(f"bench-share: no {words[0]} here", file=sys.stderr)
                continue
            running[name] = Server(words, folder, cpu)
        yield running
    finally:
        for server in running.values():
            server.stop()


def share(name: str, seconds: float, rounds: int) -> None:
    """Measure one application, and print a line for each server."""
    interface, source = APPS[name]
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(source)
        own = statistics.median(
            float(
                subprocess.run(
                    [sys.executable, "-c", OWN[interface], str(round(10_000 * seconds))],
                    cwd=folder, check=True, capture_output=True, text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}),
                ).stdout
            )
            for _ in range(rounds)
        )  # fmt: skip
        print(f"{name}: {own:.1f} µs of its own")
        with served(interface, folder, cpus[0]) as running:
            seen: dict[str, list[tuple[float, float]]] = {server: [] for server in running}
            for turn in range(rounds + 1):
                for server, process in running.items():
                    figure = load(process, seconds, cpus[-1])
                    if turn:  # the first is for warming up
                        seen[server].append(figure)
    shares = {
        server: statistics.median(cpu for cpu, _ in figures) - own
        for server, figures in seen.items()
    }
    for server, figures in seen.items():
        p99 = statistics.median(p99 for _, p99 in figures)
        ratio = shares["citius"] / shares[server]
        print(
            f"  {server:9} {shares[server] + own:8.1f} µs in all {shares[server]:8.1f} µs the server's"
            f"   citius/{server} {ratio:5.2f}   p99 {p99:6.2f} ms",
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
