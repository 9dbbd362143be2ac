"""Functions that options take are called as the option says, or the start fails (frameworks 2 and 3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from citius import (
    App,
    ConfigError,
    Depends,
    Header,
    Query,
    Request,
    Response,
    WebSocket,
    defer,
)
from citius.testing import Client
from citius.web.middleware import Middleware, RateLimit
from citius.web.realtime.events import EventStream
from citius.web.responses.templates import Templates
from citius.web.security import JWT, APIKey, Authenticate, Basic, Bearer, Principal, Requires


def user() -> str:
    return "ann"


def of_default(*given: Any, who: str = Depends(user)) -> Any:
    return who


def of_annotation(*given: Any, who: Annotated[str, Header()] = "") -> Any:
    return who


def of_query(*given: Any, page: int = Query(1, ge=1)) -> Any:
    return page


class Called:
    def __call__(self, *given: Any, who: str = Depends(user)) -> Any:
        return who


@functools.wraps(of_default)
def wrapping(*args: Any, **options: Any) -> Any:
    return of_default(*args, **options)


MARKED: list[Callable[..., Any]] = [
    of_default, of_annotation, of_query, Called(), wrapping, functools.partial(of_default, "x"),
]  # fmt: skip


def jwt(function: Callable[..., Any]) -> object:
    return JWT(function, algorithms=["RS256"])


def template(option: str, tmp: str) -> Callable[[Any], object]:
    return lambda function: Templates(tmp, **{option: {"f": function}})


def room(function: Callable[..., Any]) -> object:
    return App().room("r", on_gap=function)


def executor(function: Callable[..., Any]) -> None:
    App().executor("e", function)


def completion(function: Callable[..., Any]) -> object:
    return App().mcp("/mcp").completion("p", "a")(function)


def middleware(function: Callable[..., Any]) -> object:
    return App().middleware(function)


def error_handler(function: Callable[..., Any]) -> object:
    return App().exception_handler(404)(function)


OPTIONS: list[Callable[[Any], object]] = [
    lambda f: RateLimit(1, 1, key=f), Bearer, APIKey, Basic, jwt, lambda f: Authenticate(f),
    template("globals", "."), template("filters", "."), room, executor, completion, middleware,
    error_handler, lambda f: App().on_startup(f), lambda f: App().on_shutdown(f),
    lambda f: App().readiness(f), lambda f: App(lifespan=f),
]  # fmt: skip


@pytest.mark.parametrize("function", MARKED, ids=range(len(MARKED)))
@pytest.mark.parametrize("option", OPTIONS, ids=range(len(OPTIONS)))
def test_markers_are_refused_with_a_place(
    option: Callable[[Any], object], function: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match="which only handlers and dependencies") as refused:
        option(function)
    assert f"{__file__}:" in str(refused.value)


async def awaited(*given: Any) -> Any: ...


def generator(*given: Any) -> Iterator[str]:
    yield "x"


NOT_AWAITED = [OPTIONS[0], OPTIONS[4], OPTIONS[6], OPTIONS[7], OPTIONS[8], OPTIONS[9]]


@pytest.mark.parametrize("option", NOT_AWAITED, ids=range(len(NOT_AWAITED)))
@pytest.mark.parametrize("function", [awaited, functools.partial(awaited, 1)])
def test_coroutine_functions_are_refused_where_nothing_awaits(
    option: Callable[[Any], object], function: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match="is not awaited"):
        option(function)


@pytest.mark.parametrize("option", OPTIONS[:5], ids=range(5))
@pytest.mark.parametrize("function", [generator, lambda: "none", None, 7, int], ids=range(5))
def test_what_cannot_be_called_so_is_refused(
    option: Callable[[Any], object], function: Callable[..., Any]
) -> None:
    if option in (OPTIONS[4],) and not callable(function):
        pytest.skip("a key")
    with pytest.raises(ConfigError):
        option(function)


def test_requires_takes_a_scheme() -> None:
    with pytest.raises(ConfigError, match=f"{__file__}:"):
        Requires(user)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class AsyncObject:
    """Awaited by what it is called for: its class says so, not the object."""

    async def __call__(self, request: Request, next: Any) -> Response:
        response = await next(request)
        response.headers["x-seen"] = "yes"
        return response


class AsyncHandler:
    async def __call__(self, request: Request, error: Exception) -> Response:
        return Response("handled", 404)


@pytest.mark.parametrize("is_handler_async", [False, True])
def test_objects_whose_call_is_a_coroutine_function_are_awaited(is_handler_async: bool) -> None:
    app = App()
    app.middleware(AsyncObject())
    app.exception_handler(404)(AsyncHandler())

    def handler() -> str:
        return "h"

    async def async_handler() -> str:
        return "h"

    app.get("/")(async_handler if is_handler_async else handler)
    with Client(app) as client:
        assert client.get("/").headers["x-seen"] == "yes"
        response = client.get("/nothing")
        assert (response.text, response.headers["x-seen"]) == ("handled", "yes")


def test_deferred_functions_take_values() -> None:
    app, seen = App(), list[str]()

    def work(who: str = Depends(user)) -> None:
        seen.append(who)

    @app.get("/given")
    def given(request: Request) -> str:
        defer(request, work, "bob")
        return "ok"

    @app.get("/marker")
    def marker(request: Request) -> str:
        with pytest.raises(TypeError, match="the parameter who of .*work"):
            defer(request, work)
        return "refused"

    with Client(app) as client:
        assert client.get("/marker").text == "refused"
        assert client.get("/given").text == "ok"
    assert seen == ["bob"]


def test_on_close_is_not_awaited() -> None:
    app = App()

    async def leave(stream: EventStream) -> None: ...

    @app.get("/")
    async def events() -> str:
        with pytest.raises(TypeError, match="not awaited"):
            EventStream(on_close=leave)
        return "refused"

    with Client(app) as client:
        assert client.get("/").text == "refused"


class Stamp(Middleware):
    """Stands for security headers."""

    def after(self, request: Request, response: Response) -> Response:
        response.headers["x-stamp"] = "1"
        return response


def stamp(request: Request, next: Any) -> Response:
    response = next(request)
    response.headers["x-stamp"] = "1"
    return response


async def async_stamp(request: Request, next: Any) -> Response:
    response = await next(request)
    response.headers["x-stamp"] = "1"
    return response


UNMATCHED = [
    ("GET", "/nothing", 404), ("POST", "/a", 405), ("OPTIONS", "/a", 204), ("OPTIONS", "*", 204),
    ("GET", "/a/", 308), ("POST", "/b", 308), ("GET", "/ws", 426), ("GET", "/inner/a/", 308),
    ("GET", "/inner/nothing", 404), ("POST", "/inner/a", 405), ("OPTIONS", "/inner/a", 204),
    ("GET", "/inner/ws", 426),
]  # fmt: skip


def site() -> App:
    app, inner = App(redirect_slashes=True), App()
    for one in (app, inner):
        one.get("/a")(lambda: "a")
        one.post("/b/")(lambda: "b")

        @one.websocket("/ws")
        async def talk(ws: WebSocket) -> None: ...

    app.mount("/inner", inner)
    return app


@pytest.mark.parametrize("middleware", [Stamp(), stamp, async_stamp], ids=["class", "def", "async"])
@pytest.mark.parametrize(("method", "path", "status"), UNMATCHED)
def test_middleware_sees_what_no_route_takes(
    middleware: Any, method: str, path: str, status: int
) -> None:
    app = site()
    app.middleware(middleware)
    with Client(app) as client, Client(site()) as plain:
        response = client.request(method, path)
        assert (response.status_code, response.headers.get("x-stamp")) == (status, "1")
        expected = plain.request(method, path)
        assert expected.status_code == status
        for name in ("location", "allow", "sec-websocket-version", "upgrade"):
            assert response.headers.get(name) == expected.headers.get(name)


def test_middleware_decides_before_a_redirect() -> None:
    """A client without credentials does not learn which paths exist."""
    app = site()
    app.middleware(Authenticate(Bearer(lambda token: Principal("ann") if token == "t" else None)))
    with Client(app) as client:
        for method, path, status in UNMATCHED:
            assert client.request(method, path).status_code == 401
            good = client.request(method, path, headers={"authorization": "Bearer t"})
            assert good.status_code == status


def test_locations_are_ascii() -> None:
    app = App(redirect_slashes=True)
    app.get("/{name}")(lambda name: name)
    app.middleware(stamp)
    with Client(app) as client:
        for path in ("/%C3%A9/?q=%20", "/\\evil.example/"):
            location = client.get(path).headers["location"]
            assert location.isascii()
            assert location.startswith("../")


def test_templates_take_functions(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{{ 'a' | up }}{{ one() }}")
    made = Templates(tmp_path, filters={"up": str.upper}, globals={"one": dict, "two": 2})
    app = App()
    app.get("/")(lambda request: made("t", request))
    with Client(app) as client:
        assert client.get("/").text == "A{}"
