"""Stops: what is waited for and for how long, and how a second signal cuts that short."""

from __future__ import annotations

import re
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from rig import Peer, Server, application, request, wait_for


def ask(server: Server, path: str) -> Peer:
    """Send a request and do not wait."""
    peer = server.connect()
    peer.send(request(path))
    return peer


STUCK = """
@app.get("/stuck", blocking=True)
def stuck():
    print("stuck", flush=True)
    time.sleep(60)

@app.on_shutdown
def down():
    print("down", flush=True)
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "none"])
@pytest.mark.parametrize(
    "signals", [[signal.SIGQUIT], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM, signal.SIGQUIT]]
)
def test_now_is_now(serve, loop: str, signals: list[signal.Signals]) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "50", "--no-access-log")
    with server.connect() as idle:
        assert idle.request("GET", "/").status == 404
        peer = ask(server, "/stuck")
        wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
        began_at = time.monotonic()
        server.signal(signals[0])
        if signals[1:]:
            assert idle.is_closed()  # it drains
            server.signal(signals[1])
        assert server.wait() == 0
        assert time.monotonic() - began_at < 20
        peer.close()
    assert server.out == "stuck\ndown\n"
    assert "left behind" in server.err


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_now_is_heard_while_only_threads_are_waited_for(serve, loop: str) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "50", "--no-access-log")
    peer = ask(server, "/stuck")
    wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
    began_at = time.monotonic()
    server.signal(signal.SIGTERM)
    peer.close()  # the last connection: from here on the thread alone is waited for
    time.sleep(0.3)  # nothing outside shows that it is
    assert server.process.poll() is None
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert time.monotonic() - began_at < 20
    assert server.out == "stuck\ndown\n"


@pytest.mark.parametrize("loop", ["asyncio", "none"])
def test_the_drain_time_is_waited_for_once(serve, loop: str) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "4")
    ask(server, "/stuck")
    wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
    began_at = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert 3.9 < time.monotonic() - began_at < 7.8, "the time is waited for once, not twice"


def test_hooks_behind_one_that_is_broken_off_are_called(serve) -> None:
    server: Server = serve(
        """
        @app.on_shutdown
        def last():
            print("last", flush=True)

        @app.on_shutdown
        async def hangs():
            print("hangs", flush=True)
            await asyncio.sleep(1000)
        """
    )
    server.signal(signal.SIGTERM)
    wait_for(lambda: "hangs" in server.out, "the hook to hang")
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert server.out == "hangs\nlast\n"
    assert re.search(r"hook hangs \(.*\) did not end and was broken off", server.err)


HANDLERS = application("signal_handlers_app")
NEEDS_GEVENT = pytest.mark.skipif(find_spec("gevent") is None, reason="gevent is not installed")
LOOPS = ["asyncio", "uvloop", "none", pytest.param("gevent", marks=NEEDS_GEVENT)]
WATCHED = pytest.param("gevent", "/gevent", marks=NEEDS_GEVENT)


def heard_again(serve, loop: str, path: str, *options: str) -> Server:
    """A server that has taken the signals back from a request."""
    # What gevent's own import warns of is not ours to judge.
    env = {"PYTHONWARNINGS": "default"} if loop == "gevent" else {}
    server: Server = serve(HANDLERS, "--loop", loop, "--no-access-log", *options, env=env)
    assert server.get(path).status == 204
    wait_for(lambda: server.get("/handler").body == b"server", "the signal to be heard again")
    return server


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/ignore", "/default", "/block"])
@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_a_request_that_ignores_the_signal(
    serve, loop: str, path: str, workers: tuple[str, ...]
) -> None:
    """Issue 32 F5: without a supervisor too the signal is heard again, and hooks are called."""
    server = heard_again(serve, loop, path, *workers)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.out == "down\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_of_a_request_is_called_too(serve, loop: str, number: signal.Signals) -> None:
    server = heard_again(serve, loop, "/own")
    server.signal(number)
    assert server.wait() == 0
    assert server.out == "own\ndown\n"


@pytest.mark.parametrize(("loop", "path"), [*((loop, "/loop") for loop in LOOPS[:2]), WATCHED])
def test_a_handler_of_the_loop_does_not_keep_the_server(serve, loop: str, path: str) -> None:
    server = heard_again(serve, loop, path)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "down" in server.out.splitlines()


GATED = application("gated_stream_app")


@pytest.mark.parametrize("poller", [[], ["--poller", "asyncio"]])
@pytest.mark.parametrize("path", ["/stream", "/length"])
def test_a_request_behind_a_response_without_notice_is_answered(
    serve, tmp_path: Path, poller: list[str], path: str
) -> None:
    """The head left before the drain, without `connection: close`: clients go on, and repeat no POST."""
    gate = tmp_path / "gate"
    server: Server = serve(GATED, *poller, env={"GATE": str(gate)})
    with server.connect() as idle, server.connect() as peer:
        assert idle.request("GET", "/").status == 404
        peer.send(request(path))
        assert b"connection: close" not in peer.read_until(b"\r\n\r\n").lower()
        server.signal(signal.SIGTERM)
        assert idle.is_closed()  # it drains
        gate.touch()
        peer.read_until(b"b" if path == "/length" else b"\r\n0\r\n\r\n")
        reply = peer.request("POST", "/next", b"more")
        assert (reply.status, reply.body) == (200, b"more")
        assert reply.headers.get("connection") == "close"
        assert peer.is_closed()
    assert server.wait() == 0


def test_nothing_behind_a_response_without_notice_is_waited_for(serve, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    server: Server = serve(GATED, "--drain-s", "60", env={"GATE": str(gate)})
    with server.connect() as idle, server.connect() as peer:
        assert idle.request("GET", "/").status == 404
        peer.send(request("/stream"))
        peer.read_until(b"\r\n\r\n")
        server.signal(signal.SIGTERM)
        assert idle.is_closed()
        began_at = time.monotonic()
        gate.touch()
        peer.read_until(b"\r\n0\r\n\r\n")
        assert peer.is_closed()
        assert server.wait() == 0
        assert time.monotonic() - began_at < 20  # a quarter of a second, not --keep-alive-ms
