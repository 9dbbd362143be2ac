"""What is known of a route at the start, and what is derived from it: routers, ``citius routes``."""

import json
from pathlib import Path
from typing import Annotated

import pytest
from citius import App, ConfigError, Depends, Request, Router, WebSocket
from citius.cli import cli
from citius.testing import Client
from citius.web.listing import lines, values
from click.testing import CliRunner


def user() -> str:
    return "x"


def make_app() -> App:
    app, users = (
        App(tags=["all"]),
        Router(prefix="/users", tags=["users"], dependencies=[Depends(user)]),
    )
    inner = Router(prefix="/inner")

    @inner.post("/{id:int}", body_bytes_max=100, stream=True)
    async def store(id: int, request: Request) -> None: ...

    @users.get("/")
    def everyone(name: Annotated[str, Depends(user)], page: int = 1) -> list[str]:
        return [name]

    @users.websocket("/live")
    async def live(ws: WebSocket) -> None: ...

    @app.rpc
    def add(a: int, b: int) -> int:
        return a + b

    users.include(inner)
    app.include(users, prefix="/v1")
    mounted = App()
    mounted.include(Router())
    app.mount("/in", mounted)
    return app


def test_everything_is_an_endpoint() -> None:
    endpoints = {one.pattern: one for one in make_app().endpoints}
    assert set(endpoints) == {"/v1/users", "/v1/users/inner/{id:int}", "/v1/users/live", "add"}
    everyone = endpoints["/v1/users"]
    assert (everyone.method, everyone.kind, everyone.name) == ("GET", "def", "everyone")
    assert everyone.operation.tags == ("all", "users")
    assert [one.call for one in everyone.dependencies] == [user]
    assert [(p.name, p.source) for p in everyone.inputs] == [("page", "query")]
    assert everyone.where.startswith("make_app.<locals>.everyone (")
    assert endpoints["/v1/users/live"].protocol == "websocket"
    assert [p.source for p in endpoints["add"].parameters] == ["call", "call"]


def test_included_routes_are_served() -> None:
    app = make_app()
    with Client(app) as client:
        assert client.get("/v1/users").json() == ["x"]
        assert client.get("/users").status_code == 404
        with pytest.raises(ConfigError, match="can no longer change"):
            app.include(Router())


def test_what_cannot_be_included() -> None:
    router = Router()
    with pytest.raises(ConfigError, match="use `mount`"):
        router.include(App())
    with pytest.raises(ConfigError, match=r"takes a citius\.Router, got 7"):
        router.include(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot include itself"):
        router.include(router)
    with pytest.raises(ConfigError, match="begins with a slash"):
        Router(prefix="users")


def test_lines_and_values() -> None:
    listed = lines(make_app().endpoints)
    assert [line.split()[:2] for line in listed] == [
        ["GET", "/v1/users"],
        ["POST", "/v1/users/inner/{id:int}"],
        ["WEBSOCKET", "/v1/users/live"],
        ["RPC", "add"],
    ]
    assert "async, depends on user, streamed body, body of at most 100 bytes" in listed[1]
    assert values(make_app().endpoints)[0]["parameters"] == [
        {"name": "page", "in": "query", "required": False}
    ]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed_shop.py").write_text(
        "from citius import App\napp = App()\n@app.get('/x')\ndef x(): return 1\n"
    )
    (tmp_path / "listed_asgi.py").write_text("async def app(scope, receive, send): ...\n")
    runner = CliRunner()
    done = runner.invoke(cli, ["routes", "listed_shop:app"])
    assert done.exit_code == 0, done.output
    assert done.output.split()[:3] == ["GET", "/x", "x"]
    done = runner.invoke(cli, ["routes", "--json", "listed_shop:app"])
    assert json.loads(done.output)[0]["path"] == "/x"
    done = runner.invoke(cli, ["routes", "listed_asgi:app"])
    assert done.exit_code == 2
    assert "is no citius.App" in done.output
