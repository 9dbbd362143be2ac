"""Responses send the declared fields only, whichever way the handler makes them (frameworks 1, hostile 6)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from citius import (
    App,
    ConfigError,
    Event,
    Request,
    Response,
    Router,
    event_stream,
    json_response,
    msgpack_response,
)
from citius.testing import Client
from citius.web.middleware import Middleware
from secret_fields import Account, DAccount, DUser, PAccount, PUser, User


class Problem(msgspec.Struct):
    reason: str = "none"


class Detailed(Problem):
    query: str = "SECRET"


PAIRS = [(User, Account("ann")), (DUser, DAccount("ann")), (PUser, PAccount(name="ann"))]

WAYS: list[tuple[Callable[[Any], Any], int]] = [
    (json_response, 200), (lambda value: json_response(value, 201), 201), (msgpack_response, 200),
    (lambda value: Response(value, 202), 202), (lambda value: Response(value, 200), 200),
    (lambda value: Response(value, 299), 299),
]  # fmt: skip


def decoded(response: Any) -> Any:
    if response.headers["content-type"] == "application/msgpack":
        return msgspec.msgpack.decode(response.content)
    return response.json()


@pytest.mark.parametrize(("model", "value"), PAIRS, ids=["Struct", "dataclass", "pydantic"])
@pytest.mark.parametrize(("make", "status"), WAYS, ids=range(len(WAYS)))
@pytest.mark.parametrize("way", ["def", "async", "blocking", "middleware"])
def test_the_type_of_the_route_holds_for_responses(
    model: Any, value: Any, make: Callable[[Any], Any], status: int, way: str
) -> None:
    app = App()

    def one() -> Any:
        return make(value)

    async def one_async() -> Any:
        return make(value)

    def several() -> Any:
        return make([value])

    blocking = way == "blocking"
    app.get("/one", response=model, blocking=blocking)(one_async if way == "async" else one)
    app.get("/several", response=list[model], blocking=blocking)(several)
    app.get("/undeclared")(one)
    if way == "middleware":
        app.middleware(lambda request, next: next(request))
    with Client(app) as client:
        response = client.get("/one")
        assert (response.status_code, decoded(response)) == (status, {"name": "ann"})
        assert decoded(client.get("/several")) == [{"name": "ann"}]
        assert decoded(client.get("/undeclared")) == {"name": "ann", "password": "SECRET"}


@pytest.mark.parametrize(("model", "value"), PAIRS, ids=["Struct", "dataclass", "pydantic"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_type_of_the_route_holds_for_events(model: Any, value: Any, asynchronous: bool) -> None:
    """Only a route of `Iterator[User]` held its events; `response=User` sent all fields of them."""

    def source() -> Iterator[object]:
        yield from (value, Event(value, id="1"), "a text")

    def lists() -> Iterator[object]:
        yield from (value, [value])

    async def async_source() -> AsyncIterator[object]:
        for one in source():
            yield one

    app = App()
    app.get("/one", response=model)(
        lambda: event_stream(async_source() if asynchronous else source())
    )
    app.get("/several", response=list[model])(lambda: event_stream(lists()))
    app.get("/by-status", responses={200: model})(lambda: event_stream(source()))
    with Client(app) as client:
        for path in ("/one", "/by-status"):
            text = client.get(path).text
            assert text.count('data: {"name":"ann"}\n') == 2
            assert "SECRET" not in text
            assert "data: a text" in text
        text = client.get("/several").text
        assert "SECRET" not in text
        assert 'data: {"name":"ann"}\n' in text
        assert 'data: [{"name":"ann"}]\n' in text


def test_other_statuses_are_those_of_responses() -> None:
    app = App()

    @app.get("/", responses={409: Problem})
    def handler(status: int, kind: str) -> User | Response:
        make = json_response if kind == "json" else Response
        return make(Detailed("taken"), status)

    with Client(app) as client:
        for kind in ("json", "value"):
            assert client.get(f"/?status=409&kind={kind}").json() == {"reason": "taken"}
            # Nothing is declared of it, and it is no User.
            assert "query" in client.get(f"/?status=410&kind={kind}").json()
            with pytest.raises(TypeError, match="without name|none of the fields"):
                client.get(f"/?status=200&kind={kind}")


@pytest.mark.parametrize(("model", "value"), PAIRS, ids=["Struct", "dataclass", "pydantic"])
@pytest.mark.parametrize("make", [Response, json_response])
def test_objects_of_the_declared_class_are_so_in_every_status(
    model: Any, value: Any, make: Callable[..., Any]
) -> None:
    app = App()
    app.get("/one", response=model)(lambda status: make(value, int(status)))
    app.get("/all", response=list[model])(lambda status: make([value], int(status)))
    app.get("/in", response=model)(lambda status: make({"user": value}, int(status)))
    app.get("/other", response=model)(lambda status: make({"queued": 1}, int(status)))
    with Client(app) as client:
        for status in (202, 404, 503):
            assert client.get(f"/one?status={status}").json() == {"name": "ann"}
            assert client.get(f"/all?status={status}").json() == [{"name": "ann"}]
            assert client.get(f"/other?status={status}").json() == {"queued": 1}
            with pytest.raises(TypeError, match="is not the declared"):
                client.get(f"/in?status={status}")


def test_a_body_of_the_handlers_own_is_sent_as_it_is() -> None:
    app = App()

    @app.get("/")
    def handler() -> User | Response:
        response = json_response(Account("ann"))
        response.body = b'{"own":1}'
        return response

    with Client(app) as client:
        assert client.get("/").json() == {"own": 1}


def test_lines_hold_for_responses() -> None:
    app = App()

    @app.get("/")
    def handler() -> Iterator[User]:
        return json_response([Account("ann")])  # type: ignore[return-value]  # pyright: ignore

    with Client(app) as client:
        assert client.get("/").json() == [{"name": "ann"}]


# --- what is no value of a declared type -------------------------------------------------------------------


class Settings(msgspec.Struct):
    size: int = 1
    kind: str = "a"


@dataclass
class DSettings:
    size: int = 1


class PSettings(pydantic.BaseModel):
    size: int = 1


class TSettings(TypedDict, total=False):
    size: int


class Empty(msgspec.Struct):
    pass


async def coroutine() -> Any:
    return Settings()


def generator() -> Iterator[Any]:
    yield Settings()


async def async_generator() -> AsyncIterator[Any]:
    yield Settings()


class Other:
    colour = "red"


NO_VALUES: list[Callable[[], Any]] = [
    coroutine, generator, async_generator, lambda: Settings, lambda: DSettings, lambda: PSettings,
    lambda: generator, lambda: math, Other, lambda: Other, lambda: "text", lambda: 7, lambda: len,
    lambda: "".join, lambda: object(), lambda: property(), lambda: map(str, []),
]  # fmt: skip
MODELS = [Settings, DSettings, PSettings, TSettings, Empty]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("make", NO_VALUES, ids=range(len(NO_VALUES)))
@pytest.mark.parametrize("blocking", [False, True], ids=["def", "blocking"])
def test_what_is_no_record_is_no_body_of_defaults(
    model: Any, make: Callable[[], Any], blocking: bool
) -> None:
    app = App()
    if model is Empty and NO_VALUES.index(make) in (8, 14, 15):
        pytest.skip("an object has all of no fields")

    def handler() -> Any:
        return make()

    def inside() -> Any:
        return [make()]

    app.get("/", response=model, blocking=blocking)(handler)
    app.get("/list", response=list[model], blocking=blocking)(inside)
    app.get("/dict", response=dict[str, model])(lambda: {"a": make()})
    app.get("/union", response=model | None)(handler)
    with Client(app) as client:
        for path in ("/", "/list", "/dict", "/union"):
            with pytest.raises(TypeError, match=rf"{__file__}:\d+\) returned"):
                client.get(path)


@pytest.mark.parametrize("model", [Settings, DSettings, PSettings])
def test_records_without_required_fields_are_read_from_objects(model: Any) -> None:
    class Row:
        size = 7

    app = App()
    app.get("/", response=model)(lambda: Row())
    app.get("/list", response=list[model])(lambda: [Row(), {"size": 8}, {}, model(size=9)])
    with Client(app) as client:
        assert client.get("/").json()["size"] == 7
        assert [one["size"] for one in client.get("/list").json()] == [7, 8, 1, 9]


def test_a_task_is_named() -> None:
    app = App()

    @app.get("/")
    async def handler() -> Settings:
        return asyncio.ensure_future(coroutine())  # type: ignore[return-value]  # pyright: ignore

    with Client(app) as client, pytest.raises(TypeError, match="a Task, which has to be awaited"):
        client.get("/")


# --- error handlers, middleware -----------------------------------------------------------------------------


def failing(request: Request, error: KeyError) -> Problem:
    return Detailed(str(error))


async def failing_async(request: Request, error: KeyError) -> Problem | Response:
    return Response(Detailed(str(error)), 418)


def failing_json(request: Request, error: KeyError) -> Problem | Response:
    return json_response(Detailed(str(error)), 418)


def misfit(request: Request, error: KeyError) -> Problem:
    return coroutine()  # type: ignore[return-value]  # pyright: ignore


@pytest.mark.parametrize("handler", [failing, failing_async, failing_json])
@pytest.mark.parametrize("place", ["app", "router", "mounted", "middleware"])
def test_error_handlers_send_what_they_declare(handler: Any, place: str) -> None:
    app, router, inner = App(), Router(), App()
    target: Any = {"router": router, "mounted": inner}.get(place, app)
    target.exception_handler(KeyError)(handler)

    @target.get("/x")
    def raising() -> str:
        raise KeyError("x")

    if place == "middleware":
        app.middleware(lambda request, next: next(request))
    app.include(router)
    app.mount("/inner", inner)
    for _ in range(2):  # frozen anew
        with Client(app) as client:
            response = client.get("/inner/x" if place == "mounted" else "/x")
            assert response.json() == {"reason": "'x'"}


def test_error_handlers_are_held_to_their_type() -> None:
    app = App()
    app.exception_handler(KeyError)(misfit)

    @app.get("/")
    def raising() -> str:
        raise KeyError("x")

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 500


def test_two_error_handlers_are_refused() -> None:
    app = App()
    app.exception_handler(404)(failing)
    with pytest.raises(ConfigError, match="two error handlers of 404.*test_other_results.py:"):
        app.exception_handler(404)(failing_json)


class Returning(Middleware):
    def before(self, request: Request) -> User | None:
        return Account("ann")


def returning(request: Request, next: Any) -> User | Response:
    return Account("ann")


@pytest.mark.parametrize("middleware", [Returning(), returning])
def test_middleware_that_declares_records_is_refused(middleware: Any) -> None:
    app = App()
    app.middleware(middleware)
    with pytest.raises(ConfigError, match=r"test_other_results.py:\d+.*return a Response"):
        Client(app).__enter__()


def test_annotations_without_fields_are_for_type_checkers() -> None:
    """What they say of the fields of a response is nothing; ``response=`` holds for every type."""
    app = App()

    def as_text() -> str:
        return Account("ann")  # type: ignore[return-value]  # pyright: ignore

    app.get("/annotated")(as_text)
    app.get("/declared", response=str)(as_text)
    with Client(app) as client:
        assert client.get("/annotated").json() == {"name": "ann", "password": "SECRET"}
        with pytest.raises(TypeError, match="not the declared str"):
            client.get("/declared")
