"""Tools: schemas from annotations, arguments checked as those of routes, results by their types."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest
from citius import App, Body, Cookie, Depends, Forbidden, Header, NotFound, Request, Unauthorized
from citius.errors import ConfigError, RpcError
from citius.mcp import Context, Image, MCPServer, Text, ToolError, ToolResult
from citius.testing import Client
from mcp_rig import STATELESS, VERSIONS, Session
from pydantic import BaseModel


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    tags: list[str] = []


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    count: int


@dataclass
class Found:
    total: int
    items: list[Item]


@dataclass
class Secretive(Found):
    secret: str = "hidden"


class Place(msgspec.Struct):
    name: str
    inner: list[Place] = []


app = App()
mcp = app.mcp("/mcp", name="tests", version="1.2.3", instructions="Be brief.")


@mcp.tool
def add(a: int, b: Annotated[int, msgspec.Meta(ge=1, description="at least one")] = 2) -> int:
    """The sum of two numbers.

    Args:
        a: The first number, which
            can be any.
    """
    return a + b


@mcp.tool("items.find", title="Find items", read_only=True)
def find(item: Item, color: Color = Color.RED, limit: Annotated[int, Body(le=100)] = 10) -> Found:
    return Secretive(limit, [item])


@mcp.tool
def order(order: Order, kind: Literal["now", "later"] = "now") -> Order:
    return order


@mcp.tool
def place(place: Place) -> Place:
    return place


@mcp.tool
async def nothing() -> None:
    return None


@mcp.tool
def many() -> list[int]:
    return [1, 2]


@mcp.tool
def wrong() -> Found:
    return {"total": "much"}  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


@mcp.tool
def whole() -> ToolResult:
    return ToolResult(["said", Text("more")], {"a": 1}, meta={"example.com/k": 1})


@mcp.tool
def untyped(what: Any) -> Any:
    return {"what": what}


@mcp.tool
def image() -> Image:
    return Image(b"png")


@mcp.tool
def fails(how: str) -> str:
    errors: dict[str, Exception] = {
        "tool": ToolError("try another"),
        "http": NotFound("no such note"),
        "rpc": RpcError("full", code=-32050, data={"left": 0}),
        "bug": KeyError("secret"),
    }
    raise errors[how]


def user(request: Request, x_user: Annotated[str, Header()]) -> str:
    if x_user == "eve":
        raise Unauthorized("who are you?", {"www-authenticate": "Bearer"})
    return x_user


def page(limit: int = 10) -> int:
    return limit


@mcp.tool
async def whoami(
    user: Annotated[str, Depends(user)],
    limit: Annotated[int, Depends(page)],
    request: Request,
    token: Annotated[str, Cookie()] = "none",
) -> str:
    return f"{user} {limit} {request.method} {token}"


closed: list[str] = []


def resource() -> Any:
    yield "open"
    closed.append("closed")


@mcp.tool
def using(resource: Annotated[str, Depends(resource)]) -> str:
    return f"{resource} {len(closed)}"


@mcp.tool(blocking=True)
def threaded() -> str:
    import threading

    return threading.current_thread().name


@pytest.fixture(scope="module")
def client():
    with Client(app, raise_errors=False) as client:
        yield client


@pytest.fixture(scope="module", params=VERSIONS)
def session(request: pytest.FixtureRequest, client: Client) -> Session:
    return Session(client, request.param)


def tool(session: Session, name: str) -> dict[str, Any]:
    return next(one for one in session.result("tools/list")["tools"] if one["name"] == name)


def test_a_schema_has_annotations_and_docstring(session: Session) -> None:
    said = tool(session, "add")
    assert said["description"] == "The sum of two numbers."
    assert said["inputSchema"] == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first number, which can be any."},
            "b": {"type": "integer", "minimum": 1, "description": "at least one", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert said["outputSchema"]["properties"] == {"result": {"type": "integer"}}


def test_a_schema_stands_alone(session: Session) -> None:
    said = tool(session, "items.find")
    assert said["title"] == "Find items"
    assert said["annotations"] == {"readOnlyHint": True}
    schema = said["inputSchema"]
    assert schema["properties"]["item"] == {"$ref": "#/$defs/Item"}
    assert schema["$defs"]["Item"]["required"] == ["name"]
    assert set(said["outputSchema"]["properties"]) == {"total", "items"}
    assert "components" not in str(said)
    assert tool(session, "place")["inputSchema"]["$defs"]["Place"]["properties"]["inner"][
        "items"
    ] == {"$ref": "#/$defs/Place"}


def test_what_is_returned_is_structured(session: Session) -> None:
    result = session.call("items.find", item={"name": "x"})
    assert result["structuredContent"] == {"total": 10, "items": [{"name": "x", "tags": []}]}
    assert result["content"] == [
        {"type": "text", "text": '{"total":10,"items":[{"name":"x","tags":[]}]}'}
    ]
    assert "isError" not in result
    assert session.call("add", a=1)["structuredContent"] == {"result": 3}
    assert session.call("many")["structuredContent"] == {"result": [1, 2]}
    assert session.call("order", order={"count": 3})["structuredContent"] == {"count": 3}
    assert session.call("untyped", what=[None])["structuredContent"] == {"what": [None]}
    assert session.call("nothing")["content"] == []
    assert session.call("image")["content"][0]["mimeType"] == "image/png"


def test_a_whole_result(session: Session) -> None:
    result = session.call("whole")
    assert [one["text"] for one in result["content"]] == ["said", "more"]
    assert result["structuredContent"] == {"a": 1}
    assert result["_meta"]["example.com/k"] == 1
    if session.version == STATELESS:
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "tests"
        assert result["resultType"] == "complete"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add", {}, "#/a: missing"),
        ("add", {"a": "1"}, "#/a: expected an integer, got a string"),
        ("add", {"a": 1.5}, "#/a"),
        ("add", {"a": True}, "#/a"),
        ("add", {"a": 1, "b": 0}, "#/b"),
        ("add", {"a": 1, "c": 0}, "#/c: unknown parameter"),
        ("items.find", {"item": {"name": ""}}, "#/item/name"),
        ("items.find", {"item": {"name": "x", "other": 1}}, "#/item"),
        ("items.find", {"item": {"name": "x"}, "color": "green"}, "#/color"),
        ("items.find", {"item": {"name": "x"}, "limit": 101}, "#/limit"),
        ("order", {"order": {"count": "many"}}, "#/order/count"),
        ("whoami", {"limit": "x"}, "#/limit"),
    ],
)
def test_arguments_that_do_not_match(
    session: Session, name: str, arguments: dict[str, Any], said: str
) -> None:
    """Since 2025-11-25 the model reads them in the result (SEP-1303)."""
    response = session.ask("tools/call", {"name": name, "arguments": arguments})
    if session.version < "2025-11-25":
        assert response["error"]["code"] == -32602
        assert said in response["error"]["message"]
    else:
        assert response["result"]["isError"] is True
        assert said in response["result"]["content"][0]["text"]


def test_a_whole_number_may_have_a_fraction(session: Session) -> None:
    """JSON Schema takes 5.0 for an integer, and so do the bodies of routes."""
    assert session.text("add", a=5.0) == "7"


def test_errors(session: Session) -> None:
    assert session.call("fails", how="tool") | {"_meta": 0, "resultType": 0} == {
        "content": [{"type": "text", "text": "try another"}], "isError": True, "_meta": 0, "resultType": 0,
    }  # fmt: skip
    assert session.text("fails", how="http") == "no such note"
    error = session.error("tools/call", {"name": "fails", "arguments": {"how": "rpc"}})
    assert error == {"code": -32050, "message": "full", "data": {"left": 0}}
    result = session.call("fails", how="bug")
    assert result["isError"] is True
    assert "secret" not in str(result)
    assert session.call("wrong")["isError"] is True
    unknown = session.send("tools/call", {"name": "other"})
    assert unknown.json()["error"]["code"] == -32602
    assert unknown.status_code == (400 if session.version == STATELESS else 200)


def test_dependencies_take_arguments_and_the_request(client: Client, session: Session) -> None:
    own = Session(client, session.version, headers={"x-user": "ann", "cookie": "token=t"})
    assert own.text("whoami") == "ann 10 POST t"
    assert own.text("whoami", limit=3) == "ann 3 POST t"
    assert "#/x-user: missing" in session.text("whoami")
    refused = Session(client, session.version, headers={"x-user": "eve"}).send(
        "tools/call", {"name": "whoami", "arguments": {}}
    )
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"


def test_dependencies_end_after_the_call(session: Session) -> None:
    before = len(closed)
    assert session.text("using") == f"open {before}"
    assert len(closed) == before + 1


def test_a_tool_in_a_thread(session: Session) -> None:
    assert session.text("threaded") != "MainThread"


# --- what protects a prompt or a resource ------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["taken", "extra"])
def test_dependencies_hold_for_completions_and_subscriptions(version: str, kind: str) -> None:
    app = App()
    mcp = app.mcp("/mcp")

    def guard(key: Annotated[str, Header(alias="x-key")] = "") -> None:
        if key != "right":
            raise Forbidden("not for you")

    extra: Any = {"dependencies": [Depends(guard)]} if kind == "extra" else {}

    def prompt(style: str, colour: Literal["red"] = "red", _: Any = Depends(guard)) -> str:
        return style

    def prompt_without(style: str, colour: Literal["red"] = "red") -> str:
        return style

    def note(id: int, _: Any = Depends(guard)) -> str:
        return "SECRET"

    def note_without(id: int) -> str:
        return "SECRET"

    mcp.prompt("styled", **extra)(prompt_without if extra else prompt)
    mcp.resource("notes://{id}", **extra)(note_without if extra else note)

    @mcp.completion("styled", "style")
    @mcp.completion("notes://{id}", "id")
    def complete(written: str) -> list[str]:
        return ["SECRET"]

    asked = [
        ({"type": "ref/prompt", "name": "styled"}, "style", "SECRET"),
        ({"type": "ref/prompt", "name": "styled"}, "colour", "red"),
        ({"type": "ref/resource", "uri": "notes://{id}"}, "id", "SECRET"),
    ]
    with Client(app) as client:
        for key, status in (("right", 200), ("wrong", 403)):
            session = Session(client, version, headers={"x-key": key})
            for ref, name, value in asked:
                params = {"ref": ref, "argument": {"name": name, "value": ""}}
                reply = session.send("completion/complete", params)
                assert reply.status_code == status
                assert (value in reply.text) == (status == 200)
            if version != STATELESS:
                reply = session.send("resources/subscribe", {"uri": "notes://1"})
                assert reply.status_code == status
                reply = session.send("resources/unsubscribe", {"uri": "notes://1"})
                assert reply.status_code == 200


def test_a_completion_whose_dependencies_need_arguments_is_refused() -> None:
    def guard(style: str) -> None: ...
    def prompt(style: str) -> str: ...
    def complete(written: str) -> list[str]: ...

    def declare(mcp: MCPServer) -> None:
        mcp.prompt("styled", dependencies=[Depends(guard)])(prompt)
        mcp.completion("styled", "style")(complete)

    assert "they would not hold" in refused(declare)


# --- declarations that cannot hold ------------------------------------------------------------------------


def refused(declare: Callable[[MCPServer], object]) -> str:
    app = App()
    with pytest.raises(ConfigError) as caught:
        declare(app.mcp("/mcp"))
        with Client(app):
            pass
    return str(caught.value)


def test_declarations_that_cannot_hold() -> None:
    def variable(*numbers: int) -> int: ...
    def context(context: Context) -> str: ...
    def data() -> bytes: ...
    def lines() -> Any: ...
    def completing(written: str) -> list[str]: ...

    assert "name its parameters" in refused(lambda mcp: mcp.tool(variable))
    assert "make it `async def`" in refused(lambda mcp: mcp.tool(context))
    assert "return Image" in refused(lambda mcp: mcp.tool(data))
    assert "there are two tools" in refused(lambda mcp: (mcp.tool(lines), mcp.tool("lines")(lines)))
    assert "expected a name" in refused(lambda mcp: mcp.tool("a b")(lines))
    assert "headers= for 'x'" in refused(lambda mcp: mcp.tool(headers={"x": "X"})(lines))
    assert "timeout" in refused(lambda mcp: cast("Any", mcp).tool(timeout=3))
    assert "expected a URI" in refused(lambda mcp: mcp.resource("notes")(lines))
    assert "the function does not take: id" in refused(lambda mcp: mcp.resource("n://{id}")(lines))
    assert "as lines(written)" in refused(lambda mcp: mcp.completion("x", "y")(lines))
    assert "no such argument" in refused(lambda mcp: mcp.completion("x", "y")(completing))
    assert "expected origins such as" in refused(
        lambda mcp: mcp.app.mcp("/b", origins=["example.com"])
    )
    assert "without parameters" in refused(lambda mcp: mcp.app.mcp("/{b}"))


def test_nothing_is_declared_while_it_is_served() -> None:
    app = App()
    server = app.mcp("/mcp")
    with Client(app), pytest.raises(ConfigError, match="can no longer change"):
        server.tool(lambda: 1)


def test_one_endpoint_model_for_an_iterator() -> None:
    def lines() -> Iterator[int]:
        yield 1

    assert "is one value" in refused(lambda mcp: mcp.tool(lines))


@pytest.mark.parametrize("arguments", [7, 1.5, "x", True, [], [1], [{"a": 1}]])
def test_arguments_that_are_no_object(session: Session, arguments: object) -> None:
    response = session.ask("tools/call", {"name": "add", "arguments": arguments})
    assert "#: expected an object" in str(response)


def test_arguments_that_are_null(session: Session) -> None:
    assert session.result("tools/call", {"name": "many", "arguments": None})["structuredContent"]
    response = session.ask("tools/call", {"name": "add", "arguments": None})
    assert "#/a: missing" in str(response)


class Account(Place):
    password: str = "SECRET"


def _returns(declared: Any, value: Any) -> Callable[..., Any]:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = declared
    return tool


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (str, Account("a")),
        (None, Account("a")),
        (Text, Account("a")),
        (list[Text], [Text("b"), Account("a")]),
        (Text | str, Account("a")),
        (str, 5),
    ],
)
def test_a_tool_of_text_or_content_sends_no_object(declared: Any, value: Any) -> None:
    """All fields were sent."""
    app = App()
    app.mcp("/mcp").tool(_returns(declared, value))
    with Client(app, raise_errors=False) as client:
        result = Session(client).call("tool")
    assert result["isError"]
    assert "SECRET" not in str(result)


@pytest.mark.parametrize(
    ("declared", "value", "texts"),
    [
        (str, "text", ["text"]),
        (None, None, []),
        (Text, Text("text"), ["text"]),
        (list[Text | str], ["one", Text("two")], ["one", "two"]),
        (ToolResult, ToolResult(["text"]), ["text"]),
    ],
)
def test_a_tool_of_text_or_content(declared: Any, value: Any, texts: list[str]) -> None:
    app = App()
    app.mcp("/mcp").tool(_returns(declared, value))
    with Client(app) as client:
        result = Session(client).call("tool")
    assert [one["text"] for one in result["content"]] == texts
    assert "structuredContent" not in result
