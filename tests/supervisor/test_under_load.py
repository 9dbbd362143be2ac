"""Steady load by the real generator while signals, kills and limits do their work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig import Server, children, wait_for

LOAD = Path(__file__).parents[2] / "python/citius/bin/citius-load"
APP = """
leak = []

@app.get("/")
def pid():
    return str(os.getpid())

@app.get("/leak")
def leaky():
    leak.append(bytearray(os.urandom(1)) * 50_000)
    return "leaked"
"""

ASGI = """
import asyncio, os
leak = []

async def app(scope, receive, send):
    if scope["path"] == "/leak":
        leak.append(bytearray(os.urandom(1)) * 50_000)
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
WSGI = """
import os, time
leak = []

def app(environ, start_response):
    if environ["PATH_INFO"] == "/leak":
        leak.append(bytearray(os.urandom(1)) * 50_000)
    time.sleep(0.0005)
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""
OTHERS = {
    "asgi": (ASGI, ("--interface", "asgi", "--lifespan", "off")),
    "wsgi": (WSGI, ("--interface", "wsgi")),
    "threads": (WSGI, ("--interface", "wsgi", "--threads", "4")),
}

pytestmark = pytest.mark.skipif(
    not os.access(LOAD, os.X_OK), reason="the load generator is not built; `make build` does it"
)


@pytest.fixture(
    params=[
        pytest.param(2, id="short"),
        pytest.param(15, id="long", marks=[pytest.mark.slow, pytest.mark.timeout(90)]),
    ]
)
def seconds(request) -> int:
    return request.param


def under_load(
    server: Server, seconds: float, act: Callable[[], object], *options: str, path: str = "/"
) -> dict[str, Any]:
    """The generator's record of so many seconds, ``act`` done in their first third."""
    process = subprocess.Popen(
        [str(LOAD), f"http://127.0.0.1:{server.port}{path}", "-d", f"{seconds}s", "-c", "16",
         "--json", "-", "--quiet", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        time.sleep(min(1.0, seconds / 3))
        act()
        out, err = process.communicate(timeout=seconds + 30)
    finally:
        process.kill()
    assert out, err
    return json.loads(out)


def under_load_until(server: Server, words: str, path: str = "/") -> None:
    """Load until a notice has these words, however slow the machine; no request may fail."""
    for _ in range(10):
        record = under_load(server, 2, lambda: None, "-r", "1000", path=path)
        assert failed(record) == {}
        if words in server.err:
            return
    raise AssertionError(f"{words!r} not in\n{server.err}")


def failed(record: dict[str, Any], *but: str) -> dict[str, int]:
    return {kind: n for kind, n in record["errors"].items() if n and kind not in but}


def test_term_loses_no_accepted_request(serve, seconds: int) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    record = under_load(server, seconds, lambda: server.signal(signal.SIGTERM))
    # Whoever comes after the end is refused; nobody who was let in goes without an answer.
    assert failed(record, "connect") == {}
    assert record["completed"] > 100
    assert server.wait() == 0


def test_term_empties_the_queue_when_each_request_has_a_connection(serve) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    record = under_load(server, 2, lambda: server.signal(signal.SIGTERM), "--no-keepalive")
    assert failed(record, "connect", "timeout") == {}
    assert server.wait() == 0


def test_one_process_loses_none_either(serve) -> None:
    server: Server = serve(APP, "--no-access-log")
    record = under_load(server, 2, lambda: server.signal(signal.SIGTERM), "--no-keepalive")
    assert failed(record, "connect", "timeout") == {}
    assert server.wait() == 0


def test_hup_loses_none(serve, seconds: int) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    before = set(children(server))
    record = under_load(server, seconds, lambda: server.signal(signal.SIGHUP))
    assert failed(record) == {}
    server.wait_for_log("all workers are new")
    assert not before & set(children(server))


def test_a_killed_worker_loses_only_what_is_in_it(serve, seconds: int) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    victim = children(server)[0]
    record = under_load(server, seconds, lambda: os.kill(victim, signal.SIGKILL))
    assert set(failed(record)) <= {"reset", "short"}
    # One request at most on each of its connections, and not all connections were its own.
    assert sum(failed(record).values()) <= 16
    wait_for(lambda: len(children(server)) == 2, "a new worker")


def test_a_leaking_worker_is_replaced_without_a_failed_request(serve) -> None:
    server: Server = serve(
        APP, "--workers", "2", "--worker-rss-max", "120M", "--no-access-log"
    )  # fmt: skip
    under_load_until(server, "MiB, limit 120 MiB; replacing it", path="/leak")


def test_a_spent_worker_is_replaced_without_a_failed_request(serve) -> None:
    server: Server = serve(
        APP, "--max-requests", "500", "--max-requests-jitter", "100", "--no-access-log"
    )  # fmt: skip
    under_load_until(server, "requests; replacing it")


def test_ttou_loses_none(serve) -> None:
    server: Server = serve(APP, "--workers", "3", "--no-access-log")
    record = under_load(
        server, 4, lambda: server.signal(signal.SIGTTOU), "--no-keepalive", "--timeout", "3s"
    )
    assert failed(record) == {}
    wait_for(lambda: len(children(server)) == 2, "the third to leave")


def test_usr2_loses_none(serve, seconds: int, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server: Server = serve(
        APP, "--workers", "2", "--no-access-log", "--pidfile", str(pidfile)
    )  # fmt: skip
    assert pidfile.read_text() == f"{server.process.pid}\n"
    record = under_load(server, seconds, lambda: server.signal(signal.SIGUSR2))
    try:
        assert failed(record) == {}
        assert server.process.wait(10) == 0
        assert int(pidfile.read_text()) != server.process.pid
        assert server.get("/").status == 200
    finally:
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
    assert server.wait() == 0
    wait_for(lambda: not pidfile.exists(), "the new server to end")


@pytest.fixture(params=OTHERS)
def serve_other(serve, request) -> Callable[..., Server]:
    """Serve the same for the other interfaces, with two workers."""
    source, given = OTHERS[request.param]
    return lambda *options: serve(source, *given, "--workers", "2", "--no-access-log", *options)


def test_other_interfaces_lose_none_either(serve_other) -> None:
    server: Server = serve_other()

    def disturb() -> None:
        server.signal(signal.SIGHUP)
        server.wait_for_log("all workers are new")
        server.signal(signal.SIGTERM)

    record = under_load(server, 4, disturb)
    assert failed(record, "connect") == {}
    assert record["completed"] > 100
    assert server.wait() == 0


def test_other_interfaces_lose_what_is_in_a_killed_worker(serve_other) -> None:
    server: Server = serve_other()
    victim = children(server)[0]
    record = under_load(server, 2, lambda: os.kill(victim, signal.SIGKILL))
    assert set(failed(record)) <= {"reset", "short"}
    assert sum(failed(record).values()) <= 16
    wait_for(lambda: len(children(server)) == 2, "a new worker")


def test_leaking_workers_of_other_interfaces_are_replaced(serve_other) -> None:
    server: Server = serve_other("--worker-rss-max", "120M")
    under_load_until(server, "MiB, limit 120 MiB; replacing it", path="/leak")
