"""The native API through the in-memory client: what handlers get, and what is made of what they give."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import gc
import os
import threading
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import citius
import msgspec
import pytest
from citius import App, Body, FormData, HTTPError, NotFound, Request, Response
from citius.observability import logging
from citius.testing import Client, TestResponse
from citius.web.application import lifecycle


class Item(msgspec.Struct):
    name: str
    price: Annotated[float, msgspec.Meta(gt=0)] = 1.0


@dataclass
class Point:
    x: int
    y: int = 0


class Color(enum.Enum):
    RED = "red"


def ask(app: App, path: str = "/", method: str = "GET", **options: Any) -> TestResponse:
    with Client(app) as client:
        return client.request(method, path, **options)


def answer_of(value: Any, **options: Any) -> TestResponse:
    """What becomes of a handler's return value: always the same, as the first or as a later one."""
    app = App()
    app.get("/")(lambda: value)
    app.get("/request")(lambda request: value)
    with Client(app) as client:
        paths = ("/", "/", "/request", "/", "/request", "/request", "/")
        answers = [client.get(path, **options) for path in paths]

    def said(answer: TestResponse) -> Any:
        # The second may change between two of them.
        fields = {name: value for name, value in answer.headers.items() if name != "date"}
        return answer.status_code, answer.content, fields

    for answer in answers[1:]:
        assert said(answer) == said(answers[0])
    return answers[0]


class TestReturnValues:
    @pytest.mark.parametrize(
        ("value", "status", "content_type", "body"),
        [
            (b"x", 200, "application/octet-stream", b"x"),
            ("ä", 200, "text/plain; charset=utf-8", "ä".encode()),
            ("", 200, "text/plain; charset=utf-8", b""),
            (None, 204, None, b""),
            ({"a": 1}, 200, "application/json", b'{"a":1}'),
            ([1], 200, "application/json", b"[1]"),
            ((1, 2), 200, "application/json", b"[1,2]"),
            (7, 200, "application/json", b"7"),
            (True, 200, "application/json", b"true"),
            (Item("x"), 200, "application/json", b'{"name":"x","price":1.0}'),
            (Point(1), 200, "application/json", b'{"x":1,"y":0}'),
            (Response("x", 201, {"a": "b"}), 201, "text/plain; charset=utf-8", b"x"),
            (Response(b"x", content_type="image/png"), 200, "image/png", b"x"),
            (Response({"a": 1}, 418), 418, "application/json", b'{"a":1}'),
        ],
    )
    def test_value(self, value: Any, status: int, content_type: str | None, body: bytes) -> None:
        answer = answer_of(value)
        assert (answer.status_code, answer.content) == (status, body)
        assert answer.headers.get("content-type") == content_type

    @pytest.mark.parametrize(
        ("accept", "is_msgpack"),
        [
            ("application/msgpack", True),
            ("application/x-msgpack", True),
            ("application/msgpack, application/json", True),
            ("application/json, application/msgpack;q=0.5", False),
            ("application/json;q=0.5, application/msgpack", True),
            ("application/msgpack;q=0", False),
            ("*/*", False),
            ("text/html", False),
        ],
    )
    def test_messagepack_for_who_prefers_it(self, accept: str, is_msgpack: bool) -> None:
        answer = answer_of({"a": [1, 2]}, headers={"accept": accept})
        assert answer.headers["content-type"] == (
            "application/msgpack" if is_msgpack else "application/json"
        )
        assert (answer.msgpack() if is_msgpack else answer.json()) == {"a": [1, 2]}
        assert "accept" in answer.headers.get("vary", "").lower()

    def test_short_ways(self) -> None:
        redirect = answer_of(citius.redirect("/ä?b=c%20d", 303))
        assert (redirect.status_code, redirect.headers["location"]) == (303, "/%C3%A4?b=c%20d")
        with pytest.raises(ValueError, match="301, 302"):
            citius.redirect("/", 200)
        packed = answer_of(citius.msgpack_response([1]))
        assert packed.headers["content-type"] == "application/msgpack"
        assert packed.msgpack() == [1]
        fixed = answer_of(citius.json_response([1]), headers={"accept": "application/msgpack"})
        assert fixed.json() == [1]
        page = answer_of(citius.html_response("<p>", 404, {"x": "y"}))
        assert (page.status_code, page.headers["x"]) == (404, "y")
        assert page.headers["content-type"] == "text/html; charset=utf-8"

    def test_headers_of_a_response_can_be_changed(self) -> None:
        response = Response("x", headers={"A": "1"})
        response.headers["a"] = "2"
        response.headers.add("b", "3")
        response.headers.set_cookie("k", "v")
        answer = answer_of(response)
        assert (answer.headers["a"], answer.headers["b"]) == ("2", "3")
        assert answer.headers["set-cookie"].startswith("k=v;")


class Picky(msgspec.Struct):
    name: str

    def __post_init__(self) -> None:
        raise RuntimeError("picky") from KeyError("why")


class TestArguments:
    def test_path_converters(self) -> None:
        app = App()
        app.get("/i/{v:int}")(lambda v: repr(v))
        app.get("/f/{v:float}")(lambda v: repr(v))
        app.get("/u/{v:uuid}")(lambda v: type(v).__name__)
        app.get("/s/{v}")(lambda v: repr(v))
        app.get("/p/{v:path}")(lambda v: repr(v))
        with Client(app) as client:
            assert client.get("/i/-7").text == "-7"
            assert client.get("/i/7x").status_code == 404
            assert client.get("/f/1.5").text == "1.5"
            assert client.get(f"/u/{uuid.uuid4()}").text == "UUID"
            assert client.get("/u/7").status_code == 404
            assert client.get("/s/a%2Fb%20c").text == "'a/b c'"
            assert client.get("/p/a/b").text == "'a/b'"
            assert client.get("/p/").text == "''"

    def test_what_a_body_s_own_code_raises_keeps_its_cause(self) -> None:
        app = App()
        causes: list[BaseException | None] = []

        @app.exception_handler(RuntimeError)
        def picky(request: Request, error: RuntimeError) -> Response:
            causes.append(error.__cause__)
            return Response("picky", status_code=418)

        @app.post("/")
        def take(body: Picky) -> str:
            return body.name

        with Client(app) as client:
            for _ in range(2):
                assert client.post("/", json={"name": "a"}).status_code == 418
            media_type = {"content-type": "application/json; charset=utf-8"}
            assert client.post("/", content=b'{"name": "a"}', headers=media_type).status_code == 418
        assert [str(cause) for cause in causes] == ["'why'"] * 3

    def test_path_annotations(self) -> None:
        app = App()

        @app.get("/a/{id}")
        def by_annotation(id: int) -> str:
            return repr(id)

        @app.get("/c/{color}")
        def choice(color: Color) -> str:
            return repr(color)

        with Client(app) as client:
            assert client.get("/a/7").text == "7"
            wrong = client.get("/a/x")
            assert wrong.status_code == 422
            assert wrong.json()["errors"] == [
                {"in": "path", "pointer": "#/id", "detail": "expected an integer"}
            ]
            assert client.get("/c/red").text == "<Color.RED: 'red'>"
            assert client.get("/c/blue").status_code == 422

    def test_query_parameters(self) -> None:
        app = App()

        @app.get("/")
        def search(
            q: str,
            page: int = 1,
            tag: list[str] = [],  # noqa: B006
            exact: bool = False,
            order: Literal["up", "down"] | None = None,
        ) -> list[Any]:
            return [q, page, tag, exact, order]

        with Client(app) as client:
            assert client.get("/?q=x").json() == ["x", 1, [], False, None]
            full = client.get("/?q=x+y&page=2&tag=a&tag=b&exact=true&order=up")
            assert full.json() == ["x y", 2, ["a", "b"], True, "up"]
            wrong = client.get("/?page=two&exact=7&order=left")
            assert wrong.status_code == 422
            assert wrong.headers["content-type"] == "application/problem+json"
            assert [(e["in"], e["pointer"]) for e in wrong.json()["errors"]] == [
                ("query", "#/q"), ("query", "#/page"), ("query", "#/exact"), ("query", "#/order"),
            ]  # fmt: skip
            assert wrong.json()["errors"][0]["detail"] == "missing"

    @pytest.mark.parametrize("suffix", ["", "-async"])
    def test_bodies(self, suffix: str) -> None:
        app = App()

        @app.post("/item")
        def item(item: Item) -> Any:
            return item

        @app.post("/item-async")
        async def item_async(item: Item) -> Any:
            return item

        path = "/item" + suffix
        with Client(app) as client:
            assert client.post(path, json={"name": "x", "price": 2}).json()["price"] == 2.0
            packed = client.post(
                path, msgpack={"name": "x"}, headers={"accept": "application/msgpack"}
            )
            assert packed.msgpack() == {"name": "x", "price": 1.0}
            wrong = client.post(path, json={"name": "x", "price": 0})
            assert wrong.status_code == 422
            assert wrong.json()["errors"][0]["pointer"] == "#/price"
            json_type = {"content-type": "application/json; charset=utf-8"}
            assert client.post(path, content=b"{", headers=json_type).status_code == 400
            assert client.post(path, content=b'{"name":"x"}', headers=json_type).status_code == 200
            problem = {"content-type": "application/problem+json"}
            assert client.post(path, content=b'{"name":"x"}', headers=problem).status_code == 200
            assert client.post(path, content=b'{"name":"x"}').status_code == 415
            assert client.post(path, content="name=x").status_code == 415
            assert "text/plain" in client.post(path, content="name=x").json()["detail"]

    def test_query_and_body_mistakes_come_together(self) -> None:
        app = App()

        @app.put("/{id}")
        def put(id: int, item: Item, dry: bool = False) -> None: ...

        wrong = ask(app, "/x?dry=7", "PUT", json={})
        assert [e["in"] for e in wrong.json()["errors"]] == ["query", "path", "body"]

    def test_other_body_types(self) -> None:
        app = App()

        @app.post("/raw")
        def raw(data: bytes) -> bytes:
            return data[::-1]

        @app.post("/list")
        def numbers(values: Annotated[list[int], Body]) -> int:
            return sum(values)

        @app.post("/dict")
        def mapping(values: dict[str, int]) -> int:
            return sum(values.values())

        @app.post("/optional")
        def optional(item: Item | None = None) -> Any:
            return item

        with Client(app) as client:
            assert client.post("/raw", content=b"abc").content == b"cba"
            assert client.post("/list", json=[1, 2]).json() == 3
            assert client.post("/dict", json={"a": 1}).json() == 1
            assert client.post("/optional", json={"name": "n"}).json()["name"] == "n"
            assert client.post("/optional").status_code == 204

    def test_keyword_only_and_mixed(self) -> None:
        app = App()

        @app.post("/{a}")
        def mixed(b: int, request: Request, *, a: str, item: Item, c: int = 3) -> list[Any]:
            return [a, b, c, item.name, request.method]

        answer = ask(app, "/x?b=2", "POST", json={"name": "n"})
        assert answer.json() == ["x", 2, 3, "n", "POST"]


class TestRequest:
    def test_json_and_msgpack_with_and_without_a_type(self) -> None:
        app = App()
        app.post("/json")(lambda request: request.json())
        app.post("/typed")(lambda request: request.json(Item).name)
        app.post("/msgpack")(lambda request: request.msgpack(Item).name)
        with Client(app) as client:
            assert client.post("/json", json=[1]).json() == [1]
            assert client.post("/typed", json={"name": "n"}).text == "n"
            assert client.post("/typed", json={"name": 1}).status_code == 422
            assert client.post("/json", content=b"[").status_code == 400
            assert client.post("/msgpack", msgpack={"name": "n"}).text == "n"

    def test_form(self) -> None:
        app = App()

        @app.post("/")
        def form(request: Request) -> Any:
            form: FormData = request.form()
            return {**form, "files": {k: v.filename for k, v in form.files.items()}}

        with Client(app) as client:
            assert client.post("/", form={"a": "1 2"}).json() == {"a": "1 2", "files": {}}
            multipart = b'--X\r\nContent-Disposition: form-data; name="f"; filename="n"\r\n\r\ndata\r\n--X--'
            headers = {"content-type": "multipart/form-data; boundary=X"}
            assert client.post("/", content=multipart, headers=headers).json() == {
                "files": {"f": "n"}
            }
            assert client.post("/", json={}).status_code == 415

    def test_the_views(self) -> None:
        app = App()

        @app.get("/ä/{name}")
        def views(request: Request) -> Any:
            assert request.headers is request.headers
            assert request.state is request.state
            request.state.seen = True
            return {
                "path": request.path, "raw_path": request.raw_path.decode(),
                "query": request.query.multi_items(), "raw_query": request.raw_query.decode(),
                "params": request.path_params, "header": request.header("X-One"),
                "none": request.header("none"), "default": request.header("none", 7),
                "items": request.header_items(), "cookies": request.cookies,
                "client": request.client, "state": request.state.seen, "app": request.app is app,
            }  # fmt: skip

        path = "/%C3%A4/b%20c?d=e&d="
        seen = ask(app, path, headers={"X-One": "1", "cookie": "k=v"}).json()
        assert seen["path"] == "/ä/b c"
        assert seen["raw_path"] == "/%C3%A4/b%20c"
        assert (seen["query"], seen["raw_query"]) == ([["d", "e"], ["d", ""]], "d=e&d=")
        assert seen["params"] == {"name": "b c"}
        assert (seen["header"], seen["none"], seen["default"]) == ("1", None, 7)
        assert ["x-one", "1"] in seen["items"]
        assert seen["cookies"] == {"k": "v"}
        assert (seen["client"], seen["state"], seen["app"]) == (None, True, True)

    def test_read_gives_the_body_again_and_again(self) -> None:
        app = App()

        @app.post("/")
        async def read(request: Request) -> list[str]:
            return [(await request.read()).decode(), request.body().decode(), request.json()]

        assert ask(app, method="POST", content=b'"x"').json() == ['"x"', '"x"', "x"]

    def test_a_def_handler_cannot_wait_for_a_stream(self) -> None:
        app = App()
        app.post("/", stream=True)(lambda request: b"".join(request.stream()))

        def slowly():
            yield b"x"
            yield b"y"

        with pytest.raises(RuntimeError, match="blocking=True"):
            ask(app, method="POST", content=slowly())


class TestRoutes:
    def test_methods(self) -> None:
        app = App()
        for method in ("get", "post", "put", "delete", "patch", "options"):
            getattr(app, method)("/")(lambda request: request.method)
        app.head("/")(lambda: Response(b"", headers={"x": "head"}))
        with Client(app) as client:
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                assert client.request(method, "/").text == method
            assert client.head("/").headers["x"] == "head"

    def test_heads_that_come_again_find_their_routes_again(self) -> None:
        app = App()
        app.get("/")(lambda: "root")
        app.get("/a")(lambda: b"a")
        app.get("/request")(lambda request: request.path)
        app.get("/i/{n:int}")(lambda n: str(n))
        app.get("/i/{_n:int}/bare")(lambda: "any")
        app.post("/a")(lambda: "posted")

        @app.get("/async")
        async def coroutine() -> str:
            return "async"

        asked = [
            ("GET", "/", (200, "root")),
            ("GET", "/a", (200, "a")),
            ("POST", "/a", (200, "posted")),
            ("GET", "/request", (200, "/request")),
            ("GET", "/i/1", (200, "1")),
            ("GET", "/i/2", (200, "2")),
            ("GET", "/i/2/bare", (200, "any")),
            ("GET", "/async", (200, "async")),
            ("HEAD", "/", (200, "")),
            ("GET", "/b", (404, '{"title":"Not Found","status":404}')),
            ("PUT", "/a", (405, '{"title":"Method Not Allowed","status":405}')),
        ]
        with Client(app) as client:
            for times in range(1, 4):
                for method, path, expected in asked:
                    for _ in range(times):
                        answer = client.request(method, path)
                        assert (answer.status_code, answer.text) == expected, (method, path)

    def test_a_bare_handler_that_fails_fails_as_any_other(self) -> None:
        app, calls = App(), []

        @app.get("/")
        def hello() -> str:
            calls.append(None)
            if len(calls) % 3 == 0:
                raise ValueError("every third")
            return "\ud800" if len(calls) % 5 == 0 else "Hello"

        with Client(app, raise_errors=False) as client:
            answers = [client.get("/") for _ in range(15)]
        expected = [500 if n % 3 == 0 or n % 5 == 0 else 200 for n in range(1, 16)]
        assert [answer.status_code for answer in answers] == expected
        assert {answer.text for answer in answers if answer.status_code == 200} == {"Hello"}

    def test_head_comes_with_get(self) -> None:
        app = App()
        app.get("/")(lambda: "Hello")
        answer = ask(app, method="HEAD")
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-length"] == "5"

    def test_an_unknown_method_may_have_a_route(self) -> None:
        app = App()
        app.route("/", methods=["PURGE", "get"])(lambda request: request.method)
        with Client(app) as client:
            assert client.request("PURGE", "/").text == "PURGE"
            assert client.get("/").text == "GET"
            assert client.put("/").status_code == 405

    def test_no_changes_once_served(self) -> None:
        app = App()
        app.get("/")(lambda: "x")
        with Client(app), pytest.raises(citius.ConfigError, match="can no longer change"):
            app.get("/late")(lambda: "x")

    @pytest.mark.parametrize(
        ("declare", "message"),
        [
            (lambda app: app.get("x"), "begins with a slash"),
            (lambda app: app.route("/", methods=[]), "has no method"),
            (lambda app: app.mount("x", App()), "begins with a slash"),
            (lambda app: app.mount("/x/", App()), "ends without one"),
            (lambda app: app.mount("/x", app), "contain itself"),
            (lambda app: app.exception_handler(200)(lambda r, e: None), "400 to 599"),
        ],
    )
    def test_wrong_declarations(self, declare: Any, message: str) -> None:
        with pytest.raises(citius.ConfigError, match=message):
            declare(App())

    def test_two_routes_in_one_place(self) -> None:
        app = App()
        app.get("/a")(lambda: 1)
        app.get("/a")(lambda: 2)
        with pytest.raises(citius.ConfigError, match=r"GET /a for .*test_app\.py:\d+"):
            Client(app)


class TestMounts:
    def make(self) -> App:
        inner = App()
        inner.get("/")(lambda: "inner root")
        inner.get("/{id:int}")(lambda id: f"inner {id}")
        inner.exception_handler(KeyError)(lambda request, error: Response("inner error", 409))
        inner.get("/fails")(lambda: {}["x"])

        @inner.middleware
        def mark(request: Request, next: Any) -> Response:
            response = next(request)
            response.headers["inner"] = "1"
            return response

        outer = App()
        outer.get("/")(lambda: "outer")
        outer.get("/fails")(lambda: {}["x"])
        outer.exception_handler(KeyError)(lambda request, error: Response("outer error", 410))
        middle = App()
        middle.mount("/deep", inner)
        outer.mount("/in", inner)
        outer.mount("/middle", middle)
        return outer

    def test_routes(self) -> None:
        app = self.make()
        with Client(app) as client:
            assert client.get("/").text == "outer"
            assert client.get("/in").text == "inner root"
            assert client.get("/in/7").text == "inner 7"
            assert client.get("/middle/deep/7").text == "inner 7"
            assert client.get("/7").status_code == 404
        assert ("GET", "/middle/deep/{id:int}") in [(r.method, r.pattern) for r in app.endpoints]

    def test_middleware_and_error_handlers_stay_inside(self) -> None:
        with Client(self.make()) as client:
            assert "inner" not in client.get("/").headers
            assert client.get("/in/7").headers["inner"] == "1"
            assert client.get("/in/fails").text == "inner error"
            assert client.get("/in/fails").headers["inner"] == "1"
            assert client.get("/fails").text == "outer error"


class TestErrors:
    def test_problem_details(self) -> None:
        app = App()

        @app.get("/{id}")
        def missing(id: str) -> None:
            raise NotFound(f"no item {id}", headers={"x": "y"})

        answer = ask(app, "/7")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x"] == "y"
        assert answer.json() == {"title": "Not Found", "status": 404, "detail": "no item 7"}

    @pytest.mark.parametrize("kind", ["def", "async", "blocking"])
    @pytest.mark.parametrize("handlers", ["def", "async"])
    def test_handlers_by_type_and_status(self, kind: str, handlers: str) -> None:
        app = App()

        def wrap(function: Any) -> Any:
            if handlers == "def":
                return function

            async def wrapped(request: Request, error: Any) -> Any:
                await asyncio.sleep(0)
                return function(request, error)

            return wrapped

        app.exception_handler(LookupError)(wrap(lambda request, error: Response("lookup", 400)))
        app.exception_handler(KeyError)(wrap(lambda request, error: Response("key", 401)))
        app.exception_handler(404)(
            wrap(lambda request, error: Response(f"404 {error.detail}", 404))
        )
        app.exception_handler(405)(
            wrap(lambda request, error: Response(error.headers["allow"], 405))
        )
        app.exception_handler(500)(wrap(lambda request, error: Response("odd", 500)))

        def fail(error: Exception) -> None:
            raise error

        def add(path: str, error: Exception) -> None:
            async def failing() -> None:
                fail(error)

            if kind == "async":
                app.get(path)(failing)
            else:
                app.get(path, blocking=kind == "blocking")(lambda: fail(error))

        add("/key", KeyError("x"))
        add("/index", IndexError("x"))
        add("/missing", NotFound("here"))
        add("/teapot", HTTPError(418))
        add("/value", ValueError("x"))
        with Client(app, raise_errors=False) as client:
            assert client.get("/key").text == "key"
            assert client.get("/index").text == "lookup"
            assert client.get("/missing").text == "404 here"
            assert client.get("/teapot").json()["status"] == 418
            assert (client.get("/value").status_code, client.get("/value").text) == (500, "odd")
            assert client.get("/nowhere").text == "404 "
            assert client.post("/key").text == "GET, HEAD, OPTIONS"

    def test_an_error_handler_that_fails(self) -> None:
        app = App()
        app.get("/")(lambda: {}["x"])
        app.exception_handler(KeyError)(lambda request, error: 1 // 0)
        assert ask_quietly(app).status_code == 500

    def test_the_client_raises_what_nobody_expected(self) -> None:
        app = App()
        app.get("/")(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            ask(app)
        assert ask_quietly(app).status_code == 500


def ask_quietly(app: App) -> TestResponse:
    with Client(app, raise_errors=False) as client:
        return client.get("/")


class TestMiddleware:
    @pytest.mark.parametrize("handler", ["def", "async", "blocking"])
    @pytest.mark.parametrize("first", ["def", "async"])
    @pytest.mark.parametrize("second", ["def", "async"])
    def test_order_and_mixing(self, handler: str, first: str, second: str) -> None:
        app = App()
        order: list[str] = []

        def add(name: str, kind: str) -> None:
            if kind == "def":

                def around(request: Request, next: Any) -> Any:
                    order.append(name)
                    return next(request)

                app.middleware(around)
            else:

                async def around_async(request: Request, next: Any) -> Any:
                    order.append(name)
                    response = await next(request)
                    assert isinstance(response, Response)
                    response.headers[name] = "seen"
                    return response

                app.middleware(around_async)

        add("first", first)
        add("second", second)

        async def asynchronous(id: str, q: int = 1) -> dict[str, Any]:
            await asyncio.sleep(0)
            order.append("handler")
            return {"id": id, "q": q}

        def plain(id: str, q: int = 1) -> dict[str, Any]:
            order.append("handler")
            return {"id": id, "q": q}

        if handler == "async":
            app.get("/{id}")(asynchronous)
        else:
            app.get("/{id}", blocking=handler == "blocking")(plain)
        answer = ask(app, "/x?q=2")
        assert answer.json() == {"id": "x", "q": 2}
        assert order == ["first", "second", "handler"]
        for name, kind in (("first", first), ("second", second)):
            assert (name in answer.headers) == (kind == "async")

    def test_def_middleware_changes_answers_of_def_handlers(self) -> None:
        app = App()

        @app.middleware
        def mark(request: Request, next: Any) -> Response:
            response: Response = next(request)
            response.headers["status"] = str(response.status_code)
            return response

        app.get("/none")(lambda: None)
        app.get("/text")(lambda: "x")
        app.get("/error")(lambda: (_ for _ in ()).throw(NotFound()))

        @app.get("/raises")
        def raises() -> None:
            raise NotFound("x")

        with Client(app) as client:
            assert client.get("/none").status_code == 204
            assert client.get("/text").headers["status"] == "200"
            assert client.get("/raises").headers["status"] == "404"
            assert client.get("/nowhere").headers["status"] == "404"
            wrong = client.post("/text")
            assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
            assert wrong.headers["status"] == "405"

    def test_def_middleware_that_looks_into_an_async_answer_is_told(self) -> None:
        app = App()

        @app.middleware
        def mark(request: Request, next: Any) -> Response:
            next(request).headers["x"] = "y"
            raise AssertionError("unreachable")

        @app.get("/")
        async def handler() -> str:
            return "x"

        with pytest.raises(TypeError, match=r"middleware .*mark \(.*wants `headers`.*async def"):
            ask(app)

    def test_it_may_answer_itself(self) -> None:
        app = App()

        @app.middleware
        def guard(request: Request, next: Any) -> Any:
            return next(request) if request.header("key") else Response("no key", 401)

        @app.get("/")
        async def secret() -> str:
            return "secret"

        assert ask(app).status_code == 401
        assert ask(app, headers={"key": "1"}).text == "secret"

    @pytest.mark.parametrize("kind", ["def", "async"])
    def test_exceptions_have_become_responses(self, kind: str) -> None:
        app = App()
        seen: list[int] = []

        async def watch_async(request: Request, next: Any) -> Any:
            response = await next(request)
            seen.append(response.status_code)
            response.headers["x-seen"] = "yes"
            return response

        def watch(request: Request, next: Any) -> Any:
            response = next(request)
            seen.append(response.status_code)
            response.headers["x-seen"] = "yes"
            return response

        app.middleware(watch if kind == "def" else watch_async)
        app.get("/")(lambda: [][0])
        answer = ask_quietly(app)
        assert (answer.status_code, answer.headers["x-seen"]) == (500, "yes")
        assert seen == [500]

    def test_streams_pass_through_it(self) -> None:
        app = App()

        @app.middleware
        async def mark(request: Request, next: Any) -> Any:
            response = await next(request)
            response.headers["x"] = "y"
            return response

        @app.get("/")
        async def stream() -> Any:
            async def pieces():
                yield b"a"
                await asyncio.sleep(0)
                yield b"b"

            return pieces()

        answer = ask(app)
        assert (answer.content, answer.headers["x"]) == (b"ab", "y")


class TestLifespan:
    def test_order(self) -> None:
        order: list[str] = []

        @contextlib.asynccontextmanager
        async def lifespan(app: App):
            order.append("enter")
            app.state.value = 7
            yield
            order.append("exit")

        inner = App()
        inner.on_startup(lambda: order.append("inner up"))
        inner.on_shutdown(lambda: order.append("inner down"))
        app = App(lifespan=lifespan)
        app.mount("/a", inner)
        app.mount("/b", inner)

        @app.on_startup
        async def up() -> None:
            await asyncio.sleep(0)
            order.append("up")

        app.on_shutdown(lambda: order.append("down"))
        app.get("/")(lambda: app.state.value)
        assert ask(app).json() == 7
        assert order == ["enter", "up", "inner up", "inner down", "down", "exit"]

    def test_a_shutdown_hook_that_fails_does_not_stop_the_others(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = App()
        order: list[str] = []
        app.on_shutdown(lambda: order.append("first declared"))
        app.on_shutdown(lambda: 1 // 0)
        app.get("/")(lambda: "x")
        ask(app)
        assert order == ["first declared"]

    def test_a_start_up_hook_that_fails_is_raised_and_the_lifespan_left(self) -> None:
        """Frameworks 19: no shutdown hook runs behind it."""
        order: list[str] = []

        @contextlib.asynccontextmanager
        async def lifespan(app: App):
            order.append("enter")
            yield
            order.append("exit")

        app = App(lifespan=lifespan)
        app.on_startup(lambda: 1 // 0)
        app.on_shutdown(lambda: order.append("shutdown hook"))
        client = Client(app)
        with pytest.raises(ZeroDivisionError):
            client.__enter__()
        client.close()
        del client
        gc.collect()
        assert order == ["enter", "exit"]


class TestClient:
    def test_streaming_both_ways(self) -> None:
        app = App()

        @app.post("/", stream=True)
        async def upper(request: Request) -> Any:
            async for piece in request.stream():
                yield piece.upper()

        with Client(app) as client, client.stream("POST", "/", content=[b"a", b"b"]) as answer:
            assert answer.status_code == 200
            assert b"".join(answer) == b"AB"

    def test_leaving_a_stream_cancels_its_handler(self) -> None:
        app = App()
        ended: list[bool] = []

        @app.get("/")
        async def forever() -> Any:
            try:
                yield b"x"
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        app.get("/ended")(lambda: len(ended))
        with Client(app) as client:
            with client.stream("GET", "/") as answer:
                assert next(iter(answer)) == b"x"
            assert client.get("/ended").json() == 1

    @pytest.mark.parametrize("blocking", [False, True])
    def test_iterators_that_are_no_generators_are_closed_too(self, blocking: bool) -> None:
        class Pieces:
            closed = 0

            def __iter__(self) -> Any:
                return self

            def __next__(self) -> bytes:
                raise StopIteration

            def close(self) -> None:
                self.closed += 1

        app = App()
        pieces = Pieces()
        app.get("/", blocking=blocking)(lambda: pieces)
        assert ask(app).content == b""
        assert pieces.closed == 1

    def test_cookies_are_kept(self) -> None:
        app = App()

        @app.get("/set")
        def set_cookie() -> Response:
            response = Response("x")
            response.headers.set_cookie("k", "v")
            return response

        @app.get("/delete")
        def delete_cookie() -> Response:
            response = Response("x")
            response.headers.delete_cookie("k")
            return response

        app.get("/")(lambda request: request.cookies)
        with Client(app) as client:
            client.get("/set")
            assert client.get("/").json() == {"k": "v"}
            client.get("/delete")
            assert client.get("/").json() == {}

    def test_options(self) -> None:
        app = App()
        app.route("/", methods=["GET", "POST"])(
            lambda request: [dict(request.query), request.headers.get("a"), request.body().decode()]
        )
        with Client(app, headers={"A": "b"}) as client:
            assert client.get("/?x=1", params={"y": "2 3"}).json() == [
                {"x": "1", "y": "2 3"},
                "b",
                "",
            ]
            assert client.post("/", content="ä").json()[2] == "ä"
            with pytest.raises(TypeError, match="one body"):
                client.post("/", content="x", json=1)

    def test_limits(self) -> None:
        app = App()
        app.post("/")(lambda: "x")
        with Client(app, limits={"body_bytes_max": 10}) as client:
            assert client.post("/", content=b"x" * 11).status_code == 413

    def test_a_timeout(self) -> None:
        app = App()

        @app.get("/")
        async def slow() -> None:
            await asyncio.sleep(60)

        with Client(app, timeout_s=0.05) as client, pytest.raises(TimeoutError):
            client.get("/")

    def test_without_with_there_are_no_hooks(self) -> None:
        app = App()
        app.on_startup(lambda: 1 // 0)
        app.get("/")(lambda: "x")
        client = Client(app)
        assert client.get("/").text == "x"
        client.close()

    def test_it_refuses_to_run_inside_a_loop(self) -> None:
        app = App()
        app.get("/")(lambda: "x")
        client = Client(app)

        async def test() -> None:
            client.get("/")

        with pytest.raises(RuntimeError, match="is for `def` tests"):
            asyncio.run(test())
        client.close()


class TestMiddlewareAndExceptions:
    """What docs/guides/handlers.md says of exceptions on their way through middleware."""

    @pytest.mark.parametrize("is_async", [False, True])
    def test_what_leaves_next(self, is_async: bool) -> None:
        app, seen = App(), list[object]()

        @app.middleware
        async def watch(request: Request, next: Any) -> Any:
            response = await next(request)
            seen.append(response.status_code)
            return response

        def fail(request: Request) -> Any:
            raise {"/http": NotFound(), "/key": KeyError("k"), "/value": ValueError("v")}[
                request.path
            ]

        async def fail_late(request: Request) -> Any:
            return fail(request)

        for path in ("/http", "/key", "/value"):
            app.get(path)(fail_late if is_async else fail)
        app.exception_handler(KeyError)(lambda request, error: Response("key", 409))
        app.exception_handler(Exception)(lambda request, error: Response("last", 500))
        with Client(app, raise_errors=False) as client:
            answers = [client.get(path) for path in ("/http", "/key", "/value")]
        assert [answer.status_code for answer in answers] == [404, 409, 500]
        assert answers[2].text == "last"
        assert seen == [404, 409, 500]


def test_a_client_that_is_dropped_takes_its_descriptors_along() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def serve_once() -> None:
        app = App()
        app.get("/")(lambda: "x")
        with Client(app) as client:
            assert client.get("/").text == "x"

    serve_once()
    gc.collect()
    before = descriptors()
    for _ in range(5):
        serve_once()
    gc.collect()
    assert descriptors() <= before


def test_a_client_that_is_dropped_while_another_loop_runs_is_closed() -> None:
    async def collect() -> None:
        gc.collect()

    app = App()
    app.get("/")(lambda: "x")
    client = Client(app)
    assert client.get("/").text == "x"
    loop = client._loop
    cycle: list[Any] = [client]
    cycle.append(cycle)
    del client, cycle
    asyncio.run(collect())
    assert loop.is_closed()


@pytest.mark.parametrize("is_async", [True, False])
def test_a_stop_that_takes_long_says_what_it_waits_for(
    is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """servers B3: a hook that hangs held the process without a word."""
    told, said = threading.Event(), list[str]()

    def warning(text: str) -> None:
        said.append(text)
        told.set()

    monkeypatch.setattr(lifecycle, "NOTICE_S", 0.01)
    monkeypatch.setattr(logging, "warning", warning)
    app = App()

    def slow() -> None:
        assert told.wait(60)

    async def slow_async() -> None:
        await asyncio.to_thread(slow)

    app.on_shutdown(slow_async if is_async else slow)
    with Client(app):
        pass
    assert len(said) == 1
    assert "now for the shutdown hook" in said[0]
    assert "test_app.py:" in said[0]
