"""The OpenAPI document: what it says, what an outside validator and a fuzzer say of it; the pages."""

import dataclasses
import enum
import gzip
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import urljoin
from uuid import UUID

import msgspec
import pydantic
import pytest
from citius import (
    App,
    Body,
    Cookie,
    Depends,
    File,
    Form,
    Header,
    NotFound,
    OpenAPI,
    Query,
    Response,
    Router,
    UploadFile,
    WebSocket,
)
from citius import (
    Path as InPath,
)
from citius.cli import cli
from citius.testing import Client
from click.testing import CliRunner
from openapi_spec_validator import OpenAPIV31SpecValidator

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(msgspec.Struct):
    """Something that is sold."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
    price: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    color: Color | None = None
    tags: list[str] = []


class Stored(Item, kw_only=True):
    id: int


class Filters(msgspec.Struct):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    order: Literal["up", "down"] | None = None


class Conflict(msgspec.Struct):
    reason: str


class Key:
    """A security scheme, as citius.web.security has them."""

    name = "key"
    openapi = {"type": "apiKey", "in": "header", "name": "x-key"}  # noqa: RUF012

    def __call__(
        self, key: Annotated[str, Header(alias="x-key", include_in_schema=False)] = "nobody"
    ) -> str:
        return key


def make_app(**about: Any) -> App:
    app = App(openapi=OpenAPI(title="Shop", version="2.0", description="A *shop*.", **about))
    items, stored = Router(prefix="/items", tags=["items"]), dict[int, Stored]()

    @items.get("/")
    def search(
        filters: Annotated[Filters, Query()],
        q: Annotated[str | None, Query(description="what to look for", examples=["tea"])] = None,
        user_agent: Annotated[str, Header()] = "",
        session: Annotated[int | None, Cookie(ge=0)] = None,
    ) -> list[Stored]:
        """Find items.

        The newest come last.
        """
        return list(stored.values())[: filters.limit]

    @items.post("/", status_code=201, responses={409: Conflict}, summary="Add an item")
    def add(item: Item) -> Stored | Response:
        if len(stored) >= 100:
            return Response({"reason": "full"}, 409)
        made = Stored(item.name, item.price, item.color, item.tags, id=len(stored) + 1)
        stored[made.id] = made
        return made

    @items.get("/{id:int}")
    def item(id: int) -> Stored:
        if id not in stored:
            raise NotFound(f"no item {id}")
        return stored[id]

    @items.put("/{id:int}", deprecated=True, operation_id="replace")
    async def put(
        id: Annotated[int, InPath(ge=1)], item: Item, key: Annotated[str, Depends(Key())]
    ) -> Stored:
        raise NotFound(f"no item {id}")

    @items.delete("/{id:int}")
    def delete(id: int) -> None: ...

    @app.post("/forms")
    def form(
        name: Annotated[str, Form(max_length=9)], age: Annotated[int, Form()] = 0
    ) -> dict[str, int]:
        return {name: age}

    @app.post("/files")
    def file(file: Annotated[UploadFile, File(description="a picture")]) -> int:
        return len(file.data)

    @app.post("/count")
    def count(value: Annotated[int, Body(ge=0)]) -> int:
        return value

    @app.get("/things/{id}/{_rest:path}")
    def thing(id: UUID) -> str:
        return str(id)

    @app.get("/ticks")
    async def ticks() -> AsyncIterator[str]:
        yield "tick"

    @app.get("/hidden", include_in_schema=False)
    def hidden() -> str:
        return ""

    @app.websocket("/live/{id:int}")
    async def live(ws: WebSocket, id: int) -> None: ...

    @app.rpc
    def total(values: list[int]) -> int:
        return sum(values)

    app.include(items)
    return app


def test_an_outside_validator_accepts_it() -> None:
    made = make_app().openapi()
    OpenAPIV31SpecValidator(json.loads(json.dumps(made))).validate()
    OpenAPIV31SpecValidator(App().openapi()).validate()


def test_what_it_says() -> None:
    made = make_app(servers=["https://shop.example"], tags={"items": "What is sold"}).openapi()
    assert made["info"] == {"title": "Shop", "version": "2.0", "description": "A *shop*."}
    assert made["servers"] == [{"url": "https://shop.example"}]
    assert "/hidden" not in made["paths"]
    search = made["paths"]["/items"]["get"]
    assert search["description"].startswith("Find items.\n\nThe newest")
    assert (search["summary"], search["tags"], search["operationId"]) == (
        "Search",
        ["items"],
        "search",
    )
    parameters = {(p["in"], p["name"]): p for p in search["parameters"]}
    assert parameters["query", "limit"]["schema"] == {
        "type": "integer", "minimum": 1, "maximum": 100, "default": 10,
    }  # fmt: skip
    assert parameters["query", "q"]["description"] == "what to look for"
    assert parameters["query", "q"]["examples"] == {"1": {"value": "tea"}}
    assert parameters["header", "user-agent"]["schema"]["type"] == "string"
    assert parameters["cookie", "session"]["schema"] == {"type": "integer", "minimum": 0}
    add = made["paths"]["/items"]["post"]
    assert set(add["responses"]) == {"201", "409", "422", "default"}
    assert add["responses"]["409"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Conflict"
    }
    assert add["requestBody"]["required"] is True
    assert add["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Item"
    }
    put = made["paths"]["/items/{id}"]["put"]
    assert (put["deprecated"], put["operationId"]) == (True, "replace")
    assert put["security"] == [{"key": []}]
    assert made["components"]["securitySchemes"] == {"key": Key.openapi}
    assert put["parameters"][0]["schema"] == {"type": "integer", "minimum": 1}
    assert set(made["paths"]["/items/{id}"]["delete"]["responses"]) == {"204", "422", "default"}
    assert set(made["paths"]["/count"]["post"]["requestBody"]["content"]) == {
        "application/json", "application/msgpack", "text/plain",
    }  # fmt: skip
    file = made["paths"]["/files"]["post"]["requestBody"]["content"]["multipart/form-data"][
        "schema"
    ]
    assert file["properties"]["file"] == {
        "type": "string", "format": "binary", "description": "a picture",
    }  # fmt: skip
    names = [p["name"] for p in made["paths"]["/things/{id}/{_rest}"]["get"]["parameters"]]
    assert {"id", "_rest"} <= set(names)
    assert made["x-websockets"][0]["path"] == "/live/{id:int}"
    assert made["x-procedures"][0]["name"] == "total"
    assert made["components"]["schemas"]["Item"]["description"] == "Something that is sold."


class TestPages:
    def test_off_unless_wanted(self) -> None:
        with Client(make_app()) as client:
            assert client.get("/openapi.json").status_code == client.get("/docs").status_code == 404

    def test_on(self) -> None:
        app = make_app(enabled=True)
        with Client(app) as client:
            document = client.get("/openapi.json")
            assert document.headers["content-type"] == "application/json"
            assert document.json() == json.loads(json.dumps(app.openapi()))
            page = client.get("/docs")
            assert page.headers["content-type"].startswith("text/html")
            assert "//" not in page.text.replace("</", "")  # nothing from elsewhere
            assert "url: 'openapi.json'" in client.get("/docs/start.js").text
            packed = client.get("/docs/swagger-ui-bundle.js", headers={"accept-encoding": "gzip"})
            assert packed.headers["content-encoding"] == "gzip"
            plain = client.get("/docs/swagger-ui-bundle.js")
            assert "content-encoding" not in plain.headers
            assert gzip.decompress(packed.content) == plain.content
            assert client.get("/docs/swagger-ui.css").status_code == 200

    def test_elsewhere_and_paths_of_the_application_stay(self) -> None:
        app = App(openapi=OpenAPI(enabled=True, path="/api/schema.json", docs="/manual/api"))
        app.get("/manual/api")(lambda: "mine")
        with Client(app) as client:
            assert client.get("/api/schema.json").json()["openapi"] == "3.1.0"
            assert client.get("/manual/api").text == "mine"
            assert "url: '../api/schema.json'" in client.get("/manual/api/start.js").text
        with Client(App(openapi=OpenAPI(enabled=True, docs=None))) as client:
            assert client.get("/docs").status_code == 404


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frameworks 16: what it prints is JSON, without NaN."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documented_shop.py").write_text(
        "from citius import App\napp = App()\n@app.get('/x')\n"
        "def x(a: float = float('nan')) -> int: return 1\n"
    )
    done = CliRunner().invoke(cli, ["openapi", "documented_shop:app"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.output, parse_constant=pytest.fail)["paths"]) == ["/x"]


def test_callbacks() -> None:
    app = App()
    paid = {"post": {"responses": {"204": {"description": "taken"}}}}

    @app.post("/orders", callbacks={"paid": {"{$request.query.url}": paid}})
    def order(url: str) -> None: ...

    document = app.openapi()
    OpenAPIV31SpecValidator(json.loads(json.dumps(document))).validate()
    operation = document["paths"]["/orders"]["post"]
    assert operation["callbacks"] == {"paid": {"{$request.query.url}": paid}}


@pytest.mark.slow
def test_a_fuzzer_finds_no_failure(tmp_path: Path) -> None:
    """Schemathesis sends what the document allows and what it forbids, and judges the responses."""
    from rig import Server

    (tmp_path / "fuzzed.py").write_text(
        f"import runpy\napp = runpy.run_path({__file__!r})['make_app'](enabled=True)\n"
    )
    server = Server(["fuzzed.py", "--port", "0"], {}, tmp_path).wait_ready()
    try:
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        done = subprocess.run(
            [
                Path(sys.executable).parent / "schemathesis", "run", url, "--max-examples", "30",
                "--seed", "1", "--no-color", "--phases", "examples,coverage,fuzzing",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=110,
        )  # fmt: skip
    finally:
        server.kill()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr


@pytest.mark.parametrize("make", [msgspec.defstruct, dataclasses.make_dataclass])
def test_classes_of_one_name_that_a_function_makes(make: Any) -> None:
    """Frameworks 11."""

    class Page(msgspec.Struct, Generic[T]):
        items: list[T]

    app = App()

    def crud(name: str, field: str) -> None:
        item: Any = make("Item", [(field, str)])
        model: Any = pydantic.create_model("Model", **{field: (str, ...)})

        def change(value: Any) -> Any:
            return value

        def listed() -> Any: ...

        def models() -> Any: ...

        change.__annotations__ = {"value": item, "return": Page[item]}
        listed.__annotations__ = {"return": list[item]}
        models.__annotations__ = {"return": list[model]}
        app.post(f"/{name}", name=name)(change)
        app.get(f"/{name}", name=f"{name}-list")(listed)
        app.get(f"/{name}/models", name=f"{name}-models")(models)

    crud("book", "title")
    crud("author", "born")
    made = app.openapi()
    OpenAPIV31SpecValidator(json.loads(json.dumps(made))).validate()

    def fields(reference: dict[str, str]) -> list[str]:
        name = reference["$ref"].rpartition("/")[2]
        return list(made["components"]["schemas"][name]["properties"])

    for name, field in (("book", "title"), ("author", "born")):
        post, get = made["paths"][f"/{name}"]["post"], made["paths"][f"/{name}"]["get"]
        models = made["paths"][f"/{name}/models"]["get"]
        json_of = "application/json"
        assert fields(post["requestBody"]["content"][json_of]["schema"]) == [field]
        page = post["responses"]["200"]["content"][json_of]["schema"]["$ref"].rpartition("/")[2]
        items = made["components"]["schemas"][page]["properties"]["items"]
        assert fields(items["items"]) == [field]
        for one in (get, models):
            schema = one["responses"]["200"]["content"][json_of]["schema"]
            assert fields(schema["items"]) == [field]


def test_pages_at_the_root() -> None:
    """Frameworks 15: the page finds its files."""
    for docs in ("/", "/docs", "/docs/", "/manual/api"):
        with Client(App(openapi=OpenAPI(enabled=True, docs=docs))) as client:
            page = client.get(docs).text
            found = re.findall(r'(?:src|href)="([^"]+)"', page)
            assert len(found) == 3
            for one in found:
                assert client.get(urljoin(docs, one)).status_code == 200, (docs, one)
            script = client.get(urljoin(docs, found[2])).text
            url = re.search(r"url: '([^']+)'", script)
            assert url is not None
            assert client.get(urljoin(docs, url[1])).json()["openapi"] == "3.1.0"


def test_defaults_that_nothing_encodes() -> None:
    """frameworks 11: the whole document was a TypeError, and an MCP server did not start."""

    class Options(msgspec.Struct):
        marker: Any = object()
        folder: Any = Path("a/b")
        size: int = 3

    class Row(msgspec.Struct, array_like=True):
        marker: Any = object()

    app = App()

    @app.post("/options")
    def options(body: Options) -> None: ...
    @app.post("/row")
    def row(body: Row) -> None: ...

    app.mcp("/mcp").tool("options")(options)
    schemas = app.openapi()["components"]["schemas"]
    assert schemas["Options"]["properties"]["marker"] == {}
    assert schemas["Options"]["properties"]["folder"] == {"default": "a/b"}
    assert schemas["Options"]["properties"]["size"]["default"] == 3
    assert schemas["Row"]["prefixItems"] == [{}]
    with Client(app):
        pass


def test_defaults_that_json_does_not_have() -> None:
    """Frameworks 16."""

    class Limits(msgspec.Struct):
        most: float = float("inf")

    app = App()

    @app.post("/")
    def f(body: Limits, least: float = float("-inf"), odd: float = float("nan")) -> None: ...

    made = app.openapi()
    json.dumps(made, allow_nan=False)
    schemas = [one["schema"] for one in made["paths"]["/"]["post"]["parameters"]]
    assert schemas == [{"type": "number"}] * 2


class Routed:
    """An ASGI application that says which routes it has, as those of Starlette and FastAPI do."""

    def __init__(self, *paths: str) -> None:
        self.routes = [SimpleNamespace(path=path) for path in paths]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"mounted"})


class TestMountedDocumentation:
    """A mounted application keeps its own documentation (newcomer B10)."""

    @staticmethod
    def text(app: App, path: str, *, development: bool = False) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "freeze", partial(app.freeze, development=development))
            client = Client(app)
        with client:
            return client.get(path).text

    @pytest.mark.parametrize("enabled", [True, None])
    def test_that_of_an_application_at_the_root(self, enabled: bool | None) -> None:
        for path in ("/docs", "/openapi.json", "/docs/start.js"):
            app = App(openapi=OpenAPI(enabled=enabled))
            app.mount("/", Routed("/docs", "/openapi.json"))
            assert self.text(app, path, development=True) == "mounted"

    def test_middleware_around_it(self) -> None:
        app = App(openapi=OpenAPI(enabled=True))
        inner = Routed("/docs", "/openapi.json")

        class Around:
            app = inner

            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                await inner(scope, receive, send)

        app.mount("/", Around())
        assert self.text(app, "/docs") == "mounted"

    def test_the_native_one_elsewhere(self) -> None:
        for path in ("/native.json", "/native-docs", "/native-docs/start.js"):
            app = App(openapi=OpenAPI(enabled=True, path="/native.json", docs="/native-docs"))
            app.mount("/", Routed("/docs", "/openapi.json"))
            assert self.text(app, path) != "mounted"

    def test_an_application_without_documentation(self) -> None:
        async def unknown(scope: Any, receive: Any, send: Any) -> None:
            await Routed()(scope, receive, send)

        for mounted, enabled, is_native in (
            (Routed("/"), True, True),
            (Routed("/"), None, True),
            (unknown, True, True),
            (unknown, None, False),
        ):
            app = App(openapi=OpenAPI(enabled=enabled))
            app.mount("/", mounted)
            assert (self.text(app, "/docs", development=True) != "mounted") is is_native


def test_two_patterns_that_are_one_path_of_openapi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frameworks, debatable: the document has the route that is tried first, and the log names the other."""
    told: list[str] = []
    monkeypatch.setattr("citius.observability.logging.warning", told.append)
    app = App()

    @app.get("/of/{number:int}")
    def by_number(number: int) -> int:
        return number

    @app.get("/of/{name}")
    def by_name(name: str) -> str:
        return name

    @app.put("/of/{name}")
    def put(name: str) -> str:
        return name

    (operations,) = app.openapi()["paths"].values()
    assert {name: one["operationId"] for name, one in operations.items()} == {
        "get": "by_number",
        "put": "put",
    }
    assert re.search(r"one operation for GET /of/\{number\}; \S+by_name .* is left out", told[0])
