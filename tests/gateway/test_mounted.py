"""Which application ``request.app`` is where one application is mounted in another."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from citius import App, HTTPError, NotFound, Request, Response, WebSocket
from citius.testing import Client
from citius.web.execution.background import defer, pending
from citius.web.middleware import Middleware

if TYPE_CHECKING:
    from collections.abc import Iterator

    Next = Callable[[Request], Any]


def named(name: str) -> App:
    """An application whose state says its name, with routes that tell the name they find."""
    app = App()
    app.state.name = name

    @app.get("/def")
    def plain(request: Request) -> str:
        return request.app.state.name

    @app.get("/async")
    async def later(request: Request) -> str:
        return request.app.state.name

    @app.get("/thread", blocking=True)
    def threaded(request: Request) -> str:
        return request.app.state.name

    @app.get("/typed/{number}")
    def typed(number: int, request: Request) -> str:
        return f"{number} {request.app.state.name}"

    @app.get("/fails")
    def fails(request: Request) -> str:
        raise HTTPError(418)

    @app.websocket("/socket")
    async def socket(ws: WebSocket) -> None:
        await ws.accept()
        await ws.send(ws.app.state.name)

    return app


def noting(app: App, seen: list[str], kind: str) -> None:
    """Middleware of ``app`` that notes which application it sees before and after what is inside."""
    mine: str = app.state.name

    if kind == "def":

        @app.middleware
        def around(request: Request, next: Next) -> Response:
            seen.append(f"{mine}: {request.app.state.name}")
            # Around an `async def` handler what follows is called before the handler.
            return next(request)

    elif kind == "async":

        @app.middleware
        async def around_async(
            request: Request, next: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            seen.append(f"{mine}: {request.app.state.name}")
            response = await next(request)
            seen.append(f"{mine}: {request.app.state.name}")
            return response

    else:

        class Halves(Middleware):
            def before(self, request: Request) -> None:
                seen.append(f"{mine}: {request.app.state.name}")

            def after(self, request: Request, response: Response) -> Response:
                seen.append(f"{mine}: {request.app.state.name}")
                return response

            def connect(self, socket: WebSocket) -> None:
                seen.append(f"{mine}: {socket.app.state.name}")

            def disconnect(self, socket: WebSocket) -> None:
                seen.append(f"{mine}: {socket.app.state.name}")

        app.middleware(Halves())


def nested() -> tuple[App, App, App]:
    """Three applications, each mounted in the one before it."""
    outer, middle, inner = named("outer"), named("middle"), named("inner")
    middle.mount("/inner", inner)
    outer.mount("/middle", middle)
    return outer, middle, inner


PREFIXES = {"outer": "", "middle": "/middle", "inner": "/middle/inner"}


@pytest.fixture(params=["", "outer", "middle", "inner", "outer middle", "outer middle inner"])
def surrounded(request: pytest.FixtureRequest) -> Iterator[tuple[Client, list[str], list[str]]]:
    """A client, what the middleware notes, and the applications that have some."""
    apps = nested()
    seen: list[str] = []
    having: list[str] = request.param.split()
    for app in apps:
        if app.state.name in having:
            for kind in ("def", "halves"):
                noting(app, seen, kind)
    with Client(apps[0]) as client:
        yield client, seen, having


def expected(having: list[str], name: str) -> list[str]:
    """What middleware around ``name`` notes: each its own application, twice inwards and once outwards."""
    around = [one for one in PREFIXES if one in having and PREFIXES[name].startswith(PREFIXES[one])]
    inwards = [f"{one}: {one}" for one in around for _ in range(2)]
    return [*inwards, *(f"{one}: {one}" for one in reversed(around))]


@pytest.mark.parametrize("path", ["/def", "/async", "/thread", "/typed/7"])
@pytest.mark.parametrize("name", PREFIXES)
def test_a_handler_and_middleware_see_their_own_application(
    surrounded: tuple[Client, list[str], list[str]], name: str, path: str
) -> None:
    client, seen, having = surrounded
    # The second request takes what the first has prepared.
    for _ in range(2):
        del seen[:]
        assert client.get(PREFIXES[name] + path).text.split()[-1] == name
        assert seen == expected(having, name)


@pytest.mark.parametrize("name", PREFIXES)
def test_a_websocket_sees_its_own_application(
    surrounded: tuple[Client, list[str], list[str]], name: str
) -> None:
    client, seen, having = surrounded
    with client.websocket(f"{PREFIXES[name]}/socket") as ws:
        assert ws.receive() == name
    assert seen == expected(having, name)


@pytest.mark.parametrize("name", PREFIXES)
def test_what_has_no_route_begins_in_the_outermost_application(
    surrounded: tuple[Client, list[str], list[str]], name: str
) -> None:
    client, seen, having = surrounded
    assert client.get(f"{PREFIXES[name]}/missing").status_code == 404
    assert seen == expected(having, name)
    del seen[:]
    assert client.post(f"{PREFIXES[name]}/def").status_code == 405
    assert seen == expected(having, name)


@pytest.mark.parametrize("name", PREFIXES)
def test_async_middleware(name: str) -> None:
    apps = nested()
    seen: list[str] = []
    for app in apps:
        noting(app, seen, "async")
    with Client(apps[0]) as client:
        assert client.get(f"{PREFIXES[name]}/def").text == name
    around = [one for one in PREFIXES if PREFIXES[name].startswith(PREFIXES[one])]
    inwards = [f"{one}: {one}" for one in around]
    assert seen == [*inwards, *reversed(inwards)]


@pytest.mark.parametrize("with_middleware", [False, True])
def test_error_handlers_see_the_application_of_the_route(with_middleware: bool) -> None:
    outer, middle, inner = nested()
    if with_middleware:
        noting(outer, [], "def")

    def tells(request: Request, error: Exception) -> Response:
        return Response(request.app.state.name, 418)

    middle.exception_handler(418)(tells)
    outer.exception_handler(418)(tells)
    inner.exception_handler(NotFound)(tells)
    with Client(outer) as client:
        for name, prefix in PREFIXES.items():
            assert client.get(f"{prefix}/fails").text == name
        assert client.get("/middle/inner/missing").text == "inner"


def test_an_application_in_two_places_is_one() -> None:
    outer, inner = named("outer"), named("inner")
    outer.mount("/a", inner)
    outer.mount("/b", inner)
    noting(outer, [], "def")
    with Client(outer) as client:
        assert client.get("/a/def").text == "inner"
        assert client.get("/b/def").text == "inner"
        assert client.get("/def").text == "outer"


def test_middleware_that_answers_itself_is_in_its_own_application() -> None:
    outer, middle, _ = nested()
    seen: list[str] = []
    noting(outer, seen, "halves")

    @middle.middleware
    def refuse(request: Request, next: Next) -> Response:
        return Response(request.app.state.name, 403)

    with Client(outer) as client:
        assert client.get("/middle/inner/def").text == "middle"
        assert seen == ["outer: outer", "outer: outer"]


def test_middleware_that_leaves_a_route_alone_leaves_no_border() -> None:
    outer, _, _ = nested()

    class Nowhere(Middleware):
        def bind(self, method: str, pattern: str | None, handler: object) -> None:
            return None

    outer.middleware(Nowhere())
    with Client(outer) as client:
        for name, prefix in PREFIXES.items():
            assert client.get(f"{prefix}/async").text == name


def test_work_after_the_response_is_that_of_the_served_application() -> None:
    outer, inner = named("outer"), named("inner")
    ended = threading.Event()
    waiting: list[int] = []

    @inner.get("/defers", blocking=True)
    def defers(request: Request) -> str:
        defer(request, ended.wait)
        waiting.append(pending(outer))
        return "begun"

    outer.mount("/in", inner)
    with Client(outer) as client:
        assert client.get("/in/defers").text == "begun"
        assert waiting == [1]
        ended.set()
