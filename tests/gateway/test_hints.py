"""What is written with habits of other frameworks has an error that says what to write: newcomer C."""

from __future__ import annotations

import asyncio
import linecache
import re
import traceback
from typing import Any

import pytest
from citius import (
    App,
    ConfigError,
    Depends,
    Query,
    Request,
    Response,
    Router,
    SerialWebSocket,
    WebSocket,
)  # fmt: skip
from citius.testing import Client


@pytest.mark.parametrize("name", ["include_router", "on_event", "add_api_route", "errorhandler"])
@pytest.mark.parametrize("make", [App, Router], ids=["App", "Router"])
def test_methods_of_other_frameworks(make: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; write @?app\."):
        getattr(make(), name)


def test_other_names_have_no_hint() -> None:
    app: Any = App()
    assert not hasattr(app, "nothing_of_it")
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_it'$"):
        _ = app.nothing_of_it


def test_the_lines_that_make_arguments_are_in_tracebacks() -> None:
    app = App()
    lines: list[str] = []

    def fails() -> int:
        lines.extend(traceback.format_stack())
        raise KeyError

    @app.get("/")
    def handler(a: int = Query(1), b: int = Depends(fails)) -> None: ...

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 500
    (frame,) = [one for one in lines if "<arguments of " in one]
    assert "handler>" in frame
    assert re.search(r"v\d = n\d\(\)$", frame.strip())
    assert any("handler>" in name for name in linecache.cache)


def test_a_duplicate_route_says_where_the_other_is() -> None:
    app = App()

    @app.get("/items/{id}")
    def first(id: str) -> None: ...

    @app.get("/items/{name}")
    def second(name: str) -> None: ...

    with pytest.raises(
        ConfigError, match=r"second .*test_hints.py:\d+.*the other is .*first .*test_hints"
    ):
        Client(app)


def test_a_method_without_an_object() -> None:
    class Views:
        def get(self, id: int) -> None: ...

    app = App()
    app.get("/")(Views.get)
    with pytest.raises(ConfigError, match=r"Views.get .*app.get\(path\)\(object.method\)"):
        Client(app)


def test_a_websocket_of_a_def() -> None:
    app = App()

    @app.websocket("/")
    def talk(ws: WebSocket) -> None: ...

    with pytest.raises(ConfigError, match="SerialWebSocket; annotate that, or make it `async def`"):
        Client(app)


def test_url_for_with_two_handlers_of_a_name() -> None:
    app = App()

    def items() -> None: ...

    app.get("/a")(items)
    app.get("/b")(items)
    assert app.url_for("items") == "/a"

    def other() -> None: ...

    other.__name__ = "items"
    app.get("/c")(other)
    with pytest.raises(LookupError, match="give one of them name="):
        app.url_for("items")


def test_an_app_under_a_server_of_asgi() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    asyncio.run(App()({"type": "lifespan"}, receive, send))
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert "app.asgi()" in sent[0]["message"]
    with pytest.raises(TypeError, match=r"app.asgi\(\)"):
        asyncio.run(App()({"type": "http"}, receive, send))


def test_attributes_of_other_frameworks_requests() -> None:
    """newcomer C: a plain AttributeError did not say what to write."""
    app, said = App(), list[str]()
    names = {
        "query_params": "it is called query",
        "url_for": "request.app.url_for",
        "data": "body()",
    }
    of_sockets = {"send_text": "write await ws.send", "receive_json": "await ws.receive()"}

    def ask(value: Any, name: str) -> None:
        assert not hasattr(value, name)
        with pytest.raises(AttributeError) as caught:
            getattr(value, name)
        said.append(str(caught.value))

    @app.get("/")
    def handler(request: Request) -> None:
        for name in names:
            ask(request, name)
        assert not hasattr(request, "nothing_of_it")
        ask(response := Response("x"), "set_cookie")
        assert not hasattr(response, "nothing_of_it")

    @app.websocket("/ws")
    async def socket(ws: WebSocket) -> None:
        for name in of_sockets:
            ask(ws, name)
        await ws.send("done")

    @app.websocket("/serial")
    def serial(ws: SerialWebSocket) -> None:
        ask(ws, "send_text")
        ws.send("done")

    with Client(app) as client:
        client.get("/")
        for path in ("/ws", "/serial"):
            with client.websocket(path) as ws:
                assert ws.receive() == "done"
    of_responses = [("set_cookie", "response.headers.set_cookie")]
    expected = [
        *names.items(),
        *of_responses,
        *of_sockets.items(),
        ("send_text", "; write ws.send"),
    ]
    for text, (name, hint) in zip(said, expected, strict=True):
        assert f"no attribute {name!r}; " in text
        assert hint in text
