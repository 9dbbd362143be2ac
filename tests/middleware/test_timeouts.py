"""Timeouts of handlers: who is cancelled, who is left alone, and what the client gets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from citius import App, ConfigError, Request, Router, WebSocket
from citius.testing import Client, WebSocketRefused
from citius.web.middleware import CSRF, Middleware, RateLimit, Timeout
from citius.web.security import APIKey, Authenticate, Principal


def test_timeouts() -> None:
    app, ended = App(), list[str]()
    app.middleware(Timeout(0.05, routes={"/patient/{id}": 30, "/endless": None}, skip_def=True))

    @app.get("/slow")
    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")
        return "never"

    @app.get("/own")
    async def own() -> str:
        raise TimeoutError

    @app.get("/fast")
    async def fast(request: Request) -> str:
        return "fast"

    @app.get("/patient/{id}")
    async def patient(id: int) -> str:
        await asyncio.sleep(0.1)
        return "patient"

    @app.get("/endless")
    async def endless() -> str:
        return await patient(1)

    app.get("/def")(lambda: "def")
    with Client(app, raise_errors=False) as client:
        answer = client.get("/slow")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["detail"] == "no response within 0.05 s"
        assert ended == ["slow"]
        assert client.get("/own").status_code == 500
        texts = [client.get(path).text for path in ("/fast", "/patient/1", "/endless", "/def")]
        assert texts == ["fast", "patient", "patient", "def"]
        assert client.get("/nowhere").status_code == 404


def test_a_def_is_refused_or_left_alone() -> None:
    """hostile 2: what is declared holds, or the start fails."""

    def app_of(timeout: Timeout) -> App:
        app = App()
        app.middleware(timeout)
        app.get("/quick")(quick)
        return app

    def quick() -> str:
        return "quick"

    with pytest.raises(ConfigError, match=r"quick .*test_timeouts.py:\d+.*blocking=True"):
        Client(app_of(Timeout(5))).__enter__()
    # Naming the route is a declaration, whatever is left alone.
    with pytest.raises(ConfigError, match=r"Timeout of 3 s: .*quick"):
        Client(app_of(Timeout(None, routes={"/quick": 3}, skip_def=True))).__enter__()
    for timeout in (Timeout(5, skip_def=True), Timeout(5, routes={"/quick": None}), Timeout(None)):
        app = app_of(timeout)
        assert [one.limits for one in app.endpoints] == [[]]
        with Client(app) as client:
            assert client.get("/quick").text == "quick"


def test_threads_go_on_without_a_client() -> None:
    app, begun, go_on, ended = App(), threading.Event(), threading.Event(), threading.Event()
    app.middleware(Timeout(0.05))

    @app.get("/", blocking=True)
    def slow() -> str:
        begun.set()
        go_on.wait(60)
        ended.set()
        return "late"

    assert [one.limits for one in app.endpoints] == [["0.05 s"]]
    with Client(app, raise_errors=False) as client:
        # A call that no thread has taken in time never begins, and a busy machine is late.
        while not begun.is_set():
            assert client.get("/").status_code == 503
        assert not ended.is_set()
        go_on.set()
        assert ended.wait(60)
        assert any(client.get("/").text == "late" for _ in range(200))


def test_websockets_until_they_are_accepted() -> None:
    app, ended = App(), list[str]()
    app.middleware(Timeout(0.05))

    @app.websocket("/slow")
    async def slow(ws: WebSocket) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")

    @app.websocket("/accepted")
    async def accepted(ws: WebSocket) -> None:
        await ws.accept()
        await asyncio.sleep(0.15)
        await ws.send("still here")

    with Client(app) as client:
        with pytest.raises(WebSocketRefused, match="503"):
            client.websocket("/slow").__enter__()
        assert ended == ["slow"]
        with client.websocket("/accepted") as socket:
            assert socket.receive() == "still here"


NAMING: list[tuple[Middleware, str]] = [
    (Timeout(None, routes={"/item": 3}), r"Timeout\(routes=…\) names '/item'.*did you mean '/items'"),
    (RateLimit(5, 60, only=["/logn"]), r"RateLimit\(only=…\) names '/logn'.*there is no such route"),
    (CSRF(exempt=["/{id}"]), r"CSRF\(exempt=…\) names .*did you mean '/items/{id}'"),
    (Authenticate(APIKey({"k" * 20: Principal("me")}), exempt="/helth"), r"names '/helth'.*'/health'"),
]  # fmt: skip


@pytest.mark.parametrize(("middleware", "said"), NAMING, ids=[said[:12] for _, said in NAMING])
def test_routes_that_are_named_exist(middleware: Middleware, said: str) -> None:
    """A limit of a route that is misspelt would hold for nothing."""
    app, router = App(), Router(prefix="/items")

    def one(id: str) -> str:
        return id

    app.middleware(middleware)
    router.get("/")(lambda: "all")
    router.get("/{id}")(one)
    app.get("/health")(lambda: "ok")
    app.include(router)
    with pytest.raises(ConfigError, match=said):
        Client(app).__enter__()


def test_documentation_and_mounts_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"inner"})

    app, key = App(), uuid4().hex
    open_paths = ["/openapi.json", "/docs", "/files", "/inner"]
    app.middleware(Authenticate(APIKey({"k" * 20: Principal("me")}), exempt=open_paths))
    app.middleware(RateLimit(1, 3600, only=["/inner"], key=lambda request: key))
    app.static("/files", tmp_path)
    app.mount("/inner", asgi)
    with Client(app) as client:
        assert client.get("/files/a.txt").text == "a"
        assert client.get("/inner/deep/below").text == "inner"
        assert client.get("/inner").status_code == 429


async def legacy(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inner"})


def with_mount(exempt: list[str], at: str, tmp_path: Path | None) -> App:
    app = App()
    app.middleware(Authenticate(APIKey({"k" * 20: Principal("me")}), exempt=exempt))

    def own() -> str:
        return "own"

    if tmp_path is None:
        app.get(at)(own)
        app.mount(at, legacy)
    else:
        app.post(at)(own)
        app.static(at, tmp_path)
    return app


@pytest.mark.parametrize(("at", "is_static"), [("/", False), ("/files", False), ("/files", True)])
def test_a_name_of_a_route_does_not_open_what_is_mounted_at_its_path(
    at: str, is_static: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a")
    below = f"{at.rstrip('/')}/{{_path:path}}"
    directory = tmp_path if is_static else None
    said = rf"exempt=…\) names '{at}', which is the path of .*own \(.*:\d+\) and the prefix"
    with pytest.raises(ConfigError, match=said) as raised:
        Client(with_mount([at], at, directory)).__enter__()
    assert repr(below) in str(raised.value)
    page = f"{at.rstrip('/')}/a.txt"
    with Client(with_mount([below], at, directory)) as client:
        assert client.get(page).status_code == 200
        assert client.get(at, follow_redirects=False).status_code == 401
        assert client.post(at).status_code == 401
    with Client(with_mount([at, below], at, directory)) as client:
        assert client.get(page).status_code == 200
        assert (client.post if is_static else client.get)(at).text == "own"


def test_a_page_is_named_beside_a_directory_without_middleware(tmp_path: Path) -> None:
    app = App()
    app.middleware(Authenticate(APIKey({"k" * 20: Principal("me")}), exempt=["/"]))
    app.static("/", tmp_path, middleware=False)
    app.get("/")(lambda: "own")
    with Client(app) as client:
        assert client.get("/").text == "own"
        assert client.get("/other").status_code == 401


def test_a_time_is_above_zero() -> None:
    with pytest.raises(ConfigError, match="seconds above 0"):
        Timeout(0)


def test_async_generators_return_their_stream_at_once() -> None:
    """The start failed, with the advice to write the `async def` that it was."""
    app = App()
    app.middleware(Timeout(30))

    @app.get("/")
    async def lines() -> AsyncIterator[str]:
        yield "line"

    with Client(app) as client:
        assert client.get("/").text
