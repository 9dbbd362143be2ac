"""JSON Lines of iterators of values (frameworks 85)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from citius import App, Depends, Response
from citius.testing import Client


class User(msgspec.Struct):
    name: str


class Account(User):
    password: str = "SECRET"


class Model(pydantic.BaseModel):
    name: str


class ModelAccount(Model):
    password: str = "SECRET"


def lines(client: Client, path: str) -> list[Any]:
    found = client.get(path)
    assert (found.status_code, found.headers["content-type"]) == (200, "application/jsonl")
    return [json.loads(line) for line in found.text.splitlines()]


def test_iterators_of_all_kinds() -> None:
    app = App()

    @app.get("/def")
    def plain() -> Iterator[User]:
        return iter([Account("a"), Account("b")])

    @app.get("/generator")
    def generator() -> Generator[User, None, None]:
        yield Account("a")
        yield Account("b")

    @app.get("/iterable")
    def iterable() -> Iterable[User]:
        yield Account("a")
        yield Account("b")

    @app.get("/blocking", blocking=True)
    def blocking() -> Iterator[User]:
        yield Account("a")
        yield Account("b")

    @app.get("/async-generator")
    async def async_generator() -> AsyncIterator[User]:
        yield Account("a")
        yield Account("b")

    @app.get("/async")
    async def asynchronous() -> AsyncIterator[Model]:
        async def source() -> AsyncIterator[Model]:
            yield ModelAccount(name="a")
            yield ModelAccount(name="b")

        return source()

    @app.get("/dicts")
    def dicts() -> Iterator[dict[str, str]]:
        yield {"name": "a"}
        yield {"name": "b"}

    with Client(app) as client:
        for route in app.endpoints:
            assert lines(client, route.pattern) == [{"name": "a"}, {"name": "b"}], route.pattern


def test_the_list_of_an_iterable_is_an_array() -> None:
    app = App()

    @app.get("/")
    def users() -> Iterable[User]:
        return [Account("a")]

    with Client(app) as client:
        assert client.get("/").json() == [{"name": "a"}]


def test_text_is_sent_as_it_is() -> None:
    app = App()

    @app.get("/")
    def text() -> Iterator[str]:
        yield "a"
        yield "b"

    with Client(app) as client:
        assert client.get("/").text == "ab"


def test_status_and_media_type_of_the_route() -> None:
    app = App()

    @app.get("/", status_code=203, content_type="application/x-ndjson", headers={"x-a": "1"})
    def users(own: bool = False) -> Iterator[User] | Response:
        return Response("own", 202) if own else iter([User("a")])

    with Client(app) as client:
        made = client.get("/")
        assert (made.status_code, made.headers["x-a"]) == (203, "1")
        assert made.headers["content-type"] == "application/x-ndjson"
        assert client.get("/?own=true").text == "own"


log: list[str] = []


def session() -> Iterator[None]:
    yield
    log.append("session")


@pytest.mark.parametrize("is_async", [False, True])
def test_the_source_is_closed_before_its_dependency(is_async: bool) -> None:
    log.clear()
    app = App()
    if is_async:

        @app.get("/")
        async def asynchronous(_: Annotated[None, Depends(session)]) -> AsyncIterator[User]:
            try:
                yield User("a")
            finally:
                log.append("source")
    else:

        @app.get("/")
        def users(_: Annotated[None, Depends(session)]) -> Iterator[User]:
            try:
                yield User("a")
            finally:
                log.append("source")

    with Client(app) as client:
        assert lines(client, "/") == [{"name": "a"}]
        assert log == ["source", "session"]
        assert client.request("HEAD", "/").status_code == 200


def test_the_document() -> None:
    app = App()

    @app.get("/")
    def users() -> Iterator[User]:
        yield User("a")

    made = app.openapi()["paths"]["/"]["get"]["responses"]["200"]["content"]
    assert made == {"application/jsonl": {"schema": {"$ref": "#/components/schemas/User"}}}
