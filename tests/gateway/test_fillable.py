# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Parameters of named texts: all of pydantic's names, and types that no request can bring.

Frameworks 9, 10 and 17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

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
    FormData,
    Header,
    Headers,
    Query,
    QueryParams,
    UploadFile,
)
from citius.testing import Client
from typing_extensions import TypeAliasType

FORM = {"content-type": "application/x-www-form-urlencoded"}


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    page_size: int = pydantic.Field(10, alias="pageSize")
    tags: list[str] = pydantic.Field([], alias="tag")


class Choices(pydantic.BaseModel):
    user: str = pydantic.Field(
        validation_alias=pydantic.AliasChoices("u", "login", pydantic.AliasPath("n", 1))
    )


class OnlyByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True)
    user: str = pydantic.Field("nobody", alias="u")


def serve(annotation: Any, method: str = "GET") -> Client:
    def handler(value) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
        return (
            value if isinstance(value, (list, dict)) else msgspec.to_builtins(value, enc_hook=dict)
        )

    handler.__annotations__ = {"value": annotation, "return": Any}
    app = App()
    app.route("/", methods=(method,))(handler)
    return Client(app)


@pytest.mark.parametrize(
    ("model", "sent", "wanted"),
    [
        (ByName, "page_size=3", {"page_size": 3, "tags": []}),
        (ByName, "pageSize=3&tag=a&tag=b", {"page_size": 3, "tags": ["a", "b"]}),
        (ByName, "tags=a&tags=b", {"page_size": 10, "tags": ["a", "b"]}),
        (Choices, "u=ann", {"user": "ann"}),
        (Choices, "login=ann", {"user": "ann"}),
        (Choices, "n=x&n=ann", {"user": "ann"}),
        (OnlyByName, "user=ann", {"user": "ann"}),
        (OnlyByName, "u=ann", {"user": "nobody"}),
    ],
)
class TestNamesOfPydantic:
    """Frameworks 9: names that JSON bodies may have were ignored, with 200 and the default."""

    def test_in_queries(self, model: Any, sent: str, wanted: object) -> None:
        with serve(Annotated[model, Query()]) as client:
            assert client.get(f"/?{sent}").json() == wanted

    def test_in_forms(self, model: Any, sent: str, wanted: object) -> None:
        with serve(Annotated[model, Form()], "POST") as client:
            assert client.post("/", content=sent.encode(), headers=FORM).json() == wanted

    def test_in_cookies(self, model: Any, sent: str, wanted: object) -> None:
        if len(names := [pair.partition("=")[0] for pair in sent.split("&")]) > len(set(names)):
            pytest.skip("a cookie's name comes once")
        with serve(Annotated[model, Cookie()]) as client:
            found = client.get("/", headers={"cookie": sent.replace("&", "; ")}).json()
            assert found == wanted

    def test_in_headers(self, model: Any, sent: str, wanted: object) -> None:
        fields = [pair.partition("=") for pair in sent.split("&")]
        named = [(name.replace("_", "-"), value) for name, _, value in fields]
        with serve(Annotated[model, Header()]) as client:
            assert client.get("/", headers=named).json() == wanted


class Inner(msgspec.Struct):
    x: int


class Nested(msgspec.Struct):
    inner: Inner
    y: int = 1


class NestedWithDefault(msgspec.Struct):
    inner: Inner | None = None


class NestedModel(pydantic.BaseModel):
    inner: OnlyByName


class Cat(msgspec.Struct, tag=True):
    name: str


class Dog(msgspec.Struct, tag=True):
    name: str


@dataclass
class Grid:
    rows: list[list[int]]


class Row(msgspec.Struct, array_like=True):
    x: int = 0


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    limit: int = 10


class StrictField(pydantic.BaseModel):
    limit: int = pydantic.Field(10, strict=True)


class Roots(pydantic.RootModel[dict[str, int]]):
    """A value in the place of fields."""


class Root(pydantic.RootModel[int]):
    """A number as a model."""


class Object:
    """A class of the application."""


UNFILLABLE: list[Any] = [
    Callable[[], int], Callable, type, type[int], type(...), pydantic.InstanceOf[Object], tuple[()],
    msgspec.Raw, msgspec.msgpack.Ext, Row, pydantic.StrictInt, StrictModel, StrictField, Roots,
    list[Callable[[], int]], pydantic.StrictInt | None,
    Cat | Dog, Cat | None, OnlyByName | ByName, OnlyByName | None, dict[str, str], Mapping[str, int], Nested,
    NestedWithDefault, NestedModel, Grid, list[Inner], list[list[int]], list[OnlyByName] | None,
]  # fmt: skip


@pytest.mark.parametrize("marker", [Query, Form, Header, Cookie], ids=lambda one: one.__name__)
@pytest.mark.parametrize("annotation", UNFILLABLE, ids=range(len(UNFILLABLE)))
def test_what_no_request_can_bring(annotation: Any, marker: Callable[[], Any]) -> None:
    """Frameworks 10: 422 for everything, or always `None`."""
    with pytest.raises(ConfigError, match=r"value of .*test_fillable.py:\d+.*no request can bring"):
        serve(Annotated[annotation, marker()], "POST").__enter__()


class Own(pydantic.BaseModel):
    inner: dict[str, int] = {}
    text: pydantic.Json[list[int]] = []

    @pydantic.field_validator("inner", mode="before")
    @classmethod
    def read(cls, value: Any) -> Any:
        return {"read": int(value)}


@pytest.mark.parametrize(
    ("annotation", "sent", "wanted"),
    [
        (Sequence[str], "value=a&value=b", ["a", "b"]),
        (Sequence[int] | None, "value=1", [1]),
        (Annotated[pydantic.Json[list[int]], Query()], "value=[1,2]", [1, 2]),
        (Annotated[pydantic.Json[dict[str, int]], Query()], 'value={"a":1}', {"a": 1}),
        (Annotated[tuple[int, str], Query()], "value=1&value=b", [1, "b"]),
        (Annotated[int | str, Query()], "value=b", "b"),
        (Annotated[Own, Query()], "inner=3&text=[4]", {"inner": {"read": 3}, "text": [4]}),
        (Annotated[Inner, Query(), "a note"], "x=3", {"x": 3}),
    ],
    ids=range(8),
)
def test_what_a_query_can_bring(annotation: Any, sent: str, wanted: object) -> None:
    with serve(annotation) as client:
        got = client.get(f"/?{sent}")
        assert (got.text if isinstance(wanted, str) else got.json()) == wanted


UPLOADS: list[Any] = [
    UploadFile, UploadFile | None, list[UploadFile], list[UploadFile] | None,
    Annotated[list[UploadFile] | None, File()], Annotated[list[bytes] | None, File()],
    Annotated[Sequence[UploadFile], File()],
]  # fmt: skip


@pytest.mark.parametrize("annotation", UPLOADS, ids=range(len(UPLOADS)))
def test_files(annotation: Any) -> None:
    """Frameworks 17, and a file without a marker."""

    def handler(value=None) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
        many = value if isinstance(value, list) else [value]
        return [one if one is None else str(getattr(one, "data", one)) for one in many]

    optional = "None" in str(annotation)
    handler.__annotations__ = {"value": annotation, "return": Any}
    if not optional:
        handler.__defaults__ = ()
    app = App()
    app.post("/")(handler)
    part = '--b\r\nContent-Disposition: form-data; name="{}"; filename="f"\r\n\r\nx\r\n'
    fields = {"content-type": "multipart/form-data; boundary=b"}
    with Client(app) as client:
        sent = (part.format("value") + "--b--\r\n").encode()
        assert client.post("/", content=sent, headers=fields).json() == ["b'x'"]
        other = client.post("/", content=(part.format("z") + "--b--\r\n").encode(), headers=fields)
        assert (other.status_code, other.json() == [None]) == (
            (200, True) if optional else (422, False)
        )


T = TypeVar("T")


class Tree(msgspec.Struct, Generic[T]):
    value: T
    children: "list[Tree[list[T]]]"  # noqa: UP037


class Chain(msgspec.Struct, Generic[T]):
    value: T
    next: "Chain[T] | None" = None  # noqa: UP037


Alias = TypeAliasType("Alias", "list[Alias] | int")


def takes(kind: Any) -> Any:
    def handler(value: Any) -> Any:
        return value

    handler.__annotations__ = {"value": kind}
    return handler


def returns(kind: Any) -> Any:
    def handler() -> Any:
        return [1, [2]]

    handler.__annotations__ = {"return": kind}
    return handler


@pytest.mark.parametrize("make", [takes, returns])
@pytest.mark.parametrize("place", ["route", "procedure", "tool", "dependency"])
def test_types_without_an_end_are_refused(make: Any, place: str) -> None:
    app, handler = App(), make(Tree[int])
    if place == "route":
        app.post("/")(handler)
    elif place == "procedure":
        app.rpc("call")(handler)
    elif place == "tool":
        app.mcp("/mcp").tool("call")(handler)
    elif make is takes:
        app.post("/", dependencies=[Depends(handler)])(lambda: "")
    else:
        return
    with pytest.raises(ConfigError, match=r"test_fillable.py:\d+\).*contains itself with other"):
        Client(app)


class OfTheApplication:
    """A class that no decoder knows."""


class Needs(msgspec.Struct):
    one: OfTheApplication


@pytest.mark.parametrize("annotation", [OfTheApplication, OfTheApplication | None, list[Needs]])
@pytest.mark.parametrize(
    "place", ["route", "procedure", "tool", "resource", "prompt", "dependency"]
)
def test_types_that_no_decoder_knows(annotation: Any, place: str) -> None:
    """Issue 32 A5: procedures and tools started, and each call failed with a traceback."""
    app, handler = App(), takes(annotation)
    if place == "route":
        app.post("/")(handler)
    elif place == "procedure":
        app.rpc("call")(handler)
    elif place == "dependency":
        app.rpc("call", dependencies=[Depends(handler)])(lambda: None)
    else:
        mcp = app.mcp("/mcp")
        if place == "resource":
            mcp.resource("notes://{value}")(handler)
        else:
            getattr(mcp, place)("call")(handler)
    with pytest.raises(ConfigError, match=r"the parameter value of .*test_fillable.py:\d+"):
        Client(app)


def test_types_that_contain_themselves_are_served() -> None:
    app = App()
    app.post("/")(takes(Chain[int]))
    app.get("/")(returns(Alias))
    with Client(app) as client:
        sent = {"value": 1, "next": {"value": 2, "next": None}}
        assert client.post("/", json=sent).json() == sent
        assert client.get("/").json() == [1, [2]]
        assert app.openapi()["paths"]["/"]


def test_an_alias_that_no_decoder_knows_is_refused() -> None:
    app = App()
    app.post("/")(takes(Alias))
    with pytest.raises(
        ConfigError, match=r"test_fillable.py:\d+\) has a type that contains itself"
    ):
        Client(app)


PATHS: list[Any] = [
    Inner, OnlyByName, list[int], list[int] | None, tuple[int, str], dict[str, int], Roots, Row,
    Callable[[], int], type[int], set[str], pydantic.RootModel[list[int]], pydantic.StrictInt,
    Annotated[list[int], "a note"], TypeAliasType("Numbers", list[int]),
]  # fmt: skip


@pytest.mark.parametrize("annotation", PATHS, ids=range(len(PATHS)))
def test_what_no_path_can_bring(annotation: Any) -> None:
    """They were accepted, and the response was a 422 whatever the path was."""
    app = App()

    def handler(value) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
        pass

    handler.__annotations__ = {"value": annotation}
    app.get("/{value}")(handler)
    with pytest.raises(
        ConfigError, match=r"value of .*test_fillable.py:\d+.* from the path, which no"
    ):
        Client(app).__enter__()


@pytest.mark.parametrize("annotation", [Root, int | None, pydantic.Json[list[int]], tuple[int]])
def test_what_one_text_can_bring(annotation: Any) -> None:
    app = App()

    def handler(value) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
        return value

    handler.__annotations__ = {"value": annotation, "return": Any}
    if annotation != tuple[int]:
        app.get("/{value}")(handler)
        with Client(app) as client:
            assert client.get("/%5B3%5D" if "Json" in repr(annotation) else "/3").status_code == 200
        return
    handler.__annotations__["value"] = Annotated[annotation, Cookie()]
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/", headers={"cookie": "value=3"}).json() == [3]


def test_a_cookie_comes_once() -> None:
    with pytest.raises(ConfigError, match="takes a tuple from the cookies"):
        serve(Annotated[tuple[int, str], Cookie()]).__enter__()


class NeedsFunction(pydantic.BaseModel):
    call: Callable[[], int]


@dataclass
class NeedsClass:
    cls: list[type[int]]


class MayHaveFunction(msgspec.Struct):
    n: int
    call: Callable[[], int] | None = None


class MayHaveObject(pydantic.BaseModel):
    n: int
    call: Callable[[], int] = lambda: 1


@pytest.mark.parametrize(
    "annotation",
    [NeedsFunction, NeedsClass, list[NeedsClass], Annotated[Callable[[], int], Body()]],
    ids=range(4),
)
def test_what_no_body_can_bring(annotation: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"test_fillable.py:\d+.*no request can bring a (function|class)"
    ):
        serve(annotation, "POST").__enter__()


@pytest.mark.parametrize("annotation", [MayHaveFunction, MayHaveObject])
def test_fields_with_defaults_need_not_come(annotation: Any) -> None:
    """The document of the application was a 500."""

    def handler(value) -> Any:  # type: ignore[no-untyped-def]  # pyright: ignore
        return value.n

    handler.__annotations__ = {"value": annotation, "return": Any}
    app = App()
    app.post("/")(handler)
    with Client(app) as client:
        assert client.post("/", json={"n": 3}).json() == 3
    assert "n" in str(app.openapi()["components"])


def test_an_extension_value_of_msgpack_in_the_document() -> None:
    class Extended(msgspec.Struct):
        n: int
        ext: msgspec.msgpack.Ext | None = None

    def handler(value) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
        pass

    handler.__annotations__ = {"value": Extended}
    app = App()
    app.post("/")(handler)
    described = app.openapi()["components"]["schemas"]["Extended"]  # type: ignore[index]  # pyright: ignore
    assert described["properties"]["n"] == {"type": "integer"}


def test_a_type_without_a_schema_is_named_with_its_place() -> None:
    def handler(value) -> None:  # type: ignore[no-untyped-def]  # pyright: ignore
        pass

    handler.__annotations__ = {"value": Annotated[str, pydantic.BeforeValidator(serve_nothing)]}
    app = App()
    app.get("/")(handler)
    with pytest.raises(
        ConfigError, match=r"value of .*test_fillable.py:\d+.*pydantic has no schema"
    ):
        Client(app).__enter__()


def serve_nothing() -> None:
    """No validator takes no value."""


@pytest.mark.parametrize("annotation", [FormData, Headers, QueryParams, FormData | None])
def test_parts_of_the_request(annotation: Any) -> None:
    """They were read as the JSON object that they are like, and were dictionaries."""
    with pytest.raises(
        ConfigError, match=r"value of .*test_fillable.py:\d+.*take the citius.Request"
    ):
        serve(annotation, "POST").__enter__()


def test_parts_of_the_request_by_a_dependency() -> None:
    def form() -> FormData:
        return FormData([("a", "b")])

    def handler(value: FormData = Depends(form)) -> str:
        return value["a"]

    app = App()
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/").text == "b"


MISTAKES: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (Query, {"pattern": "("}, "is no regular expression"),
    (Query, {"ge": 10, "le": 1}, "no number is within"),
    (Query, {"gt": 1, "le": 1}, "no number is within"),
    (Query, {"ge": 1, "lt": 1}, "no number is within"),
    (Form, {"min_length": 3, "max_length": 2}, "is more than max_length=2"),
    (Query, {"alias": ""}, "alias='' is no name of a query"),
    (Header, {"alias": "x role"}, "is no name of a header"),
    (Header, {"alias": "x-role:"}, "is no name of a header"),
    (Cookie, {"alias": "a=b"}, "is no name of a cookie"),
]
"""Markers that no request satisfies; a pattern was an error of `re` without a place."""


@pytest.mark.parametrize(("marker", "given", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_markers_that_no_request_satisfies(
    marker: Callable[..., object], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"{marker.__name__} .*test_fillable.py:\d+.*{said}"):
        marker(**given)


def test_markers_at_the_edge() -> None:
    Query(ge=1, le=1)
    Query(min_length=2, max_length=2)
    Header(alias="X-Role")
    Query(alias="filter[name]")
