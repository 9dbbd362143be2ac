"""FastAPI, Starlette and Flask below a native application: every response as their own mounts send it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from asking import HOST, ask
from rig import wait_for
from servers import Pair, Running, connect
from test_websockets import dial, ending

REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/hello", {}),
    ("HEAD", "/hello", {}),
    ("POST", "/hello", {}),
    ("GET", "/no-such-path", {}),
    ("GET", "/greet/%C3%A4%20b?times=3", {}),
    ("GET", "/show?a=%26", {"headers": [("x-one", "1"), ("x-one", "2"), ("cookie", "a=b")]}),
    ("POST", "/echo", {"content": b"x" * 300_000}),
    ("POST", "/form", {"data": {"a": "1", "b": "ä"}}),
    ("POST", "/upload", {"data": {"title": "t"}, "files": {"file": ("a.bin", b"x" * 100_000)}}),
    ("GET", "/stream", {}),
    ("GET", "/fail", {}),
    ("GET", "/cookies", {}),
    ("GET", "/redirect", {}),
    ("GET", "/nothing", {}),
    ("GET", "/file", {}),
    ("HEAD", "/file", {}),
]
IDS = [f"{method} {path}" for method, path, _ in REQUESTS]


@pytest.fixture(scope="module")
def asgi(folder: Path) -> Iterator[Pair]:
    theirs = servers.uvicorn("mounts_app:mounts_reference", folder)
    ours = servers.citius("mounts_app:mounts", folder)
    yield Pair(ours, theirs)
    ours.kill()
    theirs.kill()


@pytest.fixture(scope="module")
def wsgi(folder: Path, asgi: Pair) -> Iterator[Pair]:
    theirs = servers.gunicorn("mounts_app:flask_reference", folder)
    yield Pair(asgi.ours, theirs)
    theirs.kill()


@pytest.mark.parametrize("framework", ["fastapi", "starlette"])
@pytest.mark.parametrize(("method", "path", "options"), REQUESTS, ids=IDS)
def test_an_asgi_application(
    asgi: Pair, framework: str, method: str, path: str, options: dict[str, Any]
) -> None:
    asgi.same(lambda server: ask(server, method, f"/{framework}{path}", **options))


@pytest.mark.parametrize(("method", "path", "options"), REQUESTS, ids=IDS)
def test_a_wsgi_application(wsgi: Pair, method: str, path: str, options: dict[str, Any]) -> None:
    wsgi.same(lambda server: ask(server, method, f"/flask{path}", **options))


@pytest.mark.parametrize("path", ["/fastapi/docs", "/fastapi/openapi.json", "/starlette/state"])
def test_what_stands_on_the_prefix_and_the_lifespan(asgi: Pair, path: str) -> None:
    assert asgi.same(lambda server: ask(server, "GET", path)).status == 200


def test_native_routes_beside_them(asgi: Pair) -> None:
    assert ask(asgi.ours, "GET", "/native").body == b"native"


def test_a_client_that_leaves(asgi: Pair) -> None:
    def left(server: Running) -> int:
        return int(ask(server, "GET", "/starlette/left").body)

    def leave(server: Running) -> int:
        before = left(server)
        with connect(server) as peer:
            peer.send(f"GET /starlette/until-gone HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        wait_for(lambda: left(server) > before, "the handler to notice")
        return left(server) - before

    assert asgi.same(leave) == 1


def test_websockets(asgi: Pair) -> None:
    def talk(server: Running) -> tuple[object, ...]:
        with dial(server, "/starlette/talk?a=1", subprotocols=["chat"]) as ws:
            told = ws.recv(20)
            ws.send("x" * 100_000)
            echoed = ws.recv(20)
            ws.send("close")
            return ws.subprotocol, told, echoed, ending(ws)

    asgi.same(talk)
