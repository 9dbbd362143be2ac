"""An application that is all `def` has no event loop until one is asked for; then all is as with one."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from typing import Any

import pytest
from citius import App, Config
from citius.serving.late_loop import reason_for_loop
from citius.serving.service import Service, WorkerContext
from rig import Server, application, children, wait_for

APP = application("late_loop_app")
pytestmark = pytest.mark.epoll("with the portable poller the loop owns the sockets")


def loaded(server: Server) -> list[str]:
    return json.loads(server.get("/loaded").body)


def test_nothing_asks_for_a_loop(serve) -> None:
    server: Server = serve(APP)
    assert loaded(server) == []
    with server.connect() as peer:
        assert peer.request("GET", "/plain").body == b"plain"
        assert peer.request("POST", "/echo", b"x" * 100_000).body == b"x" * 100_000
        assert peer.request("GET", "/stream").body == b"012"
        assert peer.request("GET", "/blocking").body == b"blocking"
        assert peer.request("GET", "/missing").status == 404
    assert loaded(server) == []
    assert server.get("/ssl").body == b"False"
    assert server.stop() == 0
    assert "Traceback" not in server.err


def test_workers_and_a_new_one_have_none(serve) -> None:
    server: Server = serve(APP, "--workers", "2")
    assert loaded(server) == []
    before = children(server)
    server.signal(signal.SIGHUP)
    wait_for(lambda: not set(before) & set(children(server)), "the workers to be replaced")
    assert loaded(server) == []
    assert server.get("/suspends").body == b"uvloop"
    assert server.stop() == 0


@pytest.mark.parametrize("path", ["/suspends", "/running", "/task", "/defer"])
def test_a_worker_of_a_supervisor(serve, path: str) -> None:
    """The supervisor has imported asyncio: here it is the same package, whole."""
    server: Server = serve(APP, "--supervisor")
    assert loaded(server) == []
    assert server.get(path).status == 200
    assert server.get("/running").body == b'["uvloop",true,true,false]'
    assert json.loads(server.get("/whole").body) == ["asyncio", True, True, True]
    assert server.stop() == 0


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_loop_that_is_named_is_there_from_the_start(serve, loop: str) -> None:
    server: Server = serve(APP, "--loop", loop)
    assert "asyncio" in loaded(server)
    assert ("uvloop" in loaded(server)) == (loop == "uvloop")


def test_the_portable_poller_has_one_from_the_start(serve) -> None:
    assert "asyncio" in loaded(serve(APP, "--poller", "asyncio"))


def test_metrics_have_one_from_the_start(serve) -> None:
    assert "asyncio" in loaded(serve(APP, "--management", "127.0.0.1:0"))


@pytest.mark.parametrize(
    "options",
    [
        {"loop": "uvloop"},
        {"loop": "asyncio"},
        {"poller": "asyncio"},
        {"sandbox": True},
        {"otel": True},
    ],
    ids=str,
)
def test_options_for_which_one_is_there_from_the_start(options: dict[str, Any]) -> None:
    def reason(**options: Any) -> str:
        app = App()
        app.get("/")(lambda: "x")
        service = Service(app, Config(**options), WorkerContext([], bool))
        return reason_for_loop(app, service)

    assert reason() == "asyncio is imported"  # by pytest's plugins
    assert reason(**options) not in ("", "asyncio is imported")


ASKING = {
    "/suspends": None,
    "/no-wait": None,
    "/async-generator": None,
    "/running": None,
    "/task": "task",
    "/defer": "deferred",
    "/asyncio-run": None,
    "/from-thread": None,
    "/channel": None,
    "/channel-of-a-turn": None,
}


@pytest.mark.parametrize("path", ASKING)
def test_who_asks_first_finds_what_was_there_from_the_start(serve, path: str) -> None:
    late, early = serve(APP), serve(APP, "--loop", "uvloop")
    assert loaded(late) == []
    replies = [server.get(path) for server in (late, early)]
    assert replies[0].status == replies[1].status
    assert replies[0].body == replies[1].body
    for server in (late, early):
        if (note := ASKING[path]) is not None:
            wait_for(lambda server=server: note in server.get("/noted").body.decode(), note)
        assert server.get("/suspends").body == b"uvloop"
        assert server.get("/running").body == b'["uvloop",true,true,false]'
        assert server.get("/async-generator").body == b"012"
        assert server.get("/plain").body == b"plain"
        assert server.get("/blocking").body == b"blocking"
        assert server.stop() == 0
    assert ("Traceback" in late.err) == ("Traceback" in early.err)
    assert "was destroyed" not in late.err


def test_requests_of_the_turn_that_asks(serve) -> None:
    server: Server = serve(APP)
    paths = [
        "/plain",
        "/suspends",
        "/plain",
        "/running",
        "/async-generator",
        "/suspends",
        "/plain",
    ]
    with server.connect() as peer:
        peer.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        found = [peer.reply().body for _ in paths]
    running = b'["uvloop",true,true,false]'
    assert found == [b"plain", b"uvloop", b"plain", running, b"012", b"uvloop", b"plain"]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("asks", [False, True])
def test_drain(serve, sig: signal.Signals, asks: bool) -> None:
    server: Server = serve(APP)
    part = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na"
    with server.connect() as ends, server.connect() as idle, server.connect() as stays:
        if asks:
            assert server.get("/suspends").status == 200
        ends.send(part)
        stays.send(part)
        assert idle.request("GET", "/plain").status == 200
        server.signal(sig)
        assert idle.is_closed()
        ends.send(b"b")
        assert ends.reply().body == b"ab"
        server.signal(signal.SIGINT)  # a second one cuts
        assert stays.is_closed()
    assert server.wait() == 0
    assert "1 open request was cut off" in server.err


def test_a_loop_is_asked_for_while_it_drains(serve) -> None:
    server: Server = serve(APP)
    body = b"POST /suspends HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na"
    with server.connect() as idle, server.connect() as busy:
        assert idle.request("GET", "/plain").status == 200
        busy.send(body)
        assert server.get("/plain").status == 200
        server.signal(signal.SIGTERM)
        assert idle.is_closed()
        busy.send(b"b")
        assert busy.reply().body == b"uvloop"
    assert server.wait() == 0
    assert "cut off" not in server.err


@pytest.mark.parametrize("asks", [False, True])
def test_drain_deadline(serve, asks: bool) -> None:
    server: Server = serve(APP, "--drain-s", "0.5")
    with server.connect() as peer, server.connect() as idle:
        assert idle.request("GET", "/plain").status == 200
        if asks:
            peer.send(b"GET /forever HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_for(
                lambda: "forever" in idle.request("GET", "/noted").body.decode(), "the handler"
            )
        else:
            peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
            assert idle.request("GET", "/plain").status == 200
        server.signal(signal.SIGTERM)
        assert idle.is_closed()
        with suppress(ConnectionResetError):
            peer.read_to_end()
    assert server.wait() == 0


@pytest.mark.parametrize("asks", [False, True])
def test_a_handler_of_signals_of_the_application(serve, asks: bool) -> None:
    server: Server = serve(APP)
    assert server.get("/own-handler").body == b"set"
    if asks:
        assert server.get("/suspends").body == b"uvloop"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.out.count("heard") == 1


def test_timers_of_the_server_go_on(serve) -> None:
    server: Server = serve(APP, "--keep-alive-ms", "300")
    with server.connect() as before:
        assert before.request("GET", "/plain").status == 200
        with server.connect() as peer:
            assert peer.request("GET", "/suspends").body == b"uvloop"
            assert before.is_closed()
            assert peer.is_closed()


def test_a_forked_child_makes_none(serve) -> None:
    assert serve(APP).get("/child").body == b"ran"
