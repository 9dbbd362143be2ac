"""The gevent host: `def` handlers that wait, and a start that says what is missing."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest
from rig import Server, application, wait_for

if find_spec("gevent") is None:
    pytest.skip("gevent is not installed", allow_module_level=True)

GEVENT = ("--loop", "gevent")
# What gevent's own import warns of is not ours to judge.
LENIENT = {"PYTHONWARNINGS": "default"}

APP = application("gevent_app")


@pytest.fixture
def server(serve):
    return serve(APP, *GEVENT, env=LENIENT)


def test_handlers_wait_while_others_run(server) -> None:
    with server.connect() as waits:
        waits.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("waits")
        server.get("/open")
        assert waits.reply().body == b"waited"


def test_a_client_that_leaves_ends_its_handler(server) -> None:
    with server.connect() as waits:
        waits.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("waits")
    server.wait_for_log("through")
    assert "Traceback" not in server.err
    assert server.get("/open").status == 200


def test_streams_in_greenlets(server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /ticks HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"2 \r\n")
        assert server.get("/open").status == 200
    server.wait_for_log("pieces through")
    with server.connect() as peer:
        peer.send(
            b"POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: 150000\r\n\r\n" + b"x" * 100_000
        )
        assert server.get("/open").status == 200
        peer.send(b"x" * 50_000)
        assert peer.reply().body == b"150000"


def test_errors_are_500(server) -> None:
    assert server.get("/fails").status == 500
    server.wait_for_log("ValueError: a reason")


def test_a_stop_drains(server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("waits")
        with server.connect() as other:
            other.send(b"GET /open HTTP/1.1\r\nHost: a\r\n\r\n")
            assert other.reply().status == 200
        server.signal(signal.SIGTERM)
        assert peer.reply().body == b"waited"
    assert server.wait() == 0


def accepts(server: Server) -> bool:
    """Whether it still listens. Signals that come together may be taken for one."""
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_second_interrupt_cuts(serve) -> None:
    server = serve(APP, *GEVENT, "--drain-s", "60", env=LENIENT)
    with server.connect() as peer:
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("waits")
        server.signal(signal.SIGINT)
        wait_for(lambda: not accepts(server), "the end of its listening")
        server.signal(signal.SIGINT)
        server.wait_for_log("cut off|through")
    assert server.wait() == 0


def test_workers_patch_themselves(serve) -> None:
    server = serve(APP, *GEVENT, "--workers", "2", env=LENIENT)
    with server.connect() as waits:
        waits.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("waits")
        # Whichever worker has it: none of them is stuck.
        assert {server.get("/fails").status for _ in range(10)} == {500}


def test_coroutines_are_refused(serve) -> None:
    server = serve('@app.get("/")\nasync def a(): ...\n', *GEVENT, env=LENIENT, ready=False)
    assert server.wait() == 3
    assert "--loop gevent has no event loop" in server.err


def test_a_missing_gevent_is_explained() -> None:
    code = (
        "import sys; sys.modules['gevent'] = None\n"
        "from citius.errors import ConfigError\n"
        "from citius.serving.hosts.gevent import patch\n"
        "try: patch()\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install gevent" in done.stdout
