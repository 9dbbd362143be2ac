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

LOAD = Path(__file__).parents[2] / "lab/citius_lab/bin/citius-load"
APP = """
leak = []

@app.get("/")
def pid():
    return str(os.getpid())

@app.get("/leak")
def leaky():
    leak.append(bytearray(os.urandom(1)) * 200_000)
    return "leaked"
"""

ASGI = """
import asyncio, os
leak = []

async def app(scope, receive, send):
    if scope["path"] == "/leak":
        leak.append(bytearray(os.urandom(1)) * 200_000)
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
WSGI = """
import os, time
leak = []

def app(environ, start_response):
    if environ["PATH_INFO"] == "/leak":
        leak.append(bytearray(os.urandom(1)) * 200_000)
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


BEFORE_S = 0.5
"""Load that is steady before anything happens to the server."""
AFTER_S = 0.5
"""And after it has happened."""


@pytest.fixture(
    params=[
        pytest.param(AFTER_S, id="short"),
        pytest.param(15, id="long", marks=[pytest.mark.slow, pytest.mark.timeout(90)]),
    ]
)
def after_s(request) -> float:
    return request.param


def under_load(
    server: Server, after_s: float, act: Callable[[], object], *options: str, path: str = "/"
) -> dict[str, Any]:
    """The generator's record of load that goes on until ``act`` returns, and for so long after that.

    ``act`` waits for what it is after: how long that takes is the machine's business.
    """
    process = subprocess.Popen(
        [str(LOAD), f"http://127.0.0.1:{server.port}{path}", "-d", "100s", "-c", "16",
         "--json", "-", "--quiet", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        # Load before and after is what is measured.
        time.sleep(BEFORE_S)
        act()
        time.sleep(after_s)  # likewise
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out, err
    return json.loads(out)


def stop(server: Server) -> None:
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def renew(server: Server) -> None:
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")


def kill(server: Server, victim: int) -> None:
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len({*children(server)} - {victim}) == 2, "a new worker")


def failed(record: dict[str, Any], *but: str) -> dict[str, int]:
    return {kind: n for kind, n in record["errors"].items() if n and kind not in but}


def test_term_loses_no_accepted_request(serve, after_s: float) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    record = under_load(server, after_s, lambda: stop(server))
    # Whoever comes after the end is refused; nobody who was let in goes without an answer.
    assert failed(record, "connect") == {}
    assert record["completed"] > 100


def test_term_empties_the_queue_when_each_request_has_a_connection(serve) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    record = under_load(server, AFTER_S, lambda: stop(server), "--no-keepalive")
    assert failed(record, "connect", "timeout") == {}


def test_one_process_loses_none_either(serve) -> None:
    server: Server = serve(APP, "--no-access-log")
    record = under_load(server, AFTER_S, lambda: stop(server), "--no-keepalive")
    assert failed(record, "connect", "timeout") == {}


def test_hup_loses_none(serve, after_s: float) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    before = set(children(server))
    record = under_load(server, after_s, lambda: renew(server))
    assert failed(record) == {}
    assert not before & set(children(server))


def test_a_killed_worker_loses_only_what_is_in_it(serve, after_s: float) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    victim = children(server)[0]
    record = under_load(server, after_s, lambda: kill(server, victim))
    assert set(failed(record)) <= {"reset", "short"}
    # One request at most on each of its connections, and not all connections were its own.
    assert sum(failed(record).values()) <= 16


def leak(server: Server, after_s: float) -> dict[str, Any]:
    """The record of load under which a worker grows until it is replaced."""

    def grow() -> None:
        before = {*children(server)}
        server.wait_for_log("MiB, limit 120 MiB; replacing it")
        wait_for(lambda: before - {*children(server)}, "the end of a worker that is too large")

    return under_load(server, after_s, grow, "-r", "1000", path="/leak")


def test_a_leaking_worker_is_replaced_without_a_failed_request(serve, after_s: float) -> None:
    server: Server = serve(
        APP, "--workers", "2", "--worker-rss-max", "120M", "--no-access-log"
    )  # fmt: skip
    assert failed(leak(server, after_s)) == {}


def test_a_spent_worker_is_replaced_without_a_failed_request(serve, after_s: float) -> None:
    server: Server = serve(
        APP, "--max-requests", "500", "--max-requests-jitter", "100", "--no-access-log"
    )  # fmt: skip
    spent = server.wait_for_log
    record = under_load(server, after_s, lambda: spent("requests; replacing it"), "-r", "1000")
    assert failed(record) == {}


def test_ttou_loses_none(serve) -> None:
    server: Server = serve(APP, "--workers", "3", "--no-access-log")

    def shrink() -> None:
        server.signal(signal.SIGTTOU)
        wait_for(lambda: len(children(server)) == 2, "the end of a worker")

    # What was lost is known when its time is over; a SYN that was dropped comes again after a second.
    record = under_load(server, 3.5, shrink, "--no-keepalive", "--timeout", "3s")
    assert failed(record) == {}


def test_usr2_loses_none(serve, after_s: float, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    server: Server = serve(
        APP, "--workers", "2", "--no-access-log", "--pidfile", str(pidfile)
    )  # fmt: skip
    assert pidfile.read_text() == f"{server.process.pid}\n"

    def upgrade() -> None:
        server.signal(signal.SIGUSR2)
        assert server.process.wait(30) == 0

    try:
        record = under_load(server, after_s, upgrade)
        assert failed(record) == {}
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
        renew(server)
        stop(server)

    record = under_load(server, AFTER_S, disturb)
    assert failed(record, "connect") == {}
    assert record["completed"] > 100


def test_other_interfaces_lose_what_is_in_a_killed_worker(serve_other) -> None:
    server: Server = serve_other()
    victim = children(server)[0]
    record = under_load(server, AFTER_S, lambda: kill(server, victim))
    assert set(failed(record)) <= {"reset", "short"}
    assert sum(failed(record).values()) <= 16


def test_leaking_workers_of_other_interfaces_are_replaced(serve_other) -> None:
    server: Server = serve_other("--worker-rss-max", "120M")
    assert failed(leak(server, AFTER_S)) == {}
