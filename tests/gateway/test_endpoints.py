"""What is known of a route at the start, and what is derived from it: routers, ``citius routes``."""

import json
import runpy
from pathlib import Path
from typing import Annotated

import pytest
from citius import App, ConfigError, Depends, Request, Router, WebSocket
from citius.cli import cli
from citius.testing import Client
from citius.web.application.listing import HEADINGS, lines, values
from citius.web.middleware import RateLimit, Timeout
from citius.web.security import APIKey, Authenticate, Bearer, Principal, Requires
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
        ["METHOD", "PATH"],
        ["GET", "/v1/users"],
        ["POST", "/v1/users/inner/{id:int}"],
        ["WEBSOCKET", "/v1/users/live"],
        ["RPC", "add"],
    ]
    assert "store (async)" in listed[2]
    assert listed[2].endswith("user          streamed body, body 100 bytes")
    assert values(make_app().endpoints)[0]["parameters"] == [
        {"name": "page", "in": "query", "required": False}
    ]


def key_of(name: str) -> Principal | None:
    return Principal(name)


def guarded_app() -> App:
    app = App()
    key = APIKey(key_of)
    app.middleware(Authenticate(Bearer(key_of), exempt=["/health"]))
    app.middleware(RateLimit(1000, 60, name="listed"))
    app.middleware(Timeout(5, routes={"/slow/{name}": 60}))

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.get("/slow/{name}")
    async def slow(
        name: str, who: Annotated[Principal, Depends(Requires(key, "read", "write"))]
    ) -> str:
        return who.id

    app.rpc(deadline_s=2.5)(health)
    return app


def test_guards_and_limits() -> None:
    health, slow, procedure = values(guarded_app().endpoints)
    assert (health["guards"], health["limits"]) == ([], ["1000/60 s"])
    assert slow["guards"] == [
        {"name": "bearer", "scopes": []},
        {"name": "apiKey", "scopes": ["read", "write"]},
    ]
    assert slow["limits"] == ["1000/60 s", "60 s"]
    assert procedure["limits"] == ["2.5 s"]
    row = lines(guarded_app().endpoints)[2]
    assert "bearer, apiKey: read write" in row


def test_guards_of_middleware_are_documented() -> None:
    paths = guarded_app().openapi()["paths"]
    assert "security" not in paths["/health"]["get"]
    wanted = [{"bearer": [], "apiKey": ["read", "write"]}]
    assert paths["/slow/{name}"]["get"]["security"] == wanted


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_a_table_fits_the_terminal_and_loses_nothing(columns: int) -> None:
    endpoints = [*make_app().endpoints, *guarded_app().endpoints]
    whole, narrow = lines(endpoints), lines(endpoints, columns)
    assert max(map(len, narrow)) <= max(columns, 68)
    assert sorted("".join("".join(narrow).split())) == sorted("".join("".join(whole).split()))
    # The columns begin at the same place in every line.
    starts = [narrow[0].index(heading[:8]) for heading in HEADINGS]
    assert all(
        line[start - 2 : start].isspace() for line in narrow for start in starts[1:] if line[start:]
    )


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed_shop.py").write_text(
        "from citius import App\napp = App()\n@app.get('/x')\ndef x(): return 1\n"
    )
    (tmp_path / "listed_asgi.py").write_text("async def app(scope, receive, send): ...\n")
    runner = CliRunner()
    done = runner.invoke(cli, ["routes", "listed_shop:app"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[1].split() == ["GET", "/x", "x", "listed_shop.py:3"]
    done = runner.invoke(cli, ["routes", "--json", "listed_shop:app"])
    assert json.loads(done.output)[0]["path"] == "/x"
    done = runner.invoke(cli, ["routes", "listed_asgi:app"])
    assert done.exit_code == 2
    assert "is no citius.App" in done.output


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("Annotated[int, Query(1, 2)]", "TypeError: Query"),
        ("Annotated[int, Query(le=1 / 0)]", "ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("named", ["items", "Items"])
def test_an_annotation_that_raises_is_named(
    named: str, annotation: str, wanted: str, tmp_path: Path
) -> None:
    (tmp_path / "annotated.py").write_text(
        "from __future__ import annotations\n"
        "from citius import *\n"
        "from typing import Annotated\n"
        f"def items(first: int, limit: {annotation} = 1) -> None: ...\n"
        f"class Items:\n    def __init__(self, limit: {annotation}) -> None: ...\n"
    )
    found = runpy.run_path(str(tmp_path / "annotated.py"))[named]
    app = App()
    app.get("/", dependencies=[Depends(found)])(lambda: "")
    with pytest.raises(
        ConfigError, match=rf"{named} \(.*annotated\.py:\d+\).*{wanted}.*in limit: Annotated"
    ):
        Client(app)
