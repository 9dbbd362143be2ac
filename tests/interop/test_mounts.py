"""ASGI applications mounted in a native one; tests/frameworks/test_mounts.py has real frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from citius import App, ClientDisconnected, ConfigError, Request, WebSocket
from citius.testing import Client, WebSocketRefused


async def show(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the scope and the body."""
    body, goes_on = b"", True
    while goes_on:
        message = await receive()
        body += message.get("body", b"")
        goes_on = message.get("more_body", False)
    shown = {name: scope[name] for name in ("path", "root_path", "method", "scheme", "server")}
    text = repr((shown, scope["raw_path"], scope["query_string"], len(body))).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1"), (b"x-a", b"2")]}
    )
    await send({"type": "http.response.body", "body": text})


def mounted(app: Any, prefix: str = "/old") -> App:
    outer = App()

    @outer.get("/")
    def hello() -> str:
        return "native"

    outer.mount(prefix, app)
    return outer


@pytest.mark.parametrize("path", ["/old", "/old/", "/old/a%20b/c?q=1"])
def test_paths(path: str) -> None:
    with Client(mounted(show)) as client:
        response = client.get(path)
        raw, _, query = path.partition("?")
        decoded = raw.replace("%20", " ")
        assert response.text == repr(
            ({"path": decoded, "root_path": "/old", "method": "GET", "scheme": "http",
              "server": ("testserver", 80)}, raw.encode(), query.encode(), 0)
        )  # fmt: skip
        assert response.headers.getlist("x-a") == ["1", "2"]
        assert client.get("/").text == "native"
        assert client.get("/older").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_every_method_and_bodies(method: str) -> None:
    with Client(mounted(show)) as client:
        text = client.request(method, "/old/x", content=b"x" * 200_000).text
        assert f"'method': '{method}'" in text
        assert "200000)" in text


def test_at_the_root_routes_come_first() -> None:
    with Client(mounted(show, "/")) as client:
        assert client.get("/").text == "native"
        assert "'path': '/other', 'root_path': ''" in client.get("/other").text


def test_streams_both_ways() -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 201,
                "headers": [(b"content-type", b"text/plain")],
            }
        )
        goes_on = True
        while goes_on:
            message = await receive()
            goes_on = message["more_body"]
            await send(
                {"type": "http.response.body", "body": message["body"], "more_body": goes_on}
            )

    with Client(mounted(echo)) as client:
        response = client.post("/old/x", content=(b"x" * 10_000 for _ in range(30)))
        assert (response.status_code, len(response.content)) == (201, 300_000)


def test_an_application_hears_that_its_client_has_left() -> None:
    heard = asyncio.Event()

    async def wait(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        # "servers D3": spec_version 2.3 says that nothing happens; but a loop that never asks has to end.
        await send({"type": "http.response.body", "body": b"more", "more_body": True})
        with pytest.raises(ClientDisconnected):
            while True:
                await send({"type": "http.response.body", "body": b"more", "more_body": True})
        heard.set()

    with Client(mounted(wait)) as client:
        with client.stream("GET", "/old/x") as response:
            assert next(iter(response)) == b"begun"
        while not heard.is_set():
            client.get("/")


@pytest.mark.parametrize("begun", [False, True])
def test_an_application_that_raises(begun: bool) -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        raise ValueError("a defect")

    with Client(mounted(fail), raise_errors=False) as client:
        if begun:
            with pytest.raises(Exception, match="in the middle of a response"):
                client.get("/old/x")
        else:
            assert client.get("/old/x").status_code == 500
    if not begun:
        with Client(mounted(fail)) as client, pytest.raises(ValueError, match="a defect"):
            client.get("/old/x")


def test_messages_out_of_order_are_errors() -> None:
    async def wrong(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b""})

    with (
        Client(mounted(wrong)) as client,
        pytest.raises(RuntimeError, match="expected 'http.response.start'"),
    ):
        client.get("/old/x")


def test_an_application_without_a_response_is_an_error() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        return

    with Client(mounted(silent)) as client, pytest.raises(RuntimeError, match="without a response"):
        client.get("/old/x")


def test_lifespans_are_run_inside_the_native_one() -> None:
    order: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            scope["state"]["pool"] = "open"
            order.append("inner starts")
            await send({"type": "lifespan.startup.complete"})
            await receive()
            order.append("inner stops")
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["state"]["pool"].encode()})

    @asynccontextmanager
    async def outer(app: App) -> AsyncIterator[None]:
        order.append("outer starts")
        yield
        order.append("outer stops")

    app = App(lifespan=outer)
    app.mount("/old", inner)
    with Client(app) as client:
        assert client.get("/old").text == "open"
    assert order == ["outer starts", "inner starts", "inner stops", "outer stops"]


def test_middleware_sees_mounted_applications() -> None:
    app = mounted(show)

    @app.middleware
    async def add(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-seen"] = request.path
        return response

    with Client(app) as client:
        assert client.get("/old/x").headers["x-seen"] == "/old/x"


async def talk(scope: Any, receive: Any, send: Any) -> None:
    assert await receive() == {"type": "websocket.connect"}
    if scope["path"] == "/old/refused":
        return await send({"type": "websocket.close"})
    if scope["path"] == "/old/denied":
        await send(
            {
                "type": "websocket.http.response.start",
                "status": 402,
                "headers": [(b"x-why", b"money")],
            }
        )
        return await send({"type": "websocket.http.response.body", "body": b"pay"})
    await send(
        {
            "type": "websocket.accept",
            "subprotocol": scope["subprotocols"][0],
            "headers": [(b"x-own", b"1")],
        }
    )
    await send(
        {
            "type": "websocket.send",
            "text": f"{scope['root_path']} {scope['path']} {scope['scheme']}",
        }
    )
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") == "close":
            return await send({"type": "websocket.close", "code": 4001, "reason": "bye"})
        await send({**message, "type": "websocket.send"})
    talk.ended = message  # type: ignore[attr-defined]


def test_websockets() -> None:
    with Client(mounted(talk)) as client:
        with client.websocket("/old/x", subprotocols=["a", "b"]) as socket:
            assert (socket.subprotocol, socket.headers["x-own"]) == ("a", "1")
            assert socket.receive() == "/old /old/x ws"
            for message in ("ä", b"\0\1"):
                socket.send(message)
                assert socket.receive() == message
            socket.close(3000, "enough")
        client.get("/")
        assert talk.ended == {"type": "websocket.disconnect", "code": 3000, "reason": "enough"}  # type: ignore[attr-defined]
        with client.websocket("/old/x", subprotocols=["a"]) as socket:
            socket.receive()
            socket.send("close")
            assert list(socket) == []
            assert (socket.close_code, socket.close_reason) == (4001, "bye")


@pytest.mark.parametrize(
    ("path", "status", "body"), [("refused", 403, b""), ("denied", 402, b"pay")]
)
def test_websockets_that_are_refused(path: str, status: int, body: bytes) -> None:
    with (
        Client(mounted(talk)) as client,
        pytest.raises(WebSocketRefused) as refused,
        client.websocket(f"/old/{path}"),
    ):
        pass
    assert (refused.value.response.status_code, refused.value.response.content) == (status, body)


def test_native_websockets_are_kept() -> None:
    app = mounted(talk, "/")

    @app.websocket("/native")
    async def native(socket: WebSocket) -> None:
        await socket.send("native")

    with Client(app) as client, client.websocket("/native") as socket:
        assert socket.receive() == "native"


def test_a_native_application_below_itself_as_asgi() -> None:
    inner = App()

    @inner.get("/{name}")
    def greet(request: Request, name: str) -> str:
        return f"{name} at {request.root_path}{request.path}"

    with Client(mounted(inner.asgi())) as client:
        assert client.get("/old/ada").text == "ada at /old/ada"


def test_what_cannot_be_mounted() -> None:
    app = App()

    def wsgi(environ: Any, start_response: Any) -> list[bytes]:
        return []

    with pytest.raises(ConfigError, match="mount_wsgi"):
        app.mount("/x", wsgi)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="takes a citius.App or an ASGI application"):
        app.mount("/x", 7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="use `mount` for an ASGI"):
        app.mount_wsgi("/x", show)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="begins with a slash"):
        app.mount("x/", show)


def test_mounts_are_listed() -> None:
    patterns = [(one.method, one.pattern) for one in mounted(show).endpoints]
    assert ("*", "/old") in patterns
    assert "/old" not in mounted(show).openapi()["paths"]
