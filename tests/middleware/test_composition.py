"""What a chain of middleware makes of whatever fails in it; ``Middleware`` in two halves."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import pytest
from citius import App, Forbidden, Request, Response
from citius.testing import Client
from citius.web.middleware import AnyMiddleware, AsyncNext, Middleware, Next


class Mark(Middleware):
    """Writes down whose response it has seen."""

    def __init__(self, name: str) -> None:
        self.name = name

    def after(self, request: Request, response: Response) -> Response:
        response.headers.add("seen", f"{self.name} {response.status_code}")
        return response


class SlowMark(Mark):
    async def before(self, request: Request) -> None:
        await asyncio.sleep(0)

    async def after(self, request: Request, response: Response) -> Response:
        await asyncio.sleep(0)
        return super().after(request, response)


def mark(request: Request, next: Next) -> Response:
    response = next(request)
    response.headers.add("seen", f"def {response.status_code}")
    return response


async def mark_async(request: Request, next: AsyncNext) -> Response:
    response = await next(request)
    response.headers.add("seen", f"async {response.status_code}")
    return response


def fail(request: Request) -> Any:
    raise {
        "/expected": Forbidden("no"),
        "/unexpected": IndexError("i"),
        "/handled": KeyError("k"),
        "/twice": ZeroDivisionError(),
    }[request.path]


async def fail_late(request: Request) -> Any:
    await asyncio.sleep(0)
    fail(request)


def handle_twice(request: Request, error: Exception) -> Any:
    raise ValueError("in the error handler")


FAILURES = {"/expected": 403, "/unexpected": 500, "/handled": 409, "/twice": 500, "/nowhere": 404}


def app_of(*middleware: AnyMiddleware, handler: str = "def") -> App:
    app = App()
    for one in middleware:
        app.middleware(one)
    for path in FAILURES:
        if path != "/nowhere":
            app.get(path, blocking=handler == "blocking")(fail_late if handler == "async" else fail)
    app.exception_handler(KeyError)(lambda request, error: Response("key", 409))
    app.exception_handler(ZeroDivisionError)(handle_twice)
    return app


@pytest.mark.parametrize("handler", ["def", "async", "blocking"])
@pytest.mark.parametrize("middleware", [Mark("halves"), SlowMark("slow"), mark, mark_async])
def test_every_failure_is_a_response_when_middleware_sees_it(
    handler: str, middleware: AnyMiddleware
) -> None:
    if handler == "async" and middleware is mark:
        pytest.skip("a def that reads the response of an async def is refused, with a message")
    app = app_of(middleware, Mark("inner"), handler=handler)
    with Client(app, raise_errors=False) as client:
        for path, status in FAILURES.items():
            answer = client.get(path)
            assert answer.status_code == status, path
            inner, outer = answer.headers.getlist("seen")
            assert (inner, outer.split()[1]) == (f"inner {status}", str(status)), path


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failing_middleware_is_a_response_to_those_around_it(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: Request, next: Next) -> Response:
        raise RuntimeError("the middleware itself")

    async def broken_async(request: Request, next: AsyncNext) -> Response:
        raise RuntimeError("the middleware itself")

    app = app_of(Mark("outer"), broken_async if is_async else broken)
    with Client(app, raise_errors=False) as client:
        answer = client.get("/handled")
        assert (answer.status_code, answer.headers["seen"]) == (500, "outer 500")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the middleware itself" in caplog.text


def test_an_unexpected_exception_is_reported_once() -> None:
    app = app_of(Mark("a"), Mark("b"))
    with pytest.raises(IndexError), Client(app) as client:
        client.get("/unexpected")


def test_a_mounted_application_has_the_last_word_on_its_own_failures() -> None:
    inner = App()
    inner.middleware(Mark("inner"))
    inner.get("/")(lambda: [][0])
    inner.exception_handler(500)(lambda request, error: Response("inner", 500))
    app = App()
    app.middleware(Mark("outer"))
    app.mount("/inner", inner)
    app.get("/")(lambda: [][0])
    app.exception_handler(500)(lambda request, error: Response("outer", 500))
    with Client(app, raise_errors=False) as client:
        assert (client.get("/").text, client.get("/inner").text) == ("outer", "inner")
        assert client.get("/inner").headers.getlist("seen") == ["inner 500", "outer 500"]


@pytest.mark.parametrize("handler", ["def", "async", "blocking"])
def test_before_may_respond_in_place_of_the_handler(handler: str) -> None:
    class Closed(Middleware):
        def before(self, request: Request) -> Response:
            return Response("closed", 503)

        def after(self, request: Request, response: Response) -> Response:
            raise AssertionError("not called for its own response")

    with Client(app_of(Closed(), handler=handler)) as client:
        assert client.get("/unexpected").status_code == 503
        assert client.get("/nowhere").status_code == 503


def test_bind_leaves_routes_out() -> None:
    asked: list[tuple[str, str | None]] = []

    class Only(Mark):
        def bind(self, method: str, pattern: str | None, handler: Any) -> AnyMiddleware | None:
            asked.append((method, pattern))
            return self if pattern == "/expected" else None

    with Client(app_of(Only("only"))) as client:
        assert client.get("/expected").headers["seen"] == "only 403"
        assert "seen" not in client.get("/handled").headers
        assert "seen" not in client.get("/nowhere").headers
    assert ("", None) in asked
    assert ("HEAD", "/expected") in asked


@pytest.mark.parametrize("has_middleware", [False, True])
@pytest.mark.parametrize("has_handler", [False, True])
def test_options_lists_the_methods_whatever_is_around(
    has_middleware: bool, has_handler: bool
) -> None:
    app = App()
    if has_middleware:
        app.middleware(Middleware())
    if has_handler:
        app.exception_handler(404)(lambda request, error: Response("mine", 404))
    app.get("/")(lambda: "x")
    with Client(app) as client:
        answer = client.request("OPTIONS", "/")
        assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        assert client.request("OPTIONS", "/nowhere").status_code == 404


@pytest.mark.parametrize("fails_in", ["handler", "middleware"])
def test_an_error_handler_is_called_while_its_error_is_handled(fails_in: str) -> None:
    """So that ``logging.exception`` and a bare ``raise`` in it mean that error."""
    app = App()
    handled: list[tuple[Exception, BaseException | None]] = []

    @app.middleware
    def around(request: Request, next: Next) -> Response:
        response = next(request)
        if fails_in == "middleware":
            raise KeyError(fails_in)
        return response

    @app.get("/")
    def hello() -> str:
        if fails_in == "handler":
            raise KeyError(fails_in)
        return "Welcome!"

    @app.exception_handler(KeyError)
    def of_key(request: Request, error: KeyError) -> Response:
        handled.append((error, sys.exc_info()[1]))
        raise

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 500
    ((error, current),) = handled
    assert str(error) == repr(fails_in)
    assert current is error
