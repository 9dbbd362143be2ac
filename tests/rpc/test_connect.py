"""Procedures by Connect with JSON, on the web port: unary calls, streams, errors, deadlines, dependencies."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from citius import App, ConfigError
from citius.testing import Client
from rig import Reply, Server, application

APP = application("connect_app")


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., Server]) -> Server:
    return serve_module(APP, "--rpc", "127.0.0.1:0")


def ask(server: Server, path: str, params: object, **fields: str) -> Reply:
    with server.connect() as peer:
        named = {"content_type": "application/json", "connect_protocol_version": "1", **fields}
        return peer.request("POST", path, json.dumps(params).encode(), **named)


def call(server: Server, path: str, **params: object) -> Any:
    reply = ask(server, path, params)
    assert reply.status == 200, reply
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-middleware"] == "1"
    return json.loads(reply.body)


def stream(server: Server, path: str, **params: object) -> tuple[list[Any], dict[str, Any]]:
    data = json.dumps(params).encode()
    with server.connect() as peer:
        reply = peer.request(
            "POST", path, struct.pack(">BI", 0, len(data)) + data,
            content_type="application/connect+json",
        )  # fmt: skip
    assert reply.status == 200, reply
    assert reply.headers["content-type"] == "application/connect+json"
    body, messages = reply.body, []
    while True:
        flags, size = struct.unpack_from(">BI", body)
        message, body = json.loads(body[5 : 5 + size]), body[5 + size :]
        if flags == 2:
            assert body == b""
            return messages, message
        assert flags == 0
        messages.append(message)


USER = {"name": "ann", "since": "2026-01-02T00:00:00Z"}


def test_calls(server: Server) -> None:
    # Only declared fields are sent; 64-bit integers may be texts, as clients of protocol buffers write them.
    assert call(server, "/users/get", id=7) == {"id": 7, **USER}
    assert call(server, "/users/get", id="7", user_name="bob") == {"id": 7, **USER, "name": "bob"}
    assert call(server, "/math/add", a=1, b=2.5) == {"result": 3.5}
    assert call(server, "/citius.Procedures/nothing") == {}
    assert call(server, "/citius.Procedures/waits", ms=1) == {"result": "done"}
    assert call(server, "/citius.Procedures/tags", names=["a", "bc"]) == {"a": 1, "bc": 2}


def test_an_empty_body_is_an_empty_message(server: Server) -> None:
    with server.connect() as peer:
        reply = peer.request(
            "POST",
            "/citius.Procedures/nothing",
            b"",
            content_type="application/json; charset=utf-8",
        )
    assert (reply.status, reply.body) == (200, b"{}")


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({"id": 404}, 404, "not_found"),
        ({"id": 403}, 403, "permission_denied"),
        ({"id": 1}, 400, "failed_precondition"),
        ({"id": 500}, 500, "internal"),
        ({}, 400, "invalid_argument"),
        ({"id": "x"}, 400, "invalid_argument"),
        ({"id": 1, "other": 1}, 400, "invalid_argument"),
        ([], 400, "invalid_argument"),
        # hostile 13: a 500 with a traceback.
        ("x", 400, "invalid_argument"),
        (5, 400, "invalid_argument"),
        (1.5, 400, "invalid_argument"),
        (True, 400, "invalid_argument"),
    ],
)
def test_errors(server: Server, params: object, status: int, code: str) -> None:
    reply = ask(server, "/users/get", params)
    said = json.loads(reply.body)
    assert (reply.status, said["code"]) == (status, code), said
    assert "secret" not in said["message"]


def test_what_errors_say(server: Server) -> None:
    said = json.loads(ask(server, "/users/get", {"id": 1}).body)
    assert said["message"] == "none left"
    assert said["details"][0]["debug"] == {"type": "OutOfStock", "data": {"wanted": 3}}
    said = json.loads(ask(server, "/users/get", {"id": "x"}).body)
    (mistake,) = said["details"][0]["debug"]["data"]["errors"]
    assert mistake["pointer"] == "#/id"


def test_mistakes_of_the_protocol(server: Server) -> None:
    assert ask(server, "/users/get", {"id": 7}, content_type="application/proto").status == 415
    assert ask(server, "/users/watch", {"count": 1}).status == 415
    assert ask(server, "/users/none", {}).status == 404
    assert ask(server, "/users/get", {"id": 7}, connect_protocol_version="2").status == 400
    assert ask(server, "/users/get", {"id": 7}, connect_timeout_ms="12345678901").status == 400
    assert ask(server, "/users/get", {"id": 7}, content_encoding="br").status == 501
    assert ask(server, "/users/get", {"id": 7}, content_encoding="gzip").status == 400
    with server.connect() as peer:
        assert peer.request("GET", "/users/get").status == 405


def test_compressed_messages(server: Server) -> None:
    def post(path: str, body: bytes, **fields: str) -> Reply:
        with server.connect() as peer:
            return peer.request("POST", path, body, **fields)

    data = gzip.compress(b'{"id": 7}')
    unary = {"content_type": "application/json", "content_encoding": "gzip"}
    assert json.loads(post("/users/get", data, **unary).body)["id"] == 7
    for wrong in (data[:-1], data + b"x", b""):
        assert post("/users/get", wrong, **unary).status == 400
    bomb = gzip.compress(b" " * 5_000_000)
    assert post("/users/get", bomb, **unary).status == 429
    data = gzip.compress(b'{"count": 1}')
    stream = {"content_type": "application/connect+json", "connect_content_encoding": "gzip"}
    reply = post("/users/watch", struct.pack(">BI", 1, len(data)) + data, **stream)
    assert b'"id":0' in reply.body


def test_deadlines(server: Server) -> None:
    for path, fields in (
        ("/citius.Procedures/slow", {}),
        ("/citius.Procedures/slow", {"connect_timeout_ms": "50"}),
    ):
        reply = ask(server, path, {"ms": 5000}, **fields)
        assert (reply.status, json.loads(reply.body)["code"]) == (504, "deadline_exceeded")
    assert call(server, "/citius.Procedures/slow", ms=1) == {"result": "done"}


def test_streams(server: Server) -> None:
    messages, end = stream(server, "/users/watch", count=3)
    assert [one["id"] for one in messages] == [0, 1, 2]
    assert all("password" not in one for one in messages)
    assert end == {}
    messages, end = stream(server, "/users/watch", count=1, fail=True)
    assert len(messages) == 1
    assert end == {"error": {"code": "not_found", "message": "no more"}}
    messages, end = stream(server, "/users/watch", count="x")
    assert (messages, end["error"]["code"]) == ([], "invalid_argument")
    assert stream(server, "/citius.Procedures/numbers", count=2) == (
        [{"result": 0}, {"result": 1}],
        {},
    )


def test_streams_that_are_framed_wrong(server: Server) -> None:
    for body in (
        b"",
        b"\0\0\0",
        struct.pack(">BI", 0, 9) + b"{}",
        struct.pack(">BI", 1, 2) + b"{}",
    ):
        with server.connect() as peer:
            reply = peer.request(
                "POST", "/users/watch", body, content_type="application/connect+json"
            )
        assert reply.status == 200
        assert b'"error":{"code":' in reply.body


def test_dependencies_hold(server: Server) -> None:
    for path in ("/private/users/get", "/private/shop.Private/nothing"):
        assert ask(server, path, {"id": 7}).status == 401
    right = {"authorization": "Bearer right"}
    assert ask(server, "/private/users/get", {"id": 7}, **right).status == 200
    assert ask(server, "/private/shop.Private/nothing", {}, **right).status == 200


def test_declarations_that_cannot_hold() -> None:
    app = App()
    app.connect()
    with pytest.raises(ConfigError, match="twice"):
        app.connect()
    with pytest.raises(ConfigError, match=r"shop\.Orders"):
        app.connect("/x", service="no service")

    @app.rpc
    def many(*numbers: int) -> int:
        return sum(numbers)

    with pytest.raises(ConfigError, match="names its parameters"), Client(app):
        pass
