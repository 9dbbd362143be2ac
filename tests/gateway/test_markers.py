# pyright: reportUnknownVariableType=false, reportOperatorIssue=false, reportGeneralTypeIssues=false
"""Where markers may stand: read there, refused everywhere else, never skipped.

frameworks 2, 3 and 25; newcomer A1 and B1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NamedTuple, NewType, Optional, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from citius import (
    App,
    Body,
    ConfigError,
    Cookie,
    Depends,
    File,
    Form,
    Header,
    Path,
    Query,
    Request,
    SerialWebSocket,
    UploadFile,
    WebSocket,
)
from citius.errors import Forbidden, Unauthorized
from citius.testing import Client
from citius.web.middleware import Middleware
from citius.web.security import APIKey, Principal
from typing_extensions import TypeAliasType


def guard() -> str:
    raise Forbidden("the guard was called")


def user() -> str:
    return "ann"


def serve(handler: Callable[..., Any], method: str = "GET", path: str = "/") -> Client:
    app = App()
    app.route(path, methods=(method,))(handler)
    return Client(app)


# What is written with FastAPI's habits; the parameters have the types that their annotations say.


def unannotated(_=Depends(guard)) -> str:  # type: ignore[no-untyped-def]  # pyright: ignore
    return "panel"


def of_any(_: Any = Depends(guard)) -> str:
    return "panel"


def of_object(_: object = Depends(guard)) -> str:
    return "panel"


def of_class(_: str = Depends(guard)) -> str:
    return "panel"


def of_request(request: Request = Depends(guard)) -> str:
    return "panel"


def keyword_only(*, _: str = Depends(guard)) -> str:
    return "panel"


def optional(_: Annotated[str, Depends(guard)] | None = None) -> str:
    return "panel"


def older_optional(_: Optional[Annotated[str, Depends(guard)]] = None) -> str:  # noqa: UP045
    return "panel"


def within(_: str = Depends(unannotated)) -> str:
    return "panel"


Guarded = TypeAliasType("Guarded", Annotated[str, Depends(guard)])
Aliased = TypeAliasType("Aliased", Guarded)


def alias(_: Guarded) -> str:
    return "panel"


def alias_of_alias(_: Aliased) -> str:
    return "panel"


def optional_alias(_: Guarded | None = None) -> str:
    return "panel"


GUARDED = [
    unannotated, of_any, of_object, of_class, of_request, keyword_only, optional, older_optional, within,
    alias, alias_of_alias, optional_alias,
]  # fmt: skip


@pytest.mark.parametrize("handler", GUARDED, ids=lambda one: one.__name__)
class TestGuardsAreCalled:
    """frameworks 2 and 3, newcomer A1: 200 for everyone before."""

    def test_of_routes(self, handler: Callable[..., Any]) -> None:
        with serve(handler) as client:
            assert client.get("/?_=root&request=root").status_code == 403

    def test_of_dependencies(self, handler: Callable[..., Any]) -> None:
        def outer(value: str = Depends(handler)) -> str:
            return value

        with serve(outer) as client:
            assert client.get("/?_=root").status_code == 403

    def test_of_websockets(self, handler: Callable[..., Any]) -> None:
        app = App()

        @app.websocket("/")
        def talk(ws: SerialWebSocket, value: str = Depends(handler)) -> None:
            ws.send(value)

        with Client(app) as client, pytest.raises(Exception, match="403"):
            client.websocket("/").__enter__()

    def test_of_procedures(self, handler: Callable[..., Any]) -> None:
        if handler is of_request:
            pytest.skip("calls have no request")
        app = App()

        @app.rpc
        def call(value: str = Depends(handler)) -> str:
            return value

        (endpoint,) = app.endpoints
        assert guard in [one.call for one in endpoint.dependencies]


class TestDefaultStyle:
    """newcomer B1, frameworks 25."""

    def test_all_sources(self) -> None:
        def handler(
            request: Request,
            id: int = Path(ge=1),
            q: int = Query(1, ge=1),
            name: str = Query(..., min_length=2),
            tags: list[str] = Query([]),
            token: str | None = Header(None),
            older: str = Header(default=None, alias="X-Old"),
            theme: str = Cookie("dark"),
            who: str = Depends(user),
        ) -> Any:
            return [id, q, name, tags, token, older, theme, who]

        with serve(handler, path="/{id}") as client:
            got = client.get("/3?name=bob&tags=a&tags=b", headers={"token": "t"})
            assert got.json() == [3, 1, "bob", ["a", "b"], "t", None, "dark", "ann"]
            wrong = client.get("/0?q=0&name=b")
            places = {(one["in"], one["pointer"]) for one in wrong.json()["errors"]}
            assert places == {("path", "#/id"), ("query", "#/q"), ("query", "#/name")}
            assert client.get("/3").status_code == 422

    def test_bodies_and_forms(self) -> None:
        def body(value: list[int] = Body(...)) -> Any:
            return value

        def form(name: str = Form(), file: UploadFile | None = File(None)) -> Any:
            return [name, file is None]

        with serve(body, "POST") as client:
            assert client.post("/", json=[1, 2]).json() == [1, 2]
        with serve(form, "POST") as client:
            sent = client.post(
                "/",
                content=b"name=ann",
                headers={"content-type": "application/x-www-form-urlencoded"},
            )
            assert sent.json() == ["ann", True]

    def test_without_a_type(self) -> None:
        def handler(x=Header(), body=Body()) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
            return [x, body]

        with serve(handler, "POST") as client:
            assert client.post("/?x=2", json={"a": 1}, headers={"x": "1"}).json() == ["1", {"a": 1}]

    def test_constraints_need_a_type(self) -> None:
        def handler(page=Query(1, ge=1)) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
            return page

        with pytest.raises(
            ConfigError, match=r"page of .*handler .*test_markers.py:\d+.* and no type"
        ):
            serve(handler).__enter__()

    def test_optional_marker(self) -> None:
        def handler(role: Optional[Annotated[str, Header(alias="x-role")]] = None) -> Any:  # noqa: UP045
            return [role]

        with serve(handler) as client:
            assert client.get("/?role=root&x-role=root").json() == [None]
            assert client.get("/", headers={"x-role": "admin"}).json() == ["admin"]

    def test_aliases_of_types(self) -> None:
        Key = TypeAliasType("Key", Annotated[str, Header(alias="x-key")])  # noqa: N806
        Tags = TypeAliasType("Tags", list[str])  # noqa: N806

        def handler(key: Key, tags: Tags, more: Annotated[Tags, Query(alias="m")] = []) -> Any:  # noqa: B006  # type: ignore[valid-type]  # pyright: ignore
            return [key, tags, more]

        handler.__annotations__ = {
            "key": Key, "tags": Tags, "more": Annotated[Tags, Query(alias="m")], "return": Any,
        }  # fmt: skip
        with serve(handler) as client:
            got = client.get("/?key=no&tags=a&tags=b&m=c", headers={"x-key": "k"})
            assert got.json() == ["k", ["a", "b"], ["c"]]

    def test_the_statement(self) -> None:
        if sys.version_info < (3, 12):
            pytest.skip("the statement `type` is of Python 3.12")
        namespace: dict[str, Any] = {
            "Annotated": Annotated,
            "Depends": Depends,
            "guard": guard,
            "Header": Header,
        }
        exec(
            "type Dep[T] = Annotated[T, Depends(guard)]\ntype Key = Annotated[str, Header()]\n"
            "def handler(_: Dep[str], key: Key = '') -> str: return 'panel'",
            namespace,
        )
        with serve(namespace["handler"]) as client:
            assert client.get("/?_=root").status_code == 403


class Limits(msgspec.Struct):
    limit: Annotated[int, Query(ge=1)] = 1


class Defaulted(msgspec.Struct):
    limit: int = Query(default=1)


@dataclass
class Outer:
    inner: list[Limits]


class Keyed(TypedDict):
    limit: Annotated[int, Query(ge=1)]


class Tupled(NamedTuple):
    limit: Annotated[int, Query(ge=1)]


class Model(pydantic.BaseModel):
    limit: Annotated[int, Query(ge=1)]


class ModelDefault(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    limit: int = Query(1)


Named = NewType("Named", Limits)


class Foreign:
    """As ``fastapi.Depends``, which is imported here by mistake."""

    def __init__(self, what: object) -> None:
        self.what = what


Foreign.__module__, Foreign.__name__ = "fastapi.params", "Depends"

LOST: list[Any] = [
    Annotated[list[Annotated[int, Query(ge=1)]], Query()],
    list[Annotated[int, Query(ge=1)]],
    dict[str, Annotated[str, Depends(guard)]],
    tuple[Annotated[str, Header], ...],
    Annotated[int, Query(ge=1)] | str,
    Annotated[str, Depends(guard)] | int | None,
    Limits, Defaulted, Outer, Keyed, Tupled, Model, ModelDefault, Named,
    Annotated[Limits, Query()],
    Annotated[Model, Form()],
    Annotated[list[Outer], Body()],
    TypeAliasType("Deep", list[TypeAliasType("Lower", Annotated[int, Query(ge=1)])]),  # type: ignore[misc]
]  # fmt: skip


@pytest.mark.parametrize("annotation", LOST, ids=range(len(LOST)))
class TestLostMarkersAreRefused:
    """frameworks 3: dropped without a word before."""

    def handler(self, annotation: Any) -> Callable[..., Any]:
        def handler(value) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
            pass

        handler.__annotations__ = {"value": annotation}
        return handler

    def test_in_routes(self, annotation: Any) -> None:
        with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*Annotated\["):
            serve(self.handler(annotation), "POST").__enter__()

    def test_in_dependencies_of_websockets(self, annotation: Any) -> None:
        app = App()
        handler = self.handler(annotation)

        @app.websocket("/")
        async def talk(ws: WebSocket, value: None = Depends(handler)) -> None:
            pass

        with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*Annotated\["):
            Client(app).__enter__()

    def test_in_procedures(self, annotation: Any) -> None:
        app = App()
        app.rpc("p")(self.handler(annotation))
        with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*Annotated\["):
            _ = app.endpoints


def marker() -> Any:
    return Depends(guard)


GUARD = Depends(guard)


@dataclass
class ByFactory:
    """A dataclass whose factory calls a function that makes a marker."""

    value: Any = field(default_factory=lambda: marker())


class StructFactory(msgspec.Struct):
    value: Any = msgspec.field(default_factory=lambda: GUARD)


class ModelFactory(pydantic.BaseModel):
    value: Any = pydantic.Field(default_factory=partial(Depends, guard))


class ModelWithData(pydantic.BaseModel):
    name: str = ""
    value: Any = pydantic.Field(default_factory=lambda data: Depends(guard))


class Attribute:
    """A class whose marker is none of its parameters."""

    value: Any = Depends(guard)

    def __init__(self, name: str = "") -> None: ...


@dataclass
class Plain:
    """Factories that make no marker are not called."""

    value: Any = field(default_factory=lambda: 1 // 0)
    names: list[str] = field(default_factory=list)


class TestFactories:
    """A default that a factory makes is a default: what it makes is called by nothing."""

    @pytest.mark.parametrize("cls", [ByFactory, StructFactory, ModelFactory, ModelWithData])
    def test_of_bodies_queries_and_dependencies(self, cls: Any) -> None:
        for annotation in (
            cls, list[cls], Annotated[cls, Query()], Annotated[cls, Form()], Annotated[cls, Depends()],
        ):  # fmt: skip

            def handler(value) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
                pass

            handler.__annotations__ = {"value": annotation}
            with pytest.raises(ConfigError, match=r"Depends\(call=<function guard"):
                serve(handler, "POST").__enter__()

    def test_attributes_of_dependencies(self) -> None:
        def handler(value: Annotated[Attribute, Depends()]) -> None: ...

        with pytest.raises(
            ConfigError, match=r"Attribute .*test_markers.py:\d+.*outside of its parameters"
        ):
            serve(handler).__enter__()

    def test_others_are_not_called(self) -> None:
        def handler(value: Plain) -> None: ...

        with serve(handler, "POST"):
            pass


class TestRefused:
    def refused(self, handler: Callable[..., Any], match: str) -> None:
        with pytest.raises(ConfigError, match=match):
            serve(handler).__enter__()

    def test_two_markers(self) -> None:
        def handler(x: Annotated[int, Query()] = Header()) -> None: ...

        self.refused(handler, r"has Query\(\) and Header\(\); it takes one")

    def test_schemes_and_functions_without_depends(self) -> None:
        scheme = APIKey({"k": Principal("me")})

        def by_scheme(user: Annotated[Any, scheme]) -> None: ...

        def by_function(user: Annotated[Any, guard]) -> None: ...

        by_scheme.__annotations__["user"] = Annotated[Any, scheme]
        self.refused(by_scheme, r"Annotated\[…, Depends\(apiKey\)\]")
        self.refused(by_function, r"Annotated\[…, Depends\(guard\)\]")

    def test_markers_of_fastapi(self) -> None:
        def default(user=Foreign(guard)) -> None: ...  # type: ignore  # pyright: ignore  # noqa: B008

        def annotated(user: Annotated[str, Foreign(guard)]) -> None: ...

        def annotated_class(user: Annotated[str, Foreign]) -> None: ...

        def typed(page: int = Foreign(1)) -> None: ...  # type: ignore[assignment]  # pyright: ignore

        for handler in (default, annotated, annotated_class, typed):
            self.refused(
                handler, r"test_markers.py:\d+.*says nothing here; import Depends from citius"
            )

    def test_fields_of_models(self) -> None:
        def by_pydantic(x=pydantic.Field(1, ge=1)) -> None: ...  # type: ignore  # pyright: ignore  # noqa: B008

        def by_msgspec(x=msgspec.field(default=1)) -> None: ...  # type: ignore  # pyright: ignore  # noqa: B008

        for handler in (by_pydantic, by_msgspec):
            self.refused(handler, r"test_markers.py:\d+.*which is for fields of models")

    def test_functions_that_are_not_read(self) -> None:
        app = App()

        def hook(pool: Any = Depends(guard)) -> None: ...

        def by_comma(pool: Any = (Depends(guard),)) -> None: ...

        def middleware(request: Request, next: Any, user: Any = Depends(guard)) -> Any:
            return next(request)

        def failed(
            request: Request, error: Exception, user: Annotated[Any, Depends(guard)] = 1
        ) -> Any:
            return "x"

        registrations: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
            (app.on_startup, hook), (app.on_shutdown, hook), (app.readiness, hook),
            (app.on_startup, by_comma), (app.middleware, middleware), (app.connection_middleware, middleware),
            (app.exception_handler(404), failed),
        ]  # fmt: skip
        for register, function in registrations:
            with pytest.raises(
                ConfigError, match=r"Depends\(.*which only handlers and dependencies have read"
            ):
                register(function)

    def test_compiled_functions(self) -> None:
        app = App()

        @app.get("/{n}", compiled=True)
        def handler(n: int, who: int = Depends(guard)) -> int:
            return n

        with pytest.raises(ConfigError, match=r"who of .*dependencies=\[Depends\(f\)\]"):
            Client(app, interpret_compiled=True).__enter__()

    def test_headers_of_procedures(self) -> None:
        app = App()

        @app.rpc
        def call(x_role: Annotated[str, Header()]) -> None: ...

        with pytest.raises(ConfigError, match="a call has no header section"):
            _ = app.endpoints


def test_a_generator_as_default() -> None:
    ended: list[str] = []

    def session() -> Iterator[str]:
        yield "session"
        ended.append("session")

    def handler(db: str = Depends(session)) -> str:
        return db

    with serve(handler) as client:
        assert client.get("/").text == "session"
    assert ended == ["session"]


class TestDefaultsThatWouldNotBeCalled:
    """Further instances of frameworks 2: a guard within a container, without Depends, behind two texts."""

    def refused(self, handler: Callable[..., Any], match: str) -> None:
        with pytest.raises(ConfigError, match=rf"test_markers.py:\d+.*{match}"):
            serve(handler).__enter__()

    def test_within_containers(self) -> None:
        def by_comma(_=(Depends(guard),)) -> str:  # type: ignore[no-untyped-def]  # pyright: ignore
            return "panel"

        def in_dict(_={"x": [Depends(guard)]}) -> str:  # type: ignore[no-untyped-def]  # noqa: B006  # pyright: ignore
            return "panel"

        for handler in (by_comma, in_dict):
            self.refused(handler, r"Depends\(.*within its default, where nothing reads it")

    def test_without_depends(self) -> None:
        scheme = APIKey({"k": Principal("me")})

        def by_scheme(user: Any = scheme) -> str:
            return "panel"

        def by_function(user: Any = guard) -> str:
            return "panel"

        self.refused(by_scheme, r"would not be called; write Depends\(apiKey\)")
        self.refused(by_function, r"would not be called; write Depends\(guard\)")

    def test_texts_in_texts(self) -> None:
        def handler(_: Any) -> str:
            return "panel"

        handler.__annotations__["_"] = "'Annotated[str, Depends(guard)]'"
        with serve(handler) as client:
            assert client.get("/?_=root").status_code == 403
        handler.__annotations__["_"] = "'Annotated[str, Depends(unknown)]'"
        self.refused(handler, "cannot be evaluated: name 'unknown'")


# --- decorators ------------------------------------------------------------------------------------------


def _with_user(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(user: Annotated[str, Depends(guard)], *args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return inner


def _with_request(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(request: Request, *args: Any, **named: Any) -> Any:
        return function(request, *args, **named)

    return inner


def _with_keyword(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, user: str, **named: Any) -> Any:
        return function(*args, **named)

    return inner


def _without_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner() -> Any:
        return function(1)

    return inner


class _Object:
    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, user: str, *args: Any) -> Any:
        """Leave out the user."""
        return self.function(*args)


def _passing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return inner


def _async_around(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def inner(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return inner


def numbered(number: int = 1) -> str:
    return str(number)


def numbered_with_request(request: Request, number: int = 1) -> str:
    return f"{request.path}{number}"


@pytest.mark.parametrize(
    "decorator",
    [_with_user, _with_request, _with_keyword, _without_arguments, _Object],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("as_dependency", [False, True])
def test_decorators_that_take_something_else(
    decorator: Callable[..., Any], as_dependency: bool
) -> None:
    """``functools.wraps`` drops the annotations of what it decorates: a guard in them was not called, and its
    parameter had the value of another.
    """
    handler = decorator(numbered)
    if as_dependency:
        inner = handler

        def handler(number: str = Depends(inner)) -> str:
            return number

    with pytest.raises(
        ConfigError, match=r"test_markers.py:\d+\), which wraps numbered .*_markers.py:\d+"
    ):
        serve(handler).__enter__()


def test_decorators_that_pass_on() -> None:
    for decorator in (_passing_on, _async_around):
        with serve(decorator(numbered)) as client:
            assert client.get("/?number=3").text == "3"
        made = Depends(decorator(numbered))
        with serve(lambda number=made: number) as client:
            assert client.get("/?number=3").text == "3"
    with serve(_with_request(numbered_with_request)) as client:
        assert client.get("/?number=3").text == "/3"


class Ann:
    """Has a decorated method."""

    @_passing_on
    def name(self, number: int = 1) -> str:
        return str(number)


def test_decorated_methods() -> None:
    with serve(Ann().name) as client:
        assert client.get("/?number=3").text == "3"


# --- further places ----------------------------------------------------------------------------------------


@attrs.define
class Attributes:
    limit: int = Query(1)


def test_defaults_of_attrs() -> None:
    def handler(value: Attributes) -> None: ...

    with pytest.raises(
        ConfigError, match=r"test_markers.py:\d+.*Query\(default=1\) inside of its type"
    ):
        serve(handler, "POST").__enter__()


def _user() -> str:
    raise Unauthorized


def _of_any_number(*users: Annotated[str, Depends(_user)]) -> str:
    return str(users)


def _of_any_name(**users: Annotated[str, Depends(_user)]) -> str:
    return str(users)


@pytest.mark.parametrize("handler", [_of_any_number, _of_any_name])
def test_a_dependency_of_variable_parameters(handler: Callable[..., str]) -> None:
    """Issue 32 A1: a handler got a tuple, or failed with a TypeError once its client was let in."""
    app = App()
    app.get("/")(handler)
    with (
        pytest.raises(ConfigError, match="the parameter users .*any number of values"),
        Client(app),
    ):
        pass


def test_variable_parameters_are_named_as_they_are_written() -> None:
    def handler(**options: str) -> str:
        return str(options)

    app = App()
    app.get("/")(handler)
    with pytest.raises(ConfigError, match=r"takes \*\*options: name the parameters"), Client(app):
        pass


def test_by_its_place_in_a_partial() -> None:
    def of(user: object) -> str:
        return "panel"

    with pytest.raises(ConfigError, match=r"by its place.*give it by name"):
        serve(functools.partial(of, Depends(guard))).__enter__()


def test_at_the_result() -> None:
    def handler() -> Annotated[str, Depends(guard)]:
        return "panel"

    with pytest.raises(
        ConfigError, match=r"the result of .*test_markers.py:\d+.*stands at a parameter"
    ):
        serve(handler).__enter__()


def test_a_type_without_a_signature() -> None:
    def handler(user: Annotated[str, Depends]) -> None: ...

    with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*write Depends\(function\)"):
        serve(handler).__enter__()


def _optional_text(user: Optional["Annotated[str, Depends(guard)]"] = None) -> str:  # noqa: UP037, UP045
    return "panel"


def test_texts_within_annotations() -> None:
    """A raw TypeError of msgspec for procedures and tools."""
    app = App()
    app.get("/")(_optional_text)
    app.rpc("panel")(_optional_text)
    app.mcp("/mcp").tool("panel")(_optional_text)
    app.connect()
    with Client(app) as client:
        assert client.get("/").status_code == 403
        assert client.post("/citius.Procedures/panel", json={}).status_code == 403

    def unknown(users: "list[Unknown]") -> None: ...  # type: ignore[name-defined] # noqa: F821, UP037  # pyright: ignore

    with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*'Unknown' is not defined"):
        serve(unknown).__enter__()


def test_prompts_with_types_that_no_text_is() -> None:
    def prompt(user) -> str: ...  # type: ignore[no-untyped-def]  # pyright: ignore

    prompt.__annotations__["user"] = guard
    app = App()
    app.mcp("/mcp").prompt("one")(prompt)
    with pytest.raises(ConfigError, match=r"test_markers.py:\d+.*msgspec cannot read"):
        Client(app).__enter__()


@dataclass(kw_only=True)
class MarkedFields:
    user: Annotated[str, Depends(guard)]
    page: Annotated[int, Query(ge=1)] = 1


class MarkedPlaces(NamedTuple):
    user: Annotated[str, Depends(guard)]


class MarkedStruct(msgspec.Struct):
    user: Annotated[str, Depends(guard)] = "anybody"


@pytest.mark.parametrize("cls", [MarkedFields, MarkedPlaces, MarkedStruct, MarkedFields | None])
@pytest.mark.parametrize("style", ["default", "annotation"])
def test_the_class_of_depends_without_a_function_has_its_own_markers(cls: Any, style: str) -> None:
    """As the default, ``x: Fields = Depends()``, and of a NamedTuple the start failed."""

    def handler(given: Any = Depends()) -> str:
        return "panel"

    handler.__annotations__["given"] = cls
    if style == "annotation":
        handler = _without_default(cls)
    with serve(handler) as client:
        assert client.get("/?user=ann").status_code == 403


def _without_default(cls: Any) -> Callable[..., Any]:
    def handler(given: Any) -> str:
        return "panel"

    handler.__annotations__["given"] = Annotated[cls, Depends()]
    return handler


@pytest.mark.parametrize("add", ["middleware", "on_startup", "exception_handler", "readiness"])
def test_attributes_of_objects_whose_methods_are_called(add: str) -> None:
    class Hooks(Middleware):
        user: Annotated[str, Depends(guard)] = "anybody"

        def before(self, request: Request) -> None: ...

        def start(self) -> None: ...

        def error(self, request: Request, error: Exception) -> str:
            return "panel"

    app, hooks = App(), Hooks()
    adders: dict[str, Callable[[], Any]] = {
        "middleware": lambda: app.middleware(hooks),
        "on_startup": lambda: app.on_startup(hooks.start),
        "exception_handler": lambda: app.exception_handler(KeyError)(hooks.error),
        "readiness": lambda: app.readiness(hooks.start),
    }
    with pytest.raises(ConfigError, match="has Depends.* as an attribute, where nothing reads it"):
        adders[add]()
