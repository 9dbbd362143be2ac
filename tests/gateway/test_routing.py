"""Routing: error handlers of routers, parts of segments, names of parameters, slashes, static roots."""

from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from citius import App, HTTPError, NotFound, Request, Response, Router
from citius.testing import Client
from openapi_spec_validator import validate


class TestErrorHandlersOfRouters:
    def make(self) -> App:
        app = App()
        outer, inner = Router(prefix="/outer"), Router(prefix="/inner")

        def fail(what: str) -> None:
            if what == "key":
                raise KeyError(what)
            raise NotFound(what) if what == "404" else ValueError(what)

        for one in (app, outer, inner):
            one.get("/{what}")(fail)
        app.exception_handler(ValueError)(lambda request, error: Response("app", 400))
        app.exception_handler(KeyError)(lambda request, error: Response("app", 400))
        outer.exception_handler(KeyError)(lambda request, error: Response("outer", 400))
        outer.exception_handler(404)(lambda request, error: Response("outer", 404))

        @inner.exception_handler(KeyError)
        async def awaited(request: Request, error: KeyError) -> Response:
            return Response("inner", 400)

        outer.include(inner)
        app.include(outer)
        return app

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("/key", "app"),
            ("/value", "app"),
            ("/outer/key", "outer"),
            ("/outer/value", "app"),
            ("/outer/404", "outer"),
            ("/outer/inner/key", "inner"),
            ("/outer/inner/404", "outer"),
            ("/outer/inner/value", "app"),
        ],
    )
    def test_the_innermost_wins(self, path: str, expected: str) -> None:
        with Client(self.make()) as client:
            assert client.get(path).text == expected

    def test_those_of_a_router_are_for_its_routes_alone(self) -> None:
        with Client(self.make()) as client:
            assert client.get("/404").headers["content-type"] == "application/problem+json"
            assert "outer" not in client.get("/nowhere/at/all").text

    def test_with_middleware_and_threads(self) -> None:
        app, router = App(), Router()

        @app.middleware
        def mark(request: Request, next: Any) -> Response:
            response = next(request)
            response.headers["x-seen"] = str(response.status_code)
            return response

        @router.get("/", blocking=True)
        def fail() -> None:
            raise HTTPError(418)

        router.exception_handler(418)(lambda request, error: Response("tea", 418))
        app.include(router)
        with Client(app) as client:
            response = client.get("/")
            assert (response.text, response.headers["x-seen"]) == ("tea", "418")


def test_a_parameter_is_a_part_of_its_segment() -> None:
    app = App()
    app.get("/items/{id:int}.json", name="of_json")(lambda id: f"json {id + 1}")
    app.get("/items/{name}")(lambda name: f"name {name}")
    app.get("/@{user}/v{version:int}")(lambda user, version: f"{user} {version}")
    with Client(app) as client:
        assert client.get("/items/6.json").text == "json 7"
        assert client.get("/items/6.xml").text == "name 6.xml"
        assert client.get("/@ann/v2").text == "ann 2"
        assert client.get("/@ann/vx").status_code == 404
    assert app.url_for("of_json", id=3) == "/items/3.json"
    validate(app.openapi())
    assert "/items/{id}.json" in app.openapi()["paths"]


def test_methods_of_one_path_may_name_its_parameters_differently() -> None:
    app = App()
    app.get("/items/{id:int}")(lambda id: f"get {id}")
    app.put("/items/{number:int}")(lambda number: f"put {number}")
    with Client(app) as client:
        assert client.get("/items/1").text == "get 1"
        assert client.put("/items/1").text == "put 1"
        assert client.delete("/items/1").headers["allow"] == "GET, HEAD, OPTIONS, PUT"
    document = app.openapi()
    validate(document)
    assert list(document["paths"]) == ["/items/{id}"]
    assert document["paths"]["/items/{id}"]["put"]["parameters"][0]["name"] == "id"


def test_methods_of_all_patterns_of_a_path_are_named() -> None:
    """Frameworks 14; that `POST /users/me` is 405 is in decisions.md."""
    app = App()
    app.get("/users/me")(lambda: "me")
    app.get("/users/{id:int}")(lambda id: "number")
    app.post("/users/{name}")(lambda name: "name")
    every = "GET, HEAD, OPTIONS, POST"
    with Client(app) as client:
        assert client.post("/users/5").text == "name"
        assert client.options("/users/5").headers["allow"] == every
        wrong = client.delete("/users/5")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, every)
        literal = client.post("/users/me")
        assert (literal.status_code, literal.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


class TestSlashes:
    def make(self, *, redirect_slashes: bool) -> App:
        app = App(redirect_slashes=redirect_slashes)
        app.get("/a")(lambda: "a")
        app.post("/b/")(lambda: "b")
        app.get("/files/{rest:path}")(lambda rest: rest)
        return app

    @pytest.mark.parametrize(
        ("method", "path", "location"),
        [
            ("GET", "/a/", "../a"),
            ("GET", "/a/?x=1&y=%20", "../a?x=1&y=%20"),
            ("POST", "/b", "./b/"),
            ("GET", "/b", "./b/"),
            ("GET", "/files", "./files/"),
            ("GET", "/c/", None),
            ("GET", "/c", None),
            ("GET", "/", None),
            ("GET", "//evil.example/", None),
        ],
    )
    def test_redirects(self, method: str, path: str, location: str | None) -> None:
        with Client(self.make(redirect_slashes=True)) as client:
            response = client.request(method, path)
            assert response.headers.get("location") == location
            assert response.status_code == (404 if location is None else 308)

    @pytest.mark.parametrize("prefix", ["", "/app"])
    def test_redirects_lead_back_through_a_proxy_that_removes_a_prefix(self, prefix: str) -> None:
        """Servers D10, for routes."""
        with Client(self.make(redirect_slashes=True)) as client:
            for path, expected in [("/a/", "/a"), ("/b", "/b/"), ("/files", "/files/")]:
                location = client.get(path).headers["location"]
                base = f"https://a.example{prefix}"
                assert urljoin(base + path, location) == base + expected

    def test_no_other_server_is_named(self) -> None:
        app = App(redirect_slashes=True)
        app.get("/{a}/{b}/")(lambda a, b: "")
        app.get("/{a}/{b}/{c}/{d}/")(lambda a, b, c, d: "")
        with Client(app) as client:
            response = client.get("//evil.example/x")
            location = response.headers.get("location", "")
            joined = urljoin("http://a.example//evil.example/x", location)
            assert joined.startswith("http://a.example/")

    def test_not_unless_it_is_wanted(self) -> None:
        with Client(self.make(redirect_slashes=False)) as client:
            assert client.get("/a/").status_code == 404


@pytest.mark.parametrize("has_middleware", [False, True])
def test_the_static_root_of_a_mounted_application_leaves_its_routes(
    tmp_path: Path, has_middleware: bool
) -> None:
    (tmp_path / "file.txt").write_text("file")
    app, inner = App(), App()
    inner.static("/", tmp_path, index=None)
    inner.get("/route")(lambda: "route")
    if has_middleware:
        inner.middleware(lambda request, next: next(request))
    app.mount("/inner", inner)
    app.get("/route")(lambda: "outer route")
    with Client(app) as client:
        assert client.get("/inner/file.txt").text == "file"
        assert client.get("/inner/route").text == "route"
        assert client.get("/inner/nothing").status_code == 404
        assert client.get("/route").text == "outer route"


class TestUnmatchedBelowAMount:
    @staticmethod
    def told(who: str, *, is_async: bool = False):
        """An error handler that says whose it is."""

        def handler(request, error):
            return Response(f"{who}: {error.status_code}", error.status_code)

        async def async_handler(request, error):
            return handler(request, error)

        return async_handler if is_async else handler

    def make(self, *, is_async: bool = False, has_outer: bool = True) -> App:
        app, inner, innermost = App(), App(), App()
        if has_outer:
            app.exception_handler(404)(self.told("outer"))
        inner.exception_handler(404)(self.told("inner", is_async=is_async))
        inner.exception_handler(405)(self.told("inner"))
        innermost.exception_handler(404)(self.told("innermost"))
        for one in (app, inner, innermost):
            one.get("/there")(lambda: "there")
        inner.mount("/most", innermost)
        app.mount("/inner", inner)
        return app

    @pytest.mark.parametrize("is_async", [False, True])
    def test_the_innermost_application_answers(self, is_async: bool) -> None:
        with Client(self.make(is_async=is_async)) as client:
            for path, who in (
                ("/nothing", "outer"),
                ("/inner", "inner"),
                ("/inner/nothing", "inner"),
                ("/inner2", "outer"),
                ("/inner/most/nothing", "innermost"),
                ("/inner/mostly", "inner"),
            ):
                assert client.get(path).text == f"{who}: 404", path
            assert client.get("/inner/most/there").text == "there"
            assert client.post("/inner/there").text == "inner: 405"
            assert client.post("/inner/most/there").text == "inner: 405"
            assert client.options("/inner/there").headers["allow"] == "GET, HEAD, OPTIONS"

    @pytest.mark.parametrize("is_async", [False, True])
    def test_elsewhere_the_response_is_the_usual_one(self, is_async: bool) -> None:
        with (
            Client(self.make(is_async=is_async, has_outer=False)) as client,
            Client(App()) as plain,
        ):
            for path in ("/nothing", "/inner2"):
                found, usual = client.get(path), plain.get(path)
                assert (found.status_code, found.text) == (404, usual.text)
                assert found.headers["content-type"] == usual.headers["content-type"]

    def test_middleware_sees_what_is_below_its_own_prefix(self) -> None:
        app, inner, seen = App(), App(), []

        @app.middleware
        def outer_middleware(request, next):
            seen.append(f"outer {request.path}")
            return next(request)

        @inner.middleware
        async def inner_middleware(request, next):
            seen.append(f"inner {request.path}")
            response = await next(request)
            response.headers["x-inner"] = "1"
            return response

        app.mount("/inner", inner)
        with Client(app) as client:
            assert client.get("/inner/x").headers["x-inner"] == "1"
            assert "x-inner" not in client.get("/x").headers
        assert seen == ["outer /inner/x", "inner /inner/x", "outer /x"]
