"""Declared responses: filtered, with the status and the fields of the route."""

from __future__ import annotations

import ctypes
import mmap
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from citius import App, ConfigError, Depends, Request, Response, json_response
from citius.testing import Client
from citius.web.responses.results import has_records_in_fields


class User(msgspec.Struct):
    name: str


class Secret(User):
    password: str = "secret"


@dataclass
class Row:
    name: str
    password: str = "secret"


class Shape(TypedDict):
    name: str


class Problem(msgspec.Struct):
    code: int


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
def test_only_declared_fields_are_sent(kind: str) -> None:
    app = App()
    values: list[Any] = [Secret("x"), Row("x"), {"name": "x", "password": "secret"}]

    def add(path: str, value: Any, model: Any, returned: Any) -> None:
        async def coroutine() -> Any:
            return value

        def plain() -> Any:
            return value

        handler = coroutine if kind == "async" else plain
        handler.__annotations__["return"] = returned
        options: Any = {} if model is None else {"response": model}
        app.get(path, blocking=kind == "blocking", **options)(handler)

    for index, value in enumerate(values):
        add(f"/returned/{index}", value, None, User)
        add(f"/response/{index}", value, User, Any)
        add(f"/list/{index}", [value], None, list[User])
        add(f"/either/{index}", value, None, User | Response)
    add("/typed-dict", {"name": "x", "password": "secret"}, None, Shape)
    with Client(app) as client:
        for index in range(len(values)):
            for path in ("returned", "response", "either"):
                assert client.get(f"/{path}/{index}").json() == {"name": "x"}
            assert client.get(f"/list/{index}").json() == [{"name": "x"}]
        assert client.get("/typed-dict").json() == {"name": "x"}
        packed = client.get("/returned/0", headers={"accept": "application/msgpack"})
        assert packed.msgpack() == {"name": "x"}


def test_status_headers_and_media_type() -> None:
    app = App()

    @app.post("/", status_code=201, headers={"x-made": "1"}, content_type="application/vnd.x+json")
    def make() -> User:
        return Secret("x")

    @app.post("/own", status_code=201)
    def own() -> Response:
        return Response("own", 202)

    @app.delete("/none", status_code=200, headers={"x-gone": "1"})
    def none() -> None: ...

    with Client(app) as client:
        made = client.post("/")
        assert (made.status_code, made.headers["x-made"]) == (201, "1")
        assert made.headers["content-type"] == "application/vnd.x+json"
        assert made.json() == {"name": "x"}
        assert client.post("/own").status_code == 202
        gone = client.delete("/none")
        assert (gone.status_code, gone.headers["x-gone"]) == (204, "1")


def test_several_by_status() -> None:
    app = App()

    @app.get("/{code:int}", responses={409: Problem, 404: "no such user"})
    def handler(code: int) -> User | Response:
        return User("x") if code == 200 else Response({"code": code, "inner": "secret"}, code)

    with Client(app) as client:
        assert client.get("/200").json() == {"name": "x"}
        assert client.get("/409").json() == {"code": 409}
        assert client.get("/404").json() == {"code": 404, "inner": "secret"}


def test_a_value_that_is_not_of_the_declared_type_is_an_error() -> None:
    app = App()

    @app.get("/")
    def handler() -> User:
        return Problem(1)  # type: ignore[return-value]

    message = r"test_results.py:\d+\) returned .*declared User"
    with Client(app) as client, pytest.raises(TypeError, match=message):
        client.get("/")
    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 500


def test_routes_that_declare_nothing_are_called_directly() -> None:
    from citius.web.binding.bind import bind_endpoint

    app = App()

    @app.get("/{id:int}")
    def handler(id: int) -> dict[str, int]:
        return {"id": id}

    @app.get("/text")
    def text() -> str:
        return "x"

    for endpoint in app.endpoints:
        assert bind_endpoint(endpoint, None).call is endpoint.handler


def test_a_status_that_is_none() -> None:
    with pytest.raises(ConfigError, match="status_code to be within 200 to 599, got 99"):
        App().get("/", status_code=99)(lambda: "x")


class Author(msgspec.Struct):
    name: str


class Account(Author):
    password: str = "secret"


class Book(msgspec.Struct):
    title: str
    author: Author
    others: list[Author] = []
    by_role: dict[str, Author | None] = {}
    at: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    data: bytes = b"\xff"


@dataclass
class Shelf:
    books: tuple[Book, ...]


class Node(msgspec.Struct):
    value: int
    next: Node | None = None


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
def test_only_declared_fields_of_parts_are_sent(kind: str) -> None:
    """A value of exactly the declared class may have parts of subclasses, with fields of their own."""
    app, account = App(), Account("x")
    book = Book("t", account, [account], {"editor": account})

    def add(path: str, value: Any, returned: Any) -> None:
        async def coroutine() -> Any:
            return value

        def plain() -> Any:
            return value

        handler = coroutine if kind == "async" else plain
        handler.__annotations__["return"] = returned
        app.get(path, blocking=kind == "blocking")(handler)

    add("/book", book, Book)
    add("/shelf", Shelf((book,)), Shelf)
    with Client(app) as client:
        assert client.get("/book").json() == {
            "title": "t", "author": {"name": "x"}, "others": [{"name": "x"}],
            "at": "2026-01-02T00:00:00Z", "data": "/w==",
            "by_role": {"editor": {"name": "x"}},
        }  # fmt: skip
        assert "secret" not in client.get("/shelf").text


def test_parts_that_have_no_more_fields_cost_nothing() -> None:
    assert has_records_in_fields(Book)
    assert has_records_in_fields(Shelf)
    assert has_records_in_fields(Node)
    # What is in no field is converted, which takes the fields of a subclass away.
    for model in (User, Row, Shape, Problem, list[User], dict[str, Author], User | None):
        assert not has_records_in_fields(model)


def test_buffers_are_sent_as_their_bytes() -> None:
    """Scale, last paragraph: a handler that returned an array or a mapped file was a 500."""
    with mmap.mmap(-1, 3) as mapped:
        mapped[:] = b"abc"
        values: list[Any] = [
            bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXc")[::2], array("B", b"abc"),
            array("b", b"abc"), (ctypes.c_ubyte * 3)(*b"abc"), mapped,
        ]  # fmt: skip
        app = App()

        @app.get("/{n:int}")
        def whole(n: int) -> Any:
            return values[n]

        @app.get("/response/{n:int}")
        def response(n: int) -> dict[str, int] | Response:
            return Response(values[n], 200, content_type="text/x")

        @app.get("/stream/{n:int}")
        def stream(n: int) -> Any:
            return iter([values[n], values[n]])

        @app.get("/numbers")
        def numbers() -> Any:
            return array("d", [1.5])

        with Client(app) as client:
            for n in range(len(values)):
                plain = client.get(f"/{n}")
                assert (plain.content, plain.headers["content-type"]) == (
                    b"abc", "application/octet-stream",
                )  # fmt: skip
                assert client.get(f"/response/{n}").content == b"abc"
                assert client.get(f"/stream/{n}").content == b"abcabc"
            with pytest.raises(TypeError, match=r"array.* has items of 8 bytes.*tolist"):
                client.get("/numbers")


@pytest.mark.parametrize("make", [Response, json_response])
def test_a_response_that_is_kept_is_as_each_route_declares_it(
    make: Callable[[object], Response],
) -> None:
    app, kept = App(), make(Secret("a", "p"))

    @app.get("/public", response=User)
    def public() -> Response:
        return kept

    @app.get("/own", response=Secret)
    def own() -> Response:
        return kept

    with Client(app) as client:
        for _ in range(2):
            assert client.get("/public").json() == {"name": "a"}
            assert client.get("/own").json() == {"name": "a", "password": "p"}


ended: list[int] = []


def numbered(request: Request) -> Iterator[int]:
    number = int(request.query["n"])
    yield number
    ended.append(number)


class Chunks:
    """A stream that can be read again."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"


def test_a_stream_that_is_kept_ends_the_dependencies_of_its_own_request() -> None:
    app, kept = App(), Response(Chunks())

    @app.get("/")
    async def stream(number: Annotated[int, Depends(numbered)]) -> Response:
        return kept

    with Client(app) as client:
        for number in range(3):
            assert client.get(f"/?n={number}").content == b"ab"
            assert ended == list(range(number + 1))
