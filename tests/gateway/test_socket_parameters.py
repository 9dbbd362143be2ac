"""Parameters and dependencies of WebSocket handlers: read as those of routes, without a body."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import msgspec
import pytest
from citius import (
    App,
    ConfigError,
    Cookie,
    Depends,
    Form,
    Header,
    Query,
    Request,
    Router,
    SerialWebSocket,
    Unauthorized,
    WebSocket,
)
from citius.testing import Client, WebSocketRefused

log: list[str] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    log.clear()


class Filters(msgspec.Struct):
    limit: Annotated[int, msgspec.Meta(ge=1)] = 10
    tag: list[str] = []


def user(key: Annotated[str | None, Header(alias="x-key")] = None) -> str:
    if key is None:
        raise Unauthorized("no key")
    return key


async def connection() -> AsyncIterator[str]:
    log.append("open")
    try:
        yield "connection"
    finally:
        log.append("closed")


def session() -> Iterator[str]:
    log.append("begin")
    try:
        yield "session"
    finally:
        log.append("end")


def received(handler: Callable[..., Any], target: str, *, path: str = "/", **more: Any) -> Any:
    """What a handler sends first."""
    app = App()
    app.websocket(path)(handler)
    with Client(app) as client, client.websocket(target, **more) as socket:
        return msgspec.json.decode(socket.receive())


def refused(handler: Callable[..., Any], target: str) -> int:
    app = App()
    app.websocket("/")(handler)
    with (
        Client(app) as client,
        pytest.raises(WebSocketRefused) as caught,
        client.websocket(target),
    ):
        pass
    return caught.value.response.status_code


class TestParameters:
    def test_every_source(self) -> None:
        async def handler(
            ws: WebSocket,
            id: int,
            request: Request,
            filters: Annotated[Filters, Query()],
            page: int = 1,
            *,
            x_key: Annotated[str, Header()],
            session: Annotated[str, Cookie()] = "none",
        ) -> None:
            assert ws.request is request
            ws.send_json([id, filters.limit, filters.tag, page, x_key, session])

        headers = {"x-key": "k", "cookie": "session=s"}
        target = "/items/7?limit=3&tag=a&tag=b&page=2"
        expected = [7, 3, ["a", "b"], 2, "k", "s"]
        assert received(handler, target, path="/items/{id}", headers=headers) == expected

    def test_in_a_thread(self) -> None:
        def handler(ws: SerialWebSocket, page: int) -> None:
            ws.send_json(page)

        assert received(handler, "/?page=2") == 2

    @pytest.mark.parametrize("serial", [False, True])
    def test_mistakes_refuse_the_handshake(self, serial: bool) -> None:
        async def handler(ws: WebSocket, page: int) -> None: ...
        def in_thread(ws: SerialWebSocket, page: int) -> None: ...

        chosen = in_thread if serial else handler
        assert refused(chosen, "/") == 422
        assert refused(chosen, "/?page=x") == 422

    def test_a_body_is_none(self) -> None:
        async def record(ws: WebSocket, filters: Filters) -> None: ...
        async def form(ws: WebSocket, name: Annotated[str, Form()]) -> None: ...

        for handler in (record, form):
            app = App()
            app.websocket("/")(handler)
            with pytest.raises(ConfigError, match="has no body"):
                Client(app)


class TestDependencies:
    def test_values_and_what_follows(self) -> None:
        def both(
            name: Annotated[str, Depends(user)], link: Annotated[str, Depends(connection)]
        ) -> list[str]:
            return [name, link]

        async def handler(
            ws: WebSocket,
            of_both: Annotated[list[str], Depends(both)],
            of_session: Annotated[str, Depends(session)],
        ) -> None:
            log.append("handler")
            ws.send_json([*of_both, of_session])
            async for _ in ws:
                log.append("message")

        app = App()
        app.websocket("/")(handler)
        with Client(app) as client, client.websocket("/", headers={"x-key": "k"}) as socket:
            assert msgspec.json.decode(socket.receive()) == ["k", "connection", "session"]
            socket.send("x")
        assert log == ["open", "begin", "handler", "message", "end", "closed"]

    def test_in_a_thread(self) -> None:
        def handler(ws: SerialWebSocket, value: Annotated[str, Depends(session)]) -> None:
            ws.send_json(value)

        assert received(handler, "/") == "session"
        assert log == ["begin", "end"]

    def test_the_socket_itself(self) -> None:
        async def accepted(ws: WebSocket) -> str:
            await ws.accept(subprotocol="v1")
            return "accepted"

        async def handler(ws: WebSocket, how: Annotated[str, Depends(accepted)]) -> None:
            ws.send_json(how)

        assert received(handler, "/", subprotocols=["v1"]) == "accepted"

    def test_those_of_routers_and_routes_refuse(self) -> None:
        router = Router(prefix="/in", dependencies=[Depends(user)])
        app = App()

        @router.websocket("/a")
        async def inner(ws: WebSocket) -> None:
            await ws.send("inner")

        @app.websocket("/b", dependencies=[Depends(user)])
        async def outer(ws: WebSocket) -> None:
            await ws.send("outer")

        app.include(router)
        with Client(app) as client:
            for path, expected in (("/in/a", "inner"), ("/b", "outer")):
                with pytest.raises(WebSocketRefused) as caught, client.websocket(path):
                    pass
                assert caught.value.response.status_code == 401
                with client.websocket(path, headers={"x-key": "k"}) as socket:
                    assert socket.receive() == expected

    def test_overrides(self) -> None:
        async def handler(ws: WebSocket, name: Annotated[str, Depends(user)]) -> None:
            ws.send_json(name)

        app = App()
        app.websocket("/")(handler)
        app.dependency_overrides[user] = lambda: "somebody"
        with Client(app) as client, client.websocket("/") as socket:
            assert socket.receive() == '"somebody"'

    def test_a_thread_does_not_await(self) -> None:
        def handler(ws: SerialWebSocket, link: Annotated[str, Depends(connection)]) -> None: ...

        app = App()
        app.websocket("/")(handler)
        with pytest.raises(ConfigError, match="both `async def`"):
            Client(app)
