"""Routes as tools: a call passes all that a request of the route passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import pytest
from citius import App, Depends, File, Header, NotFound, Request, Response, Router, UploadFile
from citius.errors import ConfigError, Unauthorized
from citius.mcp import Context
from citius.testing import Client
from mcp_rig import VERSIONS, Session


class Item(msgspec.Struct):
    name: str
    tags: list[str] = []


class Page(msgspec.Struct):
    limit: int = 10
    after: str | None = None


app = App()
mcp = app.mcp("/mcp")
seen: list[str] = []


@app.middleware
async def note(request: Request, next: Any) -> Response:
    seen.append(f"{request.method} {request.path}")
    return await next(request)


def user(authorization: Annotated[str, Header()] = "") -> str:
    if authorization != "Bearer good":
        raise Unauthorized("who are you?", {"www-authenticate": "Bearer"})
    return "ann"


private = Router(prefix="/private", dependencies=[Depends(user)])


@private.middleware
async def only_of_router(request: Request, next: Any) -> Response:
    if request.header("x-blocked"):
        return Response("blocked", 451)
    return await next(request)


@private.get("/secret", tool=True)
def secret() -> str:
    return "secret"


@app.get("/items/{id:int}", tool=True, summary="Read an item")
def read_item(id: int, q: str = "", tags: list[str] = []) -> Item:  # noqa: B006
    """An item by its number.

    Args:
        q: What to look for.
    """
    if id == 404:
        raise NotFound("no such item")
    return Item(f"{id} {q}", tags)


@app.post("/items", tool="create")
def create_item(item: Item, dry: bool = False) -> dict[str, Any]:
    return {"name": item.name, "dry": dry}


@app.get("/files/{path:path}", tool=True)
def read_file(path: str) -> Response:
    if path == "image":
        return Response(b"png", 200, None, "image/png")
    return Response(path)


@app.get("/list", tool=True)
def listing(page: Page = Page(), x_tenant: Annotated[str, Header()] = "none") -> list[str]:  # noqa: B008
    return [str(page.limit), page.after or "", x_tenant]


@app.get("/fails", tool=True)
def fails() -> str:
    raise KeyError("hidden")


@app.get("/plain")
def plain() -> str:
    return "no tool"


app.include(private)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(app, raise_errors=False) as client:
        yield client


@pytest.fixture(params=VERSIONS)
def session(request: pytest.FixtureRequest, client: Client) -> Session:
    return Session(client, request.param)


def test_what_lists_say(session: Session) -> None:
    tools = {one["name"]: one for one in session.result("tools/list")["tools"]}
    assert set(tools) == {
        "secret", "read_item", "create", "read_file", "listing", "fails",
    }  # fmt: skip
    one = tools["read_item"]
    assert (one["title"], one["description"]) == ("Read an item", "An item by its number.")
    assert one["annotations"] == {"readOnlyHint": True}
    assert one["inputSchema"]["required"] == ["id"]
    assert one["inputSchema"]["properties"]["id"] == {"type": "integer"}
    assert one["inputSchema"]["properties"]["q"]["description"] == "What to look for."
    assert one["outputSchema"]["required"] == ["name"]
    assert tools["create"]["inputSchema"]["properties"]["item"] == {"$ref": "#/$defs/Item"}


def test_calls_are_requests_of_the_route(session: Session) -> None:
    result = session.call("read_item", id=7, q="a&b=c", tags=["x", "y z"])
    assert result["structuredContent"] == {"name": "7 a&b=c", "tags": ["x", "y z"]}
    assert session.call("create", item={"name": "n"}, dry=True)["structuredContent"] == {
        "name": "n", "dry": True,
    }  # fmt: skip
    assert session.text("read_file", path="a/b c%2F?x") == "a/b c%2F?x"
    assert session.call("read_file", path="image")["content"][0]["mimeType"] == "image/png"
    assert session.call("listing", page={"limit": 3})["structuredContent"] == {
        "result": ["3", "", "none"]
    }
    seen.clear()
    session.call("read_item", id=1)
    assert seen[-1] == "GET /items/1"


def test_nothing_that_protects_a_route_is_left_out(client: Client, session: Session) -> None:
    refused = session.send("tools/call", {"name": "secret", "arguments": {}})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    fields = {"authorization": "Bearer good"}
    assert Session(client, session.version, headers=fields).text("secret") == "secret"
    blocked = Session(client, session.version, headers=fields | {"x-blocked": "1"})
    result = blocked.call("secret")
    assert (result["isError"], result["content"][0]["text"]) == (True, "blocked")
    tenant = Session(client, session.version, headers={"x-tenant": "t1"})
    assert tenant.call("listing")["structuredContent"]["result"][2] == "t1"


def test_errors(session: Session) -> None:
    result = session.call("read_item", id=404)
    assert (result["isError"], result["content"][0]["text"]) == (True, "no such item")
    assert "hidden" not in str(session.call("fails"))
    assert session.call("fails")["isError"] is True
    for name, arguments, said in (
        ("read_item", {"id": 1, "other": 2}, "#/other: unknown parameter"),
        ("read_item", {}, "#/id: missing"),
        ("read_file", {"path": ".."}, "#/path"),
        ("create", {"item": {"name": 7}}, "name"),
        ("create", {}, "#/item: missing"),
        ("listing", {"page": {"limit": "x"}}, "limit"),
    ):
        response = session.ask("tools/call", {"name": name, "arguments": arguments})
        assert said in str(response), response
        assert "structuredContent" not in str(response)


def refusal(make: Callable[[App], object]) -> str:
    app = App()
    make(app)
    with pytest.raises(ConfigError) as caught, Client(app):
        pass
    return str(caught.value)


def upload(file: Annotated[UploadFile, File()]) -> str:
    return "never"


def raw(data: bytes) -> str:
    return "never"


def numbers() -> Iterator[int]:
    yield 1


def unnamed(request: Request) -> str:
    return "never"


def simple() -> str:
    return "text"


def test_routes_that_are_no_tools() -> None:
    def with_server(handler: Any, path: str = "/x") -> Any:
        def make(app: App) -> None:
            app.mcp("/mcp")
            app.post(path, tool=True)(handler)

        return make

    assert "from a form or as bytes" in refusal(with_server(upload))
    assert "from a form or as bytes" in refusal(with_server(raw))
    assert "streams" in refusal(with_server(numbers))
    assert "does not take by name" in refusal(with_server(unnamed, "/x/{id}"))
    assert "has no MCP server" in refusal(lambda app: app.get("/x", tool=True)(simple))

    def twice(app: App) -> None:
        app.mcp("/mcp").tool(simple)
        app.get("/x", tool=True)(simple)

    assert "there are two tools 'simple'" in refusal(twice)

    def of_two_routes(app: App) -> None:
        app.mcp("/mcp")
        app.get("/x", tool=True)(simple)
        app.get("/y", tool=True)(simple)

    assert "there are two tools 'simple': the second is GET /y" in refusal(of_two_routes)

    def of_two_methods(app: App) -> None:
        app.mcp("/mcp")
        app.route("/x", methods=["POST", "DELETE"], tool=True)(simple)

    assert "there are two tools 'simple': the second is DELETE /x" in refusal(of_two_methods)
    _ = Context
