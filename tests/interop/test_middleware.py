"""ASGI middleware in a native application; tests/frameworks/test_asgi_middleware.py has that of others."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from citius import App, ConnectionClosed, Request, Response, WebSocket, file_response
from citius.testing import Client, WebSocketRefused
from citius.web.interop import asgi_scope
from rig import wait_for

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


class Plain:
    """Pass everything on, and write down what passes."""

    def __init__(self, app: Any, seen: list[Any]) -> None:
        self.app = app
        self.seen = seen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            self.seen.append(message)
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-seen", b"1"))
            await send(message)

        try:
            await self.app(scope, receive, note)
        except Exception as error:
            self.seen.append(error)
            raise


class Item(msgspec.Struct):
    name: str


def make(seen: list[Any]) -> App:
    app = App()
    app.add_middleware(Plain, seen)

    @app.get("/text")
    def text() -> str:
        return "ä"

    @app.get("/item")
    async def item() -> Item:
        return Item("a")

    @app.get("/nothing")
    def nothing() -> None: ...

    @app.get("/stream")
    async def stream() -> Response:
        async def pieces() -> AsyncIterator[str]:
            yield "a"
            yield "b"

        return Response(pieces(), content_type="text/plain")

    @app.get("/threads", blocking=True)
    def threads() -> Response:
        def pieces() -> Iterator[bytes]:
            yield b"a"
            yield b"b"

        return Response(pieces(), content_type="text/plain")

    @app.get("/file")
    def file() -> Response:
        return file_response(Path(__file__))

    @app.get("/broken")
    def broken() -> None:
        raise ValueError("a defect")

    @app.post("/echo")
    def echo(request: Request) -> bytes:
        return request.body()

    return app


@pytest.mark.parametrize(
    "path", ["/text", "/item", "/nothing", "/stream", "/threads", "/file", "/none"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_responses_are_those_without_middleware(path: str, method: str) -> None:
    bare = make([])
    bare._middleware.clear()
    with Client(make([])) as client, Client(bare) as other:
        ours, theirs = client.request(method, path), other.request(method, path)
        headers = dict(ours.headers)
        assert headers.pop("x-seen") == "1"
        assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
        assert headers == dict(theirs.headers) | (
            {"date": headers["date"]} if "date" in headers else {}
        )


def test_ranges_of_files_pass() -> None:
    with Client(make([])) as client:
        response = client.get("/file", headers={"range": "bytes=0-9"})
        assert (response.status_code, len(response.content)) == (206, 10)


def test_an_exception_is_heard_after_its_response() -> None:
    seen: list[Any] = []
    with Client(make(seen), raise_errors=False) as client:
        assert client.get("/broken").status_code == 500
    assert [one["status"] for one in seen if isinstance(one, dict) and "status" in one] == [500]
    assert isinstance(seen[-1], ValueError)


def test_bodies_can_be_read_by_both() -> None:
    class Reads:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            message = await receive()
            assert message == {"type": "http.request", "body": b"abc", "more_body": False}
            await self.app(scope, receive, send)

    app = make([])
    app.add_middleware(Reads)
    with Client(app) as client:
        assert client.post("/echo", content=b"abc").content == b"abc"


def test_scope_and_context_reach_the_handler() -> None:
    class Session:
        def __init__(self, app: Any, *, name: str) -> None:
            self.app, self.name = app, name

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            token = user.set(self.name)
            try:
                await self.app({**scope, "session": {"user": self.name}}, receive, send)
            finally:
                user.reset(token)

    app = App()
    app.add_middleware(Session, name="ada")

    @app.get("/")
    def show(request: Request) -> Any:
        scope = asgi_scope(request)
        assert scope is not None
        return [scope["session"]["user"], user.get()]

    @app.get("/async")
    async def show_async(request: Request) -> Any:
        return show(request)

    with Client(app) as client:
        assert client.get("/").json() == ["ada", "ada"]
        assert client.get("/async").json() == ["ada", "ada"]
        assert user.get() == "nobody"


def test_it_may_respond_itself() -> None:
    class Gate:
        def __init__(self, app: Any) -> None:
            pass

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    app = make([])
    app.add_middleware(Gate)
    with Client(app) as client:
        assert client.get("/text").status_code == 403


def test_native_middleware_and_this_keep_their_order() -> None:
    order: list[str] = []
    app = App()

    class Named:
        def __init__(self, app: Any, name: str) -> None:
            self.app, self.name = app, name

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            order.append(self.name)
            await self.app(scope, receive, send)

    app.add_middleware(Named, "first")

    @app.middleware
    async def second(request: Request, call_next: Any) -> Any:
        order.append("second")
        return await call_next(request)

    app.add_middleware(Named, "third")

    @app.get("/")
    def hello() -> str:
        return "hello"

    with Client(app) as client:
        assert client.get("/").text == "hello"
    assert order == ["first", "second", "third"]


def test_without_asgi_middleware_there_is_no_scope() -> None:
    app = App()

    @app.get("/")
    def show(request: Request) -> bool:
        return asgi_scope(request) is None

    with Client(app) as client:
        assert client.get("/").json() is True


class Door:
    """Refuse, answer or change what is asked for, as ASGI middleware does it with WebSockets."""

    def __init__(self, app: Any, seen: list[str]) -> None:
        self.app, self.seen = app, seen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        self.seen.append(
            f"{scope['type']} {scope['scheme']} {scope['path']} {scope['subprotocols']}"
        )
        what = scope["query_string"].decode()
        if what == "raise":
            raise ValueError("a defect")
        if what == "nothing":
            return None
        if what in ("close", "respond", "own"):
            assert await receive() == {"type": "websocket.connect"}
        if what == "close":
            return await send({"type": "websocket.close", "code": 1008})
        if what == "respond":
            start = {
                "type": "websocket.http.response.start",
                "status": 402,
                "headers": [(b"x-why", b"m")],
            }
            await send(start)
            return await send({"type": "websocket.http.response.body", "body": b"pay"})
        if what == "own":
            await send({"type": "websocket.accept"})
            return await send({"type": "websocket.close", "code": 4401, "reason": "who"})
        token = user.set("ada")
        try:
            await self.app({**scope, "session": {"user": "ada"}}, receive, send)
        finally:
            user.reset(token)
            self.seen.append("after")


def with_sockets(seen: list[str]) -> App:
    app = App()
    app.add_middleware(Door, seen)

    @app.websocket("/chat")
    async def chat(ws: WebSocket) -> Response | None:
        scope = asgi_scope(ws.request)
        assert scope is not None
        if "inner" in ws.query:
            return Response("inner", 451)
        await ws.accept("b")
        await ws.send(f"{scope['session']['user']} {user.get()}")
        async for message in ws:
            await ws.send(message)
            if message == "end":
                return None
        seen.append("handler saw the end")
        return None

    return app


def refusal(client: Client, path: str) -> tuple[int, str]:
    with pytest.raises(WebSocketRefused) as caught, client.websocket(path):
        pass
    return caught.value.response.status_code, caught.value.response.text


def test_it_is_called_for_websockets() -> None:
    seen: list[str] = []
    with Client(with_sockets(seen)) as client:
        with client.websocket("/chat", subprotocols=["a", "b"]) as ws:
            assert ws.subprotocol == "b"
            assert ws.receive() == "ada ada"
            ws.send("x")
            assert ws.receive() == "x"
            ws.send("end")
            assert ws.receive() == "end"
        assert seen == ["websocket ws /chat ['a', 'b']", "after"]


def test_it_refuses_websockets() -> None:
    seen: list[str] = []
    with Client(with_sockets(seen), raise_errors=False) as client:
        assert refusal(client, "/chat?close") == (403, "")
        assert refusal(client, "/chat?respond") == (402, "pay")
        assert refusal(client, "/chat?inner") == (451, "inner")
        assert refusal(client, "/chat?raise")[0] == 500
        assert refusal(client, "/chat?nothing")[0] == 500
        with client.websocket("/chat?own") as ws:
            with pytest.raises(ConnectionClosed):
                ws.receive()
            assert ws.close_code == 4401


def test_a_client_that_leaves_ends_the_handler_in_it() -> None:
    seen: list[str] = []
    with Client(with_sockets(seen)) as client:
        with client.websocket("/chat", subprotocols=["b"]) as ws:
            assert ws.receive() == "ada ada"
        wait_for(lambda: "after" in seen, "the end of the handler")
    assert seen[1:] == ["handler saw the end", "after"]


def test_two_around_a_websocket_keep_their_order() -> None:
    order: list[str] = []

    class Named:
        def __init__(self, app: Any, name: str) -> None:
            self.app, self.name = app, name

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            order.append(f"{self.name} {scope.get('by')}")
            await self.app({**scope, "by": self.name}, receive, send)

    app = App()
    app.add_middleware(Named, "first")

    @app.connection_middleware
    async def second(connection: Any, call_next: Any) -> Any:
        order.append("second")
        return await call_next(connection)

    app.add_middleware(Named, "third")

    @app.websocket("/w")
    async def in_it(ws: WebSocket) -> None:
        await ws.send("in")

    with Client(app) as client, client.websocket("/w") as ws:
        assert ws.receive() == "in"
    assert order == ["first None", "second", "third first"]
