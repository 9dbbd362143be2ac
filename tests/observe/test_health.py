"""Readiness and liveness: on the management port, and on the application's own."""

from __future__ import annotations

import signal
import socket

import pytest
from rig import application, wait_for

CHECKED = application("checks_app")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ready_while_the_applications_checks_pass(manage, workers: str, monkeypatch) -> None:
    managed = manage(CHECKED, "-w", workers, "--no-access-log")
    managed.wait_ready()
    status, details = managed.ready()
    assert (status, details["ready"]) == (200, int(workers))
    assert {w["checks"] for w in details["workers"]} == {"all pass"}
    assert managed.ask("/live")[0] == 200
    managed.server.get("/break")
    wait_for(lambda: managed.ready()[0] == 503, "failing checks")
    failing = [w for w in managed.ready()[1]["workers"] if w["state"] == "failing"]
    assert failing[0]["checks"] == "database: ConnectionError: refused"


ASYNC_CHECKS = """
state = {"quick": 1}
@app.readiness
async def quick(): return 1 / state["quick"]
@app.get("/break")
def break_quick(): state["quick"] = 0
@app.get("/", blocking=True)
def waits(): return "x"
"""


@pytest.mark.epoll("there is no loop")
def test_checks_that_are_async_without_a_loop(manage) -> None:
    managed = manage(ASYNC_CHECKS, "--loop", "none", "--no-access-log")
    managed.wait_ready()
    assert managed.ready()[1]["workers"][0]["checks"] == "all pass"
    managed.server.get("/break")
    wait_for(lambda: managed.ready()[0] == 503, "failing checks")
    checks = managed.ready()[1]["workers"][0]["checks"]
    assert checks == "quick: ZeroDivisionError: division by zero"
    assert "never awaited" not in managed.server.err


@pytest.mark.epoll("there is no loop")
def test_a_check_that_waits_for_a_loop_fails_without_one(manage) -> None:
    source = "@app.readiness\nasync def waits(): await asyncio.sleep(0)"
    managed = manage(source, "--loop", "none", "--no-access-log")
    says = "waits: RuntimeError: it waits for an event loop, and there is none"
    wait_for(lambda: managed.ready()[1]["workers"][0]["checks"] == says, "a check that fails")


def test_not_ready_while_draining(manage, tmp_path) -> None:
    managed = manage(CHECKED, "-w", "2", "--no-access-log")
    managed.wait_ready()
    with managed.server.connect() as peer:
        peer.send(b"GET /wait/gate HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "begun" in managed.server.out, "the handler to begin")
        managed.server.signal(signal.SIGTERM)
        wait_for(lambda: managed.ready()[0] == 503, "the drain")
        assert managed.ask("/live")[0] == 200
        (tmp_path / "gate").touch()
        assert peer.reply().body == b"done"
    assert managed.server.wait() == 0


def test_on_the_main_port(serve) -> None:
    server = serve("@app.get('/')\ndef root(): return 'x'", "--health", "/-", "--no-access-log")
    assert server.get("/-/live").status == 200
    reply = server.get("/-/ready")
    assert (reply.status, reply.body, reply.headers["cache-control"]) == (200, b"ready", "no-store")
    assert server.get("/-/other").status == 404


def test_at_a_unix_socket(serve, tmp_path) -> None:
    path = tmp_path / "manage"
    server = serve("", "--management", f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /ready HTTP/1.0\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not path.exists()
