"""Paths by names of routes."""

import pytest
from citius import App, Router, WebSocket
from citius.testing import Client


def make_app() -> App:
    app, items, inner = App(), Router(prefix="/items"), App()

    @items.get("/{id:int}")
    def item(id: int) -> str:
        return app.url_for("item", id=id + 1)

    @items.get("/", name="items")
    def search() -> str:
        return ""

    @items.get("/of/{user}", name="items")
    def of_user(user: str) -> str:
        return user

    @inner.get("/{name}/{rest:path}")
    def file(name: str, rest: str) -> str:
        return rest

    @app.websocket("/live/{room}")
    async def live(ws: WebSocket, room: str) -> None: ...

    app.include(items)
    app.mount("/in", inner)
    return app


def test_paths() -> None:
    app = make_app()
    assert app.url_for("item", id=7) == "/items/7"
    assert app.url_for("items") == "/items"
    assert app.url_for("items", page=2, tag=["a", "b c"]) == "/items?page=2&tag=a&tag=b+c"
    assert app.url_for("items", user="a/b é") == "/items/of/a%2Fb%20%C3%A9"
    assert app.url_for("file", name="x", rest="a/b ?") == "/in/x/a/b%20%3F"
    assert app.url_for("live", room="?") == "/live/%3F"
    with Client(app) as client:
        assert client.get("/items/7").text == "/items/8"


def test_what_is_not_there() -> None:
    app = make_app()
    with pytest.raises(
        LookupError, match="no route is called 'nothing'; there are file, item, items, live"
    ):
        app.url_for("nothing")
    with pytest.raises(LookupError, match=r"the route item is at /items/\{id:int\}, got \{\}"):
        app.url_for("item")
    with pytest.raises(LookupError, match="is a segment"):
        app.url_for("live", room="")
