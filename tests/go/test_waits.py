"""Every place where a server calls code of an application: it may wait there, or is told what to do."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable

import pytest
from rig import PLAIN, Server, application, wait_for
from rpc_rig import connect_rpc
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

pytest.importorskip("greenlet")

APP = application("waits_app")
SOURCE = APP.read_text().splitlines()
RPC = ("--rpc", "127.0.0.1:0")
# The sockets of these tests say what they send, and nothing is compressed to be small.
CLIENT = {"compression": None, "open_timeout": 20, "close_timeout": 20}

REQUESTS = {
    "/def": "def",
    "/async": "async def",
    "/join": "join",
    "/for": "for",
    "/generator": "generator",
    "/async-generator": "async generator",
    "/dependency": "dependency",
    "/dependency/serial": "dependency",
    "/dependency/async": "async dependency",
    "/error-handler": "error handler",
    "/middleware/def": "middleware",
    "/middleware/serial": "middleware",
    "/async-middleware/def": "async middleware",
    "/deferred": "deferred",
}
HOOKS = {
    "def hook": "@app.on_startup\ndef hook() -> None:\n    _value, _ok = chan().recv()",
    "async hook": "@app.on_startup\nasync def hook() -> None:\n    _value, _ok = chan().recv()",
    "lifespan": (
        "import contextlib\n"
        "@contextlib.asynccontextmanager\n"
        "async def lifespan(app):\n"
        "    _value, _ok = chan().recv()\n"
        "    yield\n"
        "app = App(lifespan=lifespan)"
    ),
}


@pytest.fixture(scope="module")
def waits(serve_module: Callable[..., Server]) -> Server:
    return serve_module(APP, *RPC)


def wait_for_error(server: Server, place: str) -> None:
    """Wait for the one error: what is wrong, what to do, and the line that waits."""
    line = next(at for at, text in enumerate(SOURCE, 1) if text.endswith(f"# in: {place}"))
    server.wait_for_log(rf"ChannelMisuse: .*serial=True.* \(\S*waits_app\.py:{line}\)")


@pytest.mark.parametrize("path", REQUESTS)
def test_a_request_that_waits_where_it_cannot_names_its_line(waits: Server, path: str) -> None:
    if "generator" in path:  # which breaks off
        with waits.connect() as peer, pytest.raises((EOFError, OSError)):
            peer.request("GET", path)
    else:
        assert waits.get(path).status == (200 if path == "/deferred" else 500)
    wait_for_error(waits, REQUESTS[path])


@pytest.mark.parametrize("path", ["/socket", "/connections/socket"])
def test_a_websocket_that_waits_where_it_cannot_names_its_line(waits: Server, path: str) -> None:
    with pytest.raises((ConnectionClosed, InvalidStatus)), open_socket(waits, path) as client:
        client.recv(timeout=20)
    wait_for_error(waits, "websocket" if path == "/socket" else "connection middleware")


@pytest.mark.parametrize("name", ["in_procedure", "in_async_procedure"])
def test_a_procedure_that_waits_where_it_cannot_names_its_line(waits: Server, name: str) -> None:
    with connect_rpc(waits) as peer:
        error, _ = peer.call(name)
    assert error["type"] == "InternalError"
    wait_for_error(waits, name.removeprefix("in_").replace("_", " "))


@pytest.mark.parametrize("hook", HOOKS)
def test_a_start_that_waits_where_it_cannot_names_its_line(
    serve: Callable[..., Server], hook: str
) -> None:
    server = serve(f"from citius.go import chan\n{HOOKS[hook]}\n", ready=False)
    assert server.wait() != 0
    assert re.search(r"^citius: .*serial=True.* \(\S*main\.py:\d+\)$", server.err, re.MULTILINE)


def test_a_stop_that_waits_where_it_cannot_names_its_line(serve: Callable[..., Server]) -> None:
    source = "from citius.go import chan\n@app.on_shutdown\ndef hook() -> None:\n    _v, _ok = chan().recv()"
    server = serve(source)
    server.stop()
    assert re.search(r"the shutdown hook hook .*failed", server.err)
    assert re.search(r"ChannelMisuse: .*serial=True.* \(\S*main\.py:\d+\)", server.err)


@pytest.mark.parametrize("how", ["send", "async-send", "sleep", "async-sleep"])
def test_what_is_not_awaited_is_a_warning_with_its_line_and_the_remedy(
    serve: Callable[..., Server], how: str
) -> None:
    server = serve(APP, env=PLAIN)
    assert server.get(f"/dropped/{how}").status == 200
    place = f"dropped {how.replace('-', ' ')}"
    line = next(at for at, text in enumerate(SOURCE, 1) if text.endswith(f"# in: {place}"))
    server.wait_for_log(rf"waits_app\.py:{line}: RuntimeWarning: .*`await`.*serial=True")


def open_socket(server: Server, path: str, **options: object) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{server.port}{path}", **CLIENT, **options)  # pyright: ignore


def seen(server: Server) -> list[str]:
    return json.loads(server.get("/seen").body)


def check_waits(server: Server, *, has_threads: bool = True) -> None:
    """Wait in every place where that is possible."""
    kinds = ["serial", "serial-generator", "serial-response", "blocking", "blocking-generator"]
    for kind in [*kinds, *(["executor"] if has_threads else [])]:
        reply = server.get(f"/waits/{kind}")
        assert (kind, reply.status, reply.body) == (kind, 200, b"waited")
    with server.connect() as peer:
        assert peer.request("POST", "/waits/serial-body", b"x" * 300_000).body == b"300000"
    with connect_rpc(server) as peer:
        assert peer.call("serial_procedure", "!") == (None, "waited!")
        assert peer.call("blocking_procedure", "!") == (None, "waited!")
    with open_socket(server, "/waits/3") as client:
        for text in ("a", "b"):
            client.send(text)
            assert client.recv(timeout=20) == "waited" + 3 * text
    wait_for(lambda: "the socket has ended" in seen(server), "the end of the socket")
    with open_socket(server, "/blocking") as client:
        client.send("c")
        assert client.recv(timeout=20) == "waitedc"


@pytest.mark.parametrize(
    "options", [(), ("--reactor-threads", "2"), ("--poller", "asyncio"), ("--loop", "asyncio")]
)
def test_every_other_place_waits(serve: Callable[..., Server], options: tuple[str, ...]) -> None:
    server = serve(APP, *RPC, *options)
    check_waits(server)
    server.get("/waits/deferred")
    wait_for(lambda: "waited" in seen(server), "what was deferred")


def test_many_calls_of_one_connection_wait_side_by_side(waits: Server) -> None:
    with connect_rpc(waits) as peer:
        for number in range(100):
            peer.ask(number, "serial_procedure", str(number))
        replies = {number: result for _, number, _, result in (peer.hear() for _ in range(100))}
    assert replies == {number: f"waited{number}" for number in range(100)}


def test_under_gevent_its_greenlets_wait(serve: Callable[..., Server]) -> None:
    pytest.importorskip("gevent")
    server = serve(application("waits_gevent_app"), *RPC, "--loop", "gevent")
    with connect_rpc(server) as peer:
        assert peer.call("procedure") == (None, "waited")
    with open_socket(server, "/2") as client:
        client.send("a")
        assert client.recv(timeout=20) == "waitedaa"
    assert server.get("/stream").body == b"waited"


def test_a_procedure_whose_time_is_over_ends_its_wait(waits: Server) -> None:
    with connect_rpc(waits) as peer:
        error, _ = peer.call("late_procedure")
    assert error["type"] == "DeadlineExceeded"
    wait_for(lambda: "the procedure has ended" in seen(waits), "its end")


@pytest.mark.parametrize(
    ("path", "end"), [("/parks", "its wait has ended"), ("/waits/1", "the socket has ended")]
)
def test_a_client_that_is_lost_ends_the_waits_of_its_socket(
    serve: Callable[..., Server], path: str, end: str
) -> None:
    server = serve(APP)
    with open_socket(server, path) as client:
        if path == "/parks":
            assert client.recv(timeout=20) == "parks"
        client.socket.shutdown(socket.SHUT_RDWR)
        wait_for(lambda: end in seen(server), "the end of its wait")


def test_a_client_that_leaves_a_stream_ends_its_wait(waits: Server) -> None:
    peer = waits.connect()
    peer.send(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
    received = b""
    while b"begun" not in received:
        received += peer.socket.recv(65536)
    peer.reset()
    wait_for(lambda: "the stream has ended" in seen(waits), "its end")


def test_a_socket_waits_for_room(waits: Server) -> None:
    with open_socket(waits, "/floods", max_size=None, max_queue=1) as client:
        # Other requests are served while it waits for this client.
        assert waits.get("/waits/serial").body == b"waited"
        for number in range(200):
            assert json.loads(client.recv(timeout=20))["number"] == number
        assert client.recv(timeout=20) == "all of it"
