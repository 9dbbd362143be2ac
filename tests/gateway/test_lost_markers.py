# pyright: reportUnknownVariableType=false
"""Further places where a marker or a function would be skipped: found by a second review of issue 32 A1."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Optional, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from citius import (
    App,
    ConfigError,
    Cookie,
    Depends,
    Header,
    Query,
    Request,
    Router,
    SerialWebSocket,
    WebSocket,
    WebTransportSession,
    defer,
)
from citius.errors import Forbidden
from citius.testing import Client
from citius.web.middleware import RateLimit
from citius.web.security import Bearer

if TYPE_CHECKING:
    from nowhere import Session  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

_T = TypeVar("_T")
MISSING = object()


def guard() -> str:
    raise Forbidden("the guard was called")


class Role:
    """A dependency with an argument, as an object."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self) -> str:
        """Refuse every request."""
        raise Forbidden(self.name)


class Current:
    """A dependency that is a class."""


def refused(handler: Callable[..., Any], match: str) -> None:
    app = App()
    app.get("/")(handler)
    with pytest.raises(ConfigError, match=rf"test_lost_markers.py:\d+.*{match}"):
        Client(app).__enter__()


DEFAULTS: list[Any] = [
    (Role("admin"), r"would not be called; write Depends\(Role\)|Depends\(admin\)"),
    (Current, r"write Depends\(Current\)"),
    (partial(Depends, guard), "would not be called"),
    (Annotated[str, Depends(guard)], "would not be called"),
    (collections.deque([Depends(guard)]), "within its default"),
    (MappingProxyType({"a": [Depends(guard)]}), "within its default"),
    ((Depends(guard) for _ in range(1)), "to the first request alone"),
    (iter([Depends(guard)]), "to the first request alone"),
    (dataclasses.field(default=1), "for fields of models"),
    (..., "which is no value"),
]  # fmt: skip


@pytest.mark.parametrize("annotation", [None, Any, object], ids=["none", "any", "object"])
@pytest.mark.parametrize(("default", "match"), DEFAULTS, ids=range(len(DEFAULTS)))
def test_defaults_that_would_be_values(default: Any, match: str, annotation: Any) -> None:
    """The handler got the object, and the query could replace it."""

    def handler(user=default) -> str:  # type: ignore[no-untyped-def]  # pyright: ignore
        return "panel"

    if annotation is not None:
        handler.__annotations__["user"] = annotation
    refused(handler, match)


ANNOTATED: list[Any] = [
    (Annotated[str, Role("admin")], r"is annotated with admin.*Depends\(admin\)"),
    (Annotated[str, partial(Depends, guard)], "is annotated with partial"),
    (Annotated[str, pydantic.Field(default=Depends(guard))], "as the default of FieldInfo"),
    (Annotated[str, pydantic.Field(default_factory=lambda: Depends(guard))], "as the default of FieldInfo"),
]  # fmt: skip


FIELDS: list[Any] = [
    (pydantic.Field(default=5), "default"), (pydantic.Field(default_factory=int), "default"),
    (pydantic.Field(alias="q"), "alias"), (pydantic.Field(validation_alias="q"), "alias"),
    (msgspec.field(default=1), "default"), (dataclasses.field(default=1), "default"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "what"), FIELDS, ids=range(len(FIELDS)))
def test_what_a_field_says_beside_constraints(field: Any, what: str) -> None:
    """The default and the name did not hold: the parameter was missing in every request without it."""

    def handler(number) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
        pass

    for annotation in (Annotated[int, field], Annotated[int, Query(), field]):
        handler.__annotations__["number"] = annotation
        refused(handler, rf"whose {what} is read for fields of models alone")


def test_constraints_of_a_field_hold() -> None:
    def handler(number: Annotated[int, pydantic.Field(ge=1, description="many")]) -> int:
        return number

    app = App()
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/?number=0").status_code == 422


def _mail(db: Any = Depends(guard)) -> None: ...


class _Mailer:
    """Objects and methods that are deferred."""

    def __call__(self, db: Any = Depends(guard)) -> None:
        """Take a marker for a session."""

    def send(self, *, db: Any = Depends(guard)) -> None:
        """The same by name."""


@pytest.mark.parametrize(
    "work", [_mail, partial(_mail), partial(partial(_mail)), _Mailer(), _Mailer().send, _Mailer]
)
def test_deferred_work_reads_no_markers(work: Any) -> None:
    """Only a plain function was looked at."""
    app = App()

    @app.get("/")
    def handler(request: Request) -> str:
        defer(request, work)
        return "deferred"

    with Client(app) as client:
        if work is _Mailer:
            assert client.get("/").text == "deferred"
            return
        with pytest.raises(TypeError, match=r"the parameter db of .*only handlers"):
            client.get("/")


@pytest.mark.parametrize(("annotation", "match"), ANNOTATED, ids=range(len(ANNOTATED)))
def test_metadata_that_would_not_be_called(annotation: Any, match: str) -> None:
    def handler(user) -> str:  # type: ignore[no-untyped-def]  # pyright: ignore
        return "panel"

    handler.__annotations__["user"] = annotation
    refused(handler, match)


def _optional(x: Optional[Annotated[Any, Depends(guard)]] = None) -> Any: ...  # noqa: UP045


def _listed(x: list[Annotated[str, Depends(guard)]] = []) -> Any: ...  # noqa: B006


def _unknown(x: Annotated[Session, Depends(guard)] = None) -> Any: ...


def _unknown_marker(x: list[Annotated[Session, Query()]] = []) -> Any: ...  # noqa: B006


def _text_in_type(x: Any = None) -> Any: ...


_text_in_type.__annotations__["x"] = Optional["Annotated[Any, Depends(guard)]"]


def _named(x: str = "", **more: Any) -> Any: ...


_named.__annotations__["more"] = list["Annotated[Session, Depends(guard)]"]

UNREAD = [_optional, _listed, _unknown, _unknown_marker, _text_in_type, _named]


def _with_request(hook: Callable[..., Any]) -> Callable[..., Any]:
    def called(request: Request, x: Any = None) -> Any:
        return hook(x)

    called.__annotations__["x"] = next(iter(hook.__annotations__.values()))
    if hook is _named:
        called.__annotations__["x"] = hook.__annotations__["more"]
    return called


@pytest.mark.parametrize("hook", UNREAD, ids=lambda one: one.__name__)
class TestFunctionsThatAreNotRead:
    """A text in a type was not looked into, nor one with a name that is known to type checkers alone."""

    def test_hooks(self, hook: Callable[..., Any]) -> None:
        for register in (App().on_startup, App().on_shutdown, App().readiness):
            with pytest.raises(
                ConfigError, match=r"the parameter \w+ of .*test_lost_markers.py:\d+"
            ):
                register(hook)

    def test_callbacks(self, hook: Callable[..., Any]) -> None:
        function = _with_request(hook)
        for make in (lambda: RateLimit(1, 1, key=function), lambda: Bearer(function)):
            with pytest.raises(ConfigError, match=r"the parameter x of .*test_lost_markers.py:\d+"):
                make()

    def test_lifespans(self, hook: Callable[..., Any]) -> None:
        @asynccontextmanager
        async def lifespan(app: App, x: Any = None) -> AsyncIterator[None]:
            yield

        names = list(hook.__annotations__)
        inner: Any = lifespan
        inner.__wrapped__.__annotations__["x"] = hook.__annotations__[
            "more" if "more" in names else "x"
        ]
        with pytest.raises(ConfigError, match=r"the parameter x of .*test_lost_markers.py:\d+"):
            App(lifespan=lifespan)


def test_names_of_type_checkers_without_a_marker() -> None:
    def hook(x: Session = None, y: list[Session] = []) -> None: ...  # noqa: B006

    App().on_startup(hook)
    Router().middleware(_next)


def _next(request: Request, next: Callable[[Request], Any], x: Session = None) -> Any:
    return next(request)


class Repository(Generic[_T]):
    """A generic class as a dependency."""

    def __init__(self, first: Annotated[Any, Query()] = None, number: int = Query(1, ge=1)) -> None:
        self.number = number


class Sized(Generic[_T]):
    """One whose parameter has the type of its argument."""

    def __init__(self, size: _T) -> None:
        self.size = size


def test_generic_classes_are_dependencies() -> None:
    """Its parameters were `*args` of the module `typing`."""

    def handler(
        one: Annotated[Repository[int], Depends()], two: Annotated[Sized[int], Depends()]
    ) -> Any:
        return [one.number, two.size]

    app = App()
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/?number=3&size=4").json() == [3, 4]
        assert client.get("/?number=0&size=x").status_code == 422


class Keys(TypedDict):
    user: Annotated[str, Depends(guard)]


class Record(msgspec.Struct):
    user: Annotated[str, Depends(guard)] = Depends(guard)


class Model(pydantic.BaseModel):
    user: Annotated[Callable[[], int], Query()]


def test_classes_without_a_function_are_named_with_their_place() -> None:
    def keys(value: Any = Depends(Keys)) -> None: ...

    def record(value: Any = Depends(Record)) -> None: ...

    def model(value: Any = Depends(Model)) -> None: ...

    refused(keys, "is a TypedDict")
    refused(record, r"it takes one of them")
    refused(model, r"takes a function from the query")


def test_a_default_that_json_does_not_have() -> None:
    """The start ended with a TypeError of an encoder, and so did the document."""

    def search(text: Any = MISSING) -> bool:
        return text is MISSING

    def example(other: Annotated[Any, Query(examples=[MISSING, 1])] = 2) -> Any:
        return other

    app = App()
    app.get("/search")(search)
    app.get("/example")(example)
    app.mcp("/mcp").tool("search")(search)
    with Client(app) as client:
        assert client.get("/search").json() is True
        listed = client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            headers={"accept": "application/json, text/event-stream"},
        )
    (tool,) = listed.json()["result"]["tools"]
    assert "default" not in tool["inputSchema"]["properties"]["text"]
    paths: Any = app.openapi()["paths"]
    (text,) = paths["/search"]["get"]["parameters"]
    (other,) = paths["/example"]["get"]["parameters"]
    assert "default" not in text["schema"]
    assert other["schema"]["default"] == 2
    assert other["examples"] == {"1": {"value": 1}}


MARKED_SOCKETS: list[Callable[..., Any]] = []


@MARKED_SOCKETS.append
async def annotated_socket(socket: Annotated[WebSocket, Header()]) -> None: ...


@MARKED_SOCKETS.append
async def default_of_a_socket(socket: WebSocket = Query()) -> None: ...


@MARKED_SOCKETS.append
def serial_socket(socket: Annotated[SerialWebSocket, Cookie()]) -> None: ...


@pytest.mark.parametrize("handler", MARKED_SOCKETS, ids=[one.__name__ for one in MARKED_SOCKETS])
def test_a_marker_of_the_socket(handler: Callable[..., Any]) -> None:
    """The socket was passed, and the marker skipped."""
    app = App()
    app.websocket("/")(handler)
    with pytest.raises(
        ConfigError, match=r"the parameter socket of .*:\d+\) is the WebSocket, which no"
    ):
        Client(app).__enter__()


def test_a_marker_of_the_session() -> None:
    async def handler(session: Annotated[WebTransportSession, Query()]) -> None: ...

    app = App()
    app.webtransport("/")(handler)
    with pytest.raises(ConfigError, match=r"is the session, which no Query\(\) reads"):
        Client(app).__enter__()
