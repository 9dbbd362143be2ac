"""Responses that an application keeps and returns again: what is added to one is of one request alone.

Each application is there twice: with responses that are made once, and with responses that are made for
each request. Clients cannot tell one from the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any

import pytest
from citius import App, HTTPError, Request, Response
from citius.testing import Client
from citius.web.middleware import (
    CORS,
    CSRF,
    AsyncNext,
    ETags,
    Middleware,
    Next,
    RateLimit,
    SecurityHeaders,
    Sessions,
    session,
)

Make = Callable[[str], Response]
"""The response of a name: always the same object, or a new one each time."""


def kept() -> Make:
    responses: dict[str, Response] = {}

    def make(name: str) -> Response:
        return responses.setdefault(name, new(name))

    return make


def new(name: str) -> Response:
    return Response(f"the {name}", 200, {"x-name": name})


class Halves(Middleware):
    """Adds what its request says; some requests end here."""

    def __init__(self, make: Make) -> None:
        self.make = make

    def before(self, request: Request) -> Response | None:
        return self.make("early") if request.query.get("early") else None

    def after(self, request: Request, response: Response) -> Response:
        response.headers.add("x-of", request.query.get("of", "nobody"))
        return response


class AsyncHalves(Middleware):
    """The same in a coroutine."""

    def __init__(self, make: Make) -> None:
        self.halves = Halves(make)

    async def before(self, request: Request) -> Response | None:
        await asyncio.sleep(0)
        return self.halves.before(request)

    async def after(self, request: Request, response: Response) -> Response:
        await asyncio.sleep(0)
        return self.halves.after(request, response)


def change(request: Request, response: Response) -> Response:
    response.headers["x-outer"] = request.query.get("of", "nobody")
    if request.query.get("gone"):
        response.status_code, response.body = 410, b"gone"
    return response


def around(make: Make, kind: str) -> Any:
    """A function that ends some requests, and changes the responses to others."""

    def function(request: Request, next: Next) -> Response:
        if request.query.get("early"):
            return make("early")
        return change(request, next(request))

    async def coroutine_function(request: Request, next: AsyncNext) -> Response:
        if request.query.get("early"):
            return make("early")
        return change(request, await next(request))

    return coroutine_function if kind == "async" else function


def caching(make: Make, kind: str) -> Any:
    """A middleware of the application that keeps responses, inside of one that changes them."""
    found: dict[str, Response] = {}

    def function(request: Request, next: Next) -> Response:
        if request.path not in found or make is new:
            found[request.path] = next(request)
        return found[request.path]

    async def coroutine_function(request: Request, next: AsyncNext) -> Response:
        if request.path not in found or make is new:
            found[request.path] = await next(request)
        return found[request.path]

    return coroutine_function if kind == "async" else function


MIDDLEWARE: dict[str, Callable[[Make, str], list[Any]]] = {
    "cors": lambda make, kind: [CORS(["https://a.example"], expose=["x-name"])],
    "csrf": lambda make, kind: [CSRF()],
    "etags": lambda make, kind: [ETags()],
    "limit": lambda make, kind: [RateLimit(1000, 3600)],
    "limit by key": lambda make, kind: [RateLimit(1000, 3600, key=lambda request: "k"), ETags()],
    "limit, async": lambda make, kind: [RateLimit(1000, 3600), around(make, "async")],
    "headers": lambda make, kind: [SecurityHeaders()],
    "sessions": lambda make, kind: [Sessions("a secret of forty characters, at least …")],
    "halves": lambda make, kind: [Halves(make), Halves(make)],
    "async halves": lambda make, kind: [Halves(make), AsyncHalves(make), Halves(make)],
    "function": lambda make, kind: [around(make, kind)],
    "async function": lambda make, kind: [around(make, "async"), Halves(make)],
    "caching": lambda make, kind: [around(make, kind), caching(make, kind)],
    "all": lambda make, kind: [
        SecurityHeaders(), CORS(["https://a.example"]), RateLimit(1000, 3600), ETags(), around(make, kind),
    ],
}  # fmt: skip

REQUESTS: list[tuple[str, dict[str, str]]] = [
    ("/", {}),
    ("/?of=alice", {"origin": "https://a.example"}),
    ("/", {}),
    ("/login?of=alice", {}),
    ("/", {}),
    ("/?early=1&of=alice", {"origin": "https://a.example"}),
    ("/?early=1", {}),
    ("/", {"if-none-match": "*"}),
    ("/?gone=1", {}),
    ("/", {}),
    ("/fails?of=alice", {"origin": "https://a.example"}),
    ("/fails", {}),
    ("/raises?of=alice", {"origin": "https://a.example"}),
    ("/raises", {}),
    ("/nowhere?of=alice", {"origin": "https://a.example"}),
    ("/nowhere", {}),
    ("/", {}),
]


MASKED = ("date", "set-cookie", "ratelimit")
"""Fields whose values differ by the time, or by what was asked before."""


def app_of(name: str, make: Make, kind: str) -> App:
    app = App()
    for one in MIDDLEWARE[name](make, kind):
        app.middleware(one)
    error = HTTPError(418, "short and stout", {"x-pot": "tea"})

    def hello(request: Request) -> Response:
        return make("hello")

    def login(request: Request) -> Response:
        if name == "sessions":
            session(request)["user"] = "alice"
        return make("hello")

    def fails() -> Response:
        raise KeyError("k")

    def raises() -> Response:
        raise error if make is not new else HTTPError(418, "short and stout", {"x-pot": "tea"})

    for path, handler in (("/", hello), ("/login", login), ("/fails", fails), ("/raises", raises)):
        app.get(path, blocking=kind == "blocking")(_async(handler) if kind == "async" else handler)

    @app.exception_handler(KeyError)
    def failed(request: Request, error: KeyError) -> Response:
        return make("failed")

    @app.exception_handler(404)
    def nothing(request: Request, error: HTTPError) -> Response:
        return make("nothing")

    return app


def _async(handler: Callable[..., Response]) -> Callable[..., Any]:
    async def with_request(request: Request) -> Response:
        await asyncio.sleep(0)
        return handler(request)

    async def alone() -> Response:
        await asyncio.sleep(0)
        return handler()

    return with_request if handler.__code__.co_argcount else alone


def seen(name: str, make: Make, kind: str) -> list[Any]:
    found: list[Any] = []
    with Client(app_of(name, make, kind)) as client:
        for target, fields in REQUESTS:
            client.cookies.clear()  # each request is of another client
            reply = client.get(target, headers=fields)
            of_it = sorted(
                (name, "…" if name in MASKED else value)
                for name, value in reply.headers.multi_items()
            )
            found.append((target, reply.status_code, reply.content, of_it))
    return found


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
@pytest.mark.parametrize("name", MIDDLEWARE)
def test_clients_cannot_tell_whether_responses_are_kept(name: str, kind: str) -> None:
    for one, other in zip(seen(name, kept(), kind), seen(name, new, kind), strict=True):
        assert one == other
        assert one[1] != 500


@dataclass(frozen=True, slots=True)
class Frozen(Exception):
    """Has no place for other attributes."""

    code: int


@pytest.mark.parametrize("error", [HTTPError(418, "short and stout"), Frozen(7)])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
def test_an_exception_that_is_raised_again_holds_no_frames_of_requests_before(
    count: int, error: Exception, kind: str
) -> None:
    app = App()

    @app.exception_handler(Frozen)
    def frozen(request: Request, error: Frozen) -> Response:
        return Response("frozen", 418)

    for _ in range(count):
        app.middleware(around(new, kind))

    def raises() -> Response:
        raise error

    app.get("/", blocking=kind == "blocking")(_async(raises) if kind == "async" else raises)
    lengths: list[int] = []
    with Client(app) as client:
        for _ in range(8):
            assert client.get("/").status_code == 418
            lengths.append(sum(1 for _ in walk_tb(error.__traceback__)))
    assert max(lengths[4:]) <= lengths[0]
