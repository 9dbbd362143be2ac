"""A native application on other servers: every response as `citius serve` sends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import servers
from asking import HOST, Client, ask
from rig import wait_for
from servers import Pair, Running, connect
from test_websockets import dial, ending

SERVERS = ("uvicorn", "hypercorn", "granian")


@pytest.fixture(scope="module", params=SERVERS)
def pair(request: pytest.FixtureRequest, folder):
    theirs = getattr(servers, request.param)("native_app:asgi", folder)
    ours = servers.citius("native_app:app", folder)
    yield Pair(ours, theirs)
    ours.kill()
    theirs.kill()


REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/", {}),
    ("HEAD", "/", {}),
    ("OPTIONS", "/", {}),
    ("POST", "/", {}),
    ("GET", "/state", {}),
    ("GET", "/items/7?q=a&limit=3", {}),
    ("GET", "/items/7?limit=300", {}),
    ("GET", "/items/x", {}),
    ("GET", "/items/7", {"headers": {"accept": "application/msgpack"}}),
    ("POST", "/items", {"json": {"name": "a", "price": 1.5}}),
    ("POST", "/items", {"json": {"name": 1}}),
    ("POST", "/items", {"content": b"{"}),
    ("POST", "/items", {"json": {"name": "a" * 100_000, "price": 2}}),
    ("GET", "/show/a/b%20c/%C3%A4?x=%26", {"headers": [("x-twice", "1"), ("x-twice", "2")]}),
    ("GET", "/show/c", {"headers": {"cookie": "a=b; c=d"}}),
    ("GET", "/cookies", {}),
    ("GET", "/nothing", {}),
    ("GET", "/teapot", {}),
    ("GET", "/broken", {}),
    ("GET", "/missing", {}),
    ("GET", "/no-such-path", {}),
    ("DELETE", "/state", {}),
    ("GET", "/blocking", {}),
    ("GET", "/stream", {}),
    ("HEAD", "/stream", {}),
    ("GET", "/large", {}),
    ("GET", "/events", {}),
    ("GET", "/file", {}),
    ("HEAD", "/file", {}),
    ("GET", "/file", {"headers": {"range": "bytes=10-19"}}),
    ("GET", "/file", {"headers": {"range": "bytes=9999999-"}}),
    ("GET", "/files/course.bin", {}),
    ("GET", "/files/none", {}),
    ("POST", "/count", {"content": b"x" * 3_000_000}),
    ("POST", "/echo", {"content": b"x" * 300_000}),
    ("POST", "/form", {"data": {"a": "1", "b": "ä"}}),
]


@pytest.mark.parametrize(
    ("method", "path", "options"), REQUESTS, ids=[f"{m} {p}" for m, p, _ in REQUESTS]
)
def test_a_response(pair: Pair, method: str, path: str, options: dict[str, Any]) -> None:
    pair.same(lambda server: ask(server, method, path, **options))


def test_a_body_in_chunks(pair: Pair) -> None:
    def count(server: Running) -> bytes:
        pieces = (b"x" * 1000 for _ in range(100))
        return ask(server, "POST", "/count", content=pieces).body

    assert pair.same(count) == b"100000"


def test_a_body_that_is_not_read(pair: Pair) -> None:
    def send(server: Running) -> int:
        return ask(server, "POST", "/unread", content=b"x" * 1000).status

    assert pair.same(send) == 413


def test_requests_of_one_connection(pair: Pair) -> None:
    def several(server: Running) -> list[bytes]:
        with Client(server) as client:
            return [client.ask("GET", f"/items/{number}").body for number in range(20)]

    pair.same(several)


def test_a_streamed_body_comes_piece_by_piece_both_ways(pair: Pair) -> None:
    def talk(server: Running) -> list[bytes]:
        with connect(server) as peer:
            peer.send(
                f"POST /echo HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            seen = []
            for word in (b"one", b"two"):
                peer.send(b"%x\r\n%b\r\n" % (len(word), word))
                seen.append(peer.read_until(word)[-3:])
            return seen

    assert pair.same(talk) == [b"one", b"two"]


def test_a_response_that_is_cut_off(pair: Pair) -> None:
    with connect(pair.theirs) as peer:
        peer.send(f"GET /cut HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        seen = peer.read_to_end()
    # The end of a chunked body would say that this is the whole.
    assert b"the beginning" in seen
    assert not seen.endswith(b"0\r\n\r\n")


def noticed(server: Running) -> list[str]:
    return json.loads(ask(server, "GET", "/noticed").body)


@pytest.mark.parametrize(("path", "what"), [("/until-gone", "handler"), ("/endless", "stream")])
def test_a_client_that_leaves(pair: Pair, path: str, what: str) -> None:
    def leave(server: Running) -> int:
        before = noticed(server).count(what)
        with connect(server) as peer:
            peer.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            if what == "stream":
                peer.read_until(b"xxx")
        wait_for(lambda: noticed(server).count(what) > before, "the handler to notice")
        return noticed(server).count(what) - before

    assert pair.same(leave) == 1


@pytest.mark.parametrize("asked", [None, ["chat"], ["other", "chat"], ["other"]])
def test_a_handshake(pair: Pair, asked: list[str] | None) -> None:
    def shake(server: Running) -> tuple[object, ...]:
        with dial(server, "/talk?a=1", subprotocols=asked) as ws:
            assert ws.response is not None
            # Granian adds no fields of the application to its response.
            own = ws.response.headers.get("x-own") if pair.theirs.name != "granian" else "yes"
            return ws.response.status_code, ws.subprotocol, own, ws.recv(20)

    pair.same(shake)


def test_messages(pair: Pair) -> None:
    messages: list[str | bytes] = ["", "Hello, wörld", "x" * 300_000, b"", bytes(range(256)) * 500]

    def talk(server: Running) -> list[str | bytes]:
        with dial(server, "/talk") as ws:
            ws.recv(20)
            answers: list[str | bytes] = []
            for message in messages:
                ws.send(message)
                answers.append(ws.recv(20))
            return answers

    assert pair.same(talk) == messages


def test_the_application_closes(pair: Pair) -> None:
    def talk(server: Running) -> tuple[int, str]:
        with dial(server, "/talk") as ws:
            ws.recv(20)
            ws.send("close")
            return ending(ws)

    assert pair.same(talk) == (4001, "as you wish")


def test_the_client_closes(pair: Pair) -> None:
    def talk(server: Running) -> str:
        before = len(noticed(server))
        with dial(server, "/talk") as ws:
            ws.recv(20)
            ws.close(3003, "bye")
        wait_for(lambda: noticed(server)[before:], "the end to be noticed")
        code = noticed(server)[before]
        # Hypercorn does not pass the client's code on.
        return "closed 3003" if server.name == "hypercorn" and code == "closed 1006" else code

    assert pair.same(talk) == "closed 3003"


@pytest.mark.parametrize("name", SERVERS)
def test_the_lifespan_ends(folder, name: str) -> None:
    server = getattr(servers, name)("native_app:asgi", folder)
    try:
        assert ask(server, "GET", "/state").body == b"yes"
    finally:
        server.stop()
    assert "the lifespan has ended" in server.log
