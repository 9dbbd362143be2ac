"""Markers that are in no signature: attributes of classes, functions that are called later: issue 32 A1.

A guard was not called, without an error, that a class declares as an attribute, or a hook of ``forward`` or a
deferred function in an annotation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import attr
import pydantic
import pytest
from citius import App, ConfigError, Depends, EventStream, Query, Request, Response, defer
from citius.errors import Forbidden
from citius.http import Client as HttpClient
from citius.http.gateway import Forward, Upstreams
from citius.testing import Client
from citius.testing.http import MockReply, MockTransport

_T = TypeVar("_T")


def guard() -> str:
    raise Forbidden("the guard was called")


class Bare:
    """As a dataclass, without its decorator."""

    user: Annotated[str, Depends(guard)]


class WithInit:
    user: Annotated[str, Depends(guard)]

    def __init__(self, page: int = 1) -> None:
        self.page = page


@dataclasses.dataclass
class OfNoParameter:
    page: int = 1
    user: Annotated[str, Depends(guard)] = dataclasses.field(default="", init=False)


@dataclasses.dataclass
class OfClass:
    page: int = 1
    user: ClassVar[Annotated[str, Depends(guard)]] = ""


@attr.define
class OfAttrs:
    user: Annotated[str, Depends(guard)] = attr.field(default="", init=False)


class PrivateByAnnotation(pydantic.BaseModel):
    _user: Annotated[str, Depends(guard)] = ""


class PrivateByDefault(pydantic.BaseModel):
    _user: str = Depends(guard)


class PrivateByFactory(pydantic.BaseModel):
    _user: str = pydantic.PrivateAttr(default_factory=lambda: Depends(guard))


@attr.define
class WithoutParameter:
    page: int = 1
    user: str = attr.field(init=False, default=Depends(guard))


class OfGeneric(Generic[_T]):
    user = Depends(guard)

    def __init__(self, page: int = 1) -> None: ...


class Inherited(Bare):
    pass


CLASSES: list[Any] = [
    Bare, WithInit, OfNoParameter, OfClass, OfAttrs, PrivateByAnnotation, PrivateByDefault, PrivateByFactory,
    OfGeneric, OfGeneric[int], Inherited, WithoutParameter,
]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES, ids=str)
@pytest.mark.parametrize("scope", ["request", "app"])
def test_attributes_of_classes_that_are_dependencies(cls: Any, scope: Any) -> None:
    app = App()

    def handler(value: Any = Depends(cls, scope=scope)) -> str:
        return "panel"

    app.get("/")(handler)
    with pytest.raises(ConfigError, match="has .*Depends.* outside of its parameters"):
        Client(app).__enter__()


@attr.define
class Aliased:
    """Fields that are parameters of another name."""

    _number: int = Query(1, ge=1)


class AliasedModel(pydantic.BaseModel):
    number: Annotated[int, Query(ge=1)] = pydantic.Field(1, alias="count")


@pytest.mark.parametrize("cls", [Aliased, AliasedModel])
def test_fields_with_other_names_are_read(cls: Any) -> None:
    app = App()

    def handler(value: Any = Depends(cls)) -> str:
        return "panel"

    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/").status_code == 200
        assert client.get("/", params={"number": "0", "count": "0"}).status_code == 422


class Views:
    """Handlers of one class, as the class-based views of fastapi-utils have them."""

    user: str = Depends(guard)

    def method(self) -> str:
        return "panel"

    @classmethod
    def of_class(cls) -> str:
        return "panel"

    def __call__(self) -> str:
        """As an object."""
        return "panel"


class AnnotatedViews:
    user: Annotated[str, Depends(guard)]

    async def method(self) -> str:
        return "panel"


HANDLERS: list[Callable[..., Any]] = [
    Views().method,
    Views.of_class,
    Views(),
    AnnotatedViews().method,
    partial(AnnotatedViews().method),
]


@pytest.mark.parametrize("handler", HANDLERS, ids=range(len(HANDLERS)))
def test_attributes_of_the_object_of_a_method(handler: Callable[..., Any]) -> None:
    app = App()
    app.get("/")(handler)
    with pytest.raises(ConfigError, match=r"Views, which has .*Depends.* as an attribute"):
        Client(app).__enter__()

    outer = App()

    def taking(value: Any = Depends(handler)) -> str:
        return "panel"

    outer.get("/")(taking)
    with pytest.raises(ConfigError, match=r"Views, which has .*Depends.* as an attribute"):
        Client(outer).__enter__()


class UsedOtherwise:
    """What a decorator is given, and what the object itself has set."""

    allowed = Depends(guard)
    user: Annotated[str, Query()]

    def __init__(self) -> None:
        self.user = "ann"

    def method(self) -> str:
        return self.user


def test_attributes_that_are_used_otherwise() -> None:
    app, views = App(), UsedOtherwise()
    app.get("/")(views.method)
    app.get("/guarded", dependencies=[views.allowed])(views.method)
    with Client(app) as client:
        assert client.get("/").text == "ann"
        assert client.get("/guarded").status_code == 403


@pytest.mark.parametrize("given", [(Depends(guard),), [Depends(guard)], {"user": Depends(guard)}])
def test_within_containers_of_a_partial(given: Any) -> None:
    def of(user: object) -> str:
        return "panel"

    for function in (partial(of, given), partial(of, user=given)):
        app = App()
        app.get("/")(function)
        with pytest.raises(ConfigError, match=r"test_unread_markers.py:\d+.*functools.partial"):
            Client(app).__enter__()


# --- functions that are called later ------------------------------------------------------------------


def by_default(*given: Any, user: Any = Depends(guard)) -> None: ...


def by_annotation(*given: Any, user: Annotated[Any, Depends(guard)] = None) -> None: ...


def within_annotation(*given: Any, users: list[Annotated[str, Query()]] | None = None) -> None: ...


def by_comma(*given: Any, user: Any = (Depends(guard),)) -> None: ...


CALLED_LATER = [by_default, by_annotation, within_annotation, by_comma]


@pytest.mark.parametrize("function", CALLED_LATER, ids=lambda one: one.__name__)
class TestCalledLater:
    def test_deferred(self, function: Callable[..., Any]) -> None:
        app = App()

        @app.get("/")
        def handler(request: Request) -> str:
            defer(request, function)
            return "done"

        with Client(app) as client, pytest.raises(TypeError, match="only handlers"):
            client.get("/")

    def test_in_the_background(self, function: Callable[..., Any]) -> None:
        app = App()

        @app.get("/")
        def handler() -> Response:
            return Response("done", background=partial(function, 1))

        with Client(app) as client, pytest.raises(TypeError, match="only handlers"):
            client.get("/")

    def test_of_event_streams(self, function: Callable[..., Any]) -> None:
        app = App()

        @app.get("/")
        async def handler() -> Response:
            return EventStream(on_close=function).response()

        with Client(app) as client, pytest.raises(TypeError, match="only handlers"):
            client.get("/")

    def test_of_forwarding(self, function: Callable[..., Any]) -> None:
        hooks: list[Any] = [{"on_request": function}, {"on_response": function}]
        for options in hooks:
            with pytest.raises(
                ConfigError, match=r"test_unread_markers.py:\d+.*only handlers and dependencies"
            ):
                App().forward("/", "http://upstream", **options)

    def test_of_a_forward_that_a_handler_returns(self, function: Callable[..., Any]) -> None:
        mock = MockTransport()
        mock.add("GET", "http://upstream/", MockReply(content="SECRET"))
        app = App()
        to = HttpClient("http://upstream", transport=mock)

        @app.get("/request")
        async def on_request() -> Any:
            return Forward(to, path="/", on_request=function)

        @app.get("/response")
        async def on_response() -> Any:
            return Forward(to, path="/", on_response=function)

        with Client(app) as client:
            for path in ("/request", "/response"):
                with pytest.raises(TypeError, match="only handlers"):
                    client.get(path)

    def test_of_upstreams(self, function: Callable[..., Any]) -> None:
        with pytest.raises(ConfigError, match=r"test_unread_markers.py:\d+.*only handlers"):
            Upstreams(["http://a", "http://b"], balance="hash", key=function)


def test_values_that_are_given_in_place_of_markers() -> None:
    app, sent = App(), list[str]()

    def send(to: str, db: Annotated[str, Depends(guard)] = "", user: Any = Depends(guard)) -> None:
        sent.append(f"{to} {db} {user}")

    @app.get("/")
    def handler(request: Request) -> str:
        defer(request, send, "ann", "db", "me")
        defer(request, partial(send, user="you"), "bob", db="other")
        return "done"

    with Client(app) as client:
        client.get("/")
    assert sorted(sent) == ["ann db me", "bob other you"]


def test_hooks_of_forwarding_take_what_they_get() -> None:
    def on_request() -> None: ...

    def on_response(request: Request) -> None: ...

    with pytest.raises(ConfigError, match=r"on_request=….*is called as on_request\(forwarded\)"):
        App().forward("/", "http://upstream", on_request=on_request)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(ConfigError, match=r"is called as on_response\(request, response\)"):
        App().forward("/", "http://upstream", on_response=on_response)  # type: ignore[arg-type]  # pyright: ignore
