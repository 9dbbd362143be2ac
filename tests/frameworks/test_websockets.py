"""WebSockets of a Starlette application: what an independent client sees of both servers."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from asking import ask
from rig import wait_for
from servers import Pair, Running
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

pytestmark = pytest.mark.parametrize(
    "pair", [pytest.param(("asgi", "starlette_app:app", (), {}), id="starlette")], indirect=True
)


def dial(server: Running, path: str, **options: Any) -> ClientConnection:
    url = server.url.replace("http", "ws", 1) + path
    return connect(url, open_timeout=20, close_timeout=20, max_size=None, **options)


def ending(ws: ClientConnection) -> tuple[int, str]:
    """Code and reason with which the server closes; what comes before is a failure."""
    with pytest.raises(ConnectionClosed) as closed:
        raise AssertionError(ws.recv(20))
    received = closed.value.rcvd
    assert received is not None, "no close frame"
    return received.code, received.reason


@pytest.mark.parametrize("asked", [None, ["chat"], ["other", "chat"], ["other"]])
def test_a_handshake(pair: Pair, asked: list[str] | None) -> None:
    def shake(server: Running) -> tuple[object, ...]:
        headers = {"X-Asked": "a", "Cookie": "a=b; c=d"}
        with dial(
            server, "/talk?a=%C3%A4", subprotocols=asked, additional_headers=headers, origin="http://a"
        ) as ws:  # fmt: skip
            assert ws.response is not None
            own = ws.response.headers["x-own"]
            return ws.response.status_code, ws.subprotocol, own, json.loads(ws.recv(20))

    status, subprotocol, own, told = pair.same(shake)
    assert (status, own) == (101, "yes")
    assert subprotocol == ("chat" if asked and "chat" in asked else None)
    assert told["asked"] == (asked or [])
    assert told["state"] == "yes"


@pytest.mark.parametrize("compression", ["deflate", None])
def test_messages(pair: Pair, compression: str | None) -> None:
    messages: list[str | bytes] = ["", "Hello, wörld", "x" * 300_000, b"", bytes(range(256)) * 500]

    def talk(server: Running) -> list[str | bytes]:
        with dial(server, "/talk", compression=compression) as ws:
            ws.recv(20)
            answers: list[str | bytes] = []
            for message in messages:
                ws.send(message)
                answers.append(ws.recv(20))
            ws.send([b"in ", b"pieces"])
            ws.ping().wait(20)
            return [*answers, ws.recv(20)]

    heard = pair.same(talk)
    assert heard[:3] == messages[:3]
    assert heard[-1] == b"seceip ni"


def told_to(server: Running, word: str) -> tuple[int, str]:
    with dial(server, "/talk") as ws:
        ws.recv(20)
        ws.send(word)
        return ending(ws)


def test_the_application_closes_it(pair: Pair) -> None:
    assert pair.same(lambda server: told_to(server, "close")) == (4001, "as you wish")


@pytest.mark.parametrize(("word", "code"), [("return", 1000), ("fail", 1011)])
def test_the_application_leaves_it(pair: Pair, word: str, code: int) -> None:
    # uvicorn hangs up; a close frame says why.
    assert told_to(pair.ours, word)[0] == code


@pytest.mark.parametrize(("code", "reason"), [(1000, "through"), (4321, ""), (None, "")])
def test_the_client_ends_it(pair: Pair, code: int | None, reason: str) -> None:
    def end(server: Running) -> object:
        before = len(json.loads(ask(server, "GET", "/ends").body))
        with dial(server, "/talk") as ws:
            ws.recv(20)
            if code is None:
                ws.socket.shutdown(socket.SHUT_RDWR)
            else:
                ws.close(code, reason)

        def ends() -> list[object]:
            return json.loads(ask(server, "GET", "/ends").body)[before:]

        wait_for(ends, "the application to hear of it")
        return ends()

    if code is None:  # RFC 6455 §7.1.5; uvicorn has 1005, which is a close frame without a code
        assert end(pair.ours) == [[1006, ""]]
    else:
        assert pair.same(end) == [[code, reason]]


@pytest.mark.parametrize(("path", "status"), [("/refuse", 403), ("/deny", 401), ("/none", 403)])
def test_refusals(pair: Pair, path: str, status: int) -> None:
    def refused(server: Running) -> tuple[int, bytes | None, str | None]:
        with pytest.raises(InvalidStatus) as failed:
            dial(server, path)
        response = failed.value.response
        body = bytes(response.body or b"") if path == "/deny" else None
        return response.status_code, body, response.headers.get("x-own")

    seen = pair.same(refused)
    assert seen[0] == status
    if path == "/deny":
        assert seen[1:] == (b'{"why":"nobody"}', "yes")


def test_a_request_that_is_no_handshake_is_the_routers(pair: Pair) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/talk")).status == 404
