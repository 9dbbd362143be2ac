"""Handlers of all sources and types, which `scripts/fuzz_requests.py` sends to."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import re
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
from citius import (
    App,
    Body,
    Cookie,
    Depends,
    Event,
    File,
    Form,
    Header,
    Query,
    Request,
    Response,
    UploadFile,
    event_stream,
)
from citius.errors import UnprocessableContent
from citius.web.middleware import ETags


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct):
    at: dt.datetime | None = None
    day: dt.date | None = None
    data: bytes = b""


class Item(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
    price: Annotated[float, msgspec.Meta(ge=0)] = 0
    count: int = 0
    color: Color | None = None
    inner: Inner | None = None
    tags: list[str] = []
    more: dict[str, Any] = {}


class Strict(msgspec.Struct, forbid_unknown_fields=True, tag="strict"):
    id: UUID
    amount: Decimal = Decimal(0)


class Loose(msgspec.Struct, tag="loose"):
    span: dt.timedelta | None = None
    time: dt.time | None = None


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=1)
    at: dt.datetime | None = None
    price: Decimal | None = None
    ratio: float | None = None
    url: pydantic.AnyUrl | None = None
    inner: Model | None = None
    tags: set[str] = set()


@dataclasses.dataclass
class Data:
    key: int
    values: tuple[int, str] | None = None


class Typed(TypedDict):
    a: int
    b: list[Typed]


class Row(msgspec.Struct, array_like=True):
    key: int
    at: dt.datetime | None = None
    amount: Decimal = Decimal(0)


class Pair(NamedTuple):
    a: int
    b: dt.date | None = None


@attrs.define
class Attributes:
    key: int
    more: dict[str, dt.timedelta] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.key == 2:
            raise ValueError("two")


@pydantic.dataclasses.dataclass
class ModelData:
    key: int
    at: dt.time | None = None
    inner: list[ModelData] = pydantic.Field(default_factory=list)


class Root(pydantic.RootModel[dict[str, Model | int]]):
    """A mapping as a model."""


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True, extra="forbid")
    name: str = pydantic.Field(
        validation_alias=pydantic.AliasChoices("v", pydantic.AliasPath("values", 0))
    )
    price: Annotated[Decimal, pydantic.Field(ge=0, decimal_places=2)] = Decimal(0)
    when: pydantic.PastDatetime | None = pydantic.Field(None, alias="at")
    pattern: re.Pattern[str] | None = pydantic.Field(None, alias="key")


T = TypeVar("T")


class Page(pydantic.BaseModel, Generic[T]):
    values: list[T]
    more: dict[int, T] = {}

    @pydantic.model_validator(mode="after")
    def check(self) -> Page[T]:
        """Refuse long ones."""
        if len(self.values) > 2:
            raise ValueError("too long")
        return self


class Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str = ""


class Checked(msgspec.Struct):
    name: str
    price: float = 0

    def __post_init__(self) -> None:
        if self.price > 1:
            raise ValueError(self.name)


class Filters(msgspec.Struct):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    since: dt.datetime | None = None
    ids: list[int] = []
    order: Literal["up", "down"] | None = None


class ModelFilters(pydantic.BaseModel):
    limit: int = pydantic.Field(10, ge=1)
    since: dt.datetime | None = None
    ids: list[int] = []


app = App()
app.middleware(ETags())

TEXTS: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "str": str, "datetime": dt.datetime, "date": dt.date,
    "time": dt.time,
    "timedelta": dt.timedelta, "decimal": Decimal, "uuid": UUID, "color": Color, "literal": Literal["a", 1],
    "ints": list[int], "dates": list[dt.datetime], "optional": int | None, "either": int | str,
    "positive": Annotated[int, msgspec.Meta(gt=0)], "model-int": Annotated[int, pydantic.Field(gt=0)],
    "aware": pydantic.AwareDatetime, "model-decimal": Annotated[Decimal, pydantic.Field(max_digits=5)],
}  # fmt: skip
"""Types that a text is made of; the sources are those of `_sources`."""

BODIES: dict[str, Any] = {
    "item": Item, "items": list[Item], "tagged": Strict | Loose, "model": Model, "models": list[Model],
    "model-union": Model | int, "data": Data, "typed": Typed, "dict": dict[str, Any], "keys": dict[int,
    dt.datetime],
    "any": Annotated[Any, Body()], "number": Annotated[int, Body()], "when": Annotated[dt.datetime, Body()],
    "optional": Item | None, "row": Row, "rows": tuple[Row, ...], "pair": Pair, "attrs": Attributes,
    "model-data": ModelData, "root": Root, "aliased": Aliased, "page": Page[Model], "extra": Extra,
    "checked": list[Checked], "set": Annotated[frozenset[int], Body()], "mixed": tuple[int, Item],
    "keyed": dict[UUID, Decimal], "literals": dict[Literal["a", "b"], Color], "raw": bytes,
}  # fmt: skip


def _add(path: str, method: Any, annotation: Any, default: Any = ...) -> None:
    def handler(v: Any) -> Any:
        return {"value": repr(v)[:200]}

    handler.__annotations__ = {"v": annotation}
    handler.__defaults__ = None if default is ... else (default,)
    handler.__name__ = path.replace("/", "_")
    method(path)(handler)


for name, kind in TEXTS.items():
    _add(f"/query/{name}", app.get, Annotated[kind, Query()])
    _add(f"/header/{name}", app.get, Annotated[kind, Header()])
    _add(f"/cookie/{name}", app.get, Annotated[kind, Cookie()])
    _add(f"/form/{name}", app.post, Annotated[kind, Form()])
    if name not in ("ints", "dates", "optional"):
        _add(f"/path/{name}/{{v}}", app.get, kind)
for name, kind in BODIES.items():
    _add(f"/body/{name}", app.post, kind, *([None] if name == "optional" else []))
for name, kind in (("struct", Filters), ("model", ModelFilters)):
    _add(f"/query/whole-{name}", app.get, Annotated[kind, Query()])
    _add(f"/header/whole-{name}", app.get, Annotated[kind, Header()])
    _add(f"/cookie/whole-{name}", app.get, Annotated[kind, Cookie()])
    _add(f"/form/whole-{name}", app.post, Annotated[kind, Form()])
for name, kind in (("aliased", Aliased), ("data", Data), ("extra", Extra), ("checked", Checked)):
    _add(f"/query/whole-{name}", app.get, Annotated[kind, Query()])
    if name != "data":
        _add(f"/header/whole-{name}", app.get, Annotated[kind, Header()])
        _add(f"/form/whole-{name}", app.post, Annotated[kind, Form()])
for converter in ("int", "float", "path"):
    _add(f"/converted/{converter}/{{v:{converter}}}", app.get, Any)
_add("/query/json", app.get, Annotated[pydantic.Json[dict[str, Model]], Query()])
_add("/form/json", app.post, Annotated[pydantic.Json[list[int]], Form()])
_add("/body/embedded", app.post, Annotated[Item, Body(embed=True)])
_add("/file/one", app.post, Annotated[bytes, File()])
_add("/file/many", app.post, Annotated[list[UploadFile], File()], [])


@app.post("/several/bodies")
def several(inner: Item, v: Model, tags: Annotated[list[dt.datetime], Body()] = []) -> Any:  # noqa: B006
    """Members of one object."""
    return [repr(inner)[:50], repr(v)[:50], len(tags)]


@app.post("/several/parts")
def parts(
    v: Annotated[int, Form()],
    inner: Annotated[Item | None, Body()] = None,
    tags: Annotated[list[UUID], Body()] = [],  # noqa: B006
    data: Annotated[UploadFile | None, File()] = None,
    model: Annotated[Model | None, Body(alias="name")] = None,
) -> Any:
    """JSON in parts of a form, beside its fields and files."""
    return [v, repr(inner)[:50], repr(tags)[:50], repr(model)[:50], data is None]


async def _session(since: dt.datetime | None = None, v: Decimal = Query(Decimal(1))) -> Any:
    return [since, v]


@app.get("/dependency")
async def dependency(
    data: Any = Depends(_session), limit: int = Query(1, ge=1)
) -> AsyncIterator[Item]:
    """Lines of JSON, behind what a dependency reads."""
    yield Item(repr(data)[:10], count=limit % 7)


@app.post("/sent", response=Page[Model])
def sent(request: Request) -> Any:
    """What a client has sent is what the route declares, or the client's mistake is found by the handler."""
    try:
        return Page[Model].model_validate(request.json())
    except ValueError:
        raise UnprocessableContent("no page") from None


@app.get("/events/{v}")
def events(v: int = 0, name: str = "") -> Response:
    """Events with a text of the client in them."""
    return event_stream([Event(name), name, v])


@app.post("/echo")
def echo(request: Request) -> Any:
    """Whatever was sent as a value."""
    return request.json()


@app.get("/texts")
def texts(request: Request) -> Any:
    """What `Request` makes of a query, cookies and fields."""
    return {
        "query": request.query.multi_items(), "cookies": dict(request.cookies), "target": request.target,
        "client": request.client, "host": request.host, "type": request.headers.get("content-type"),
    }  # fmt: skip


@app.post("/request/json")
def request_json(request: Request) -> Any:
    """What `Request` makes of a body."""
    return repr(request.json())[:200]


@app.post("/request/form")
def request_form(request: Request) -> Any:
    """The same of a form."""
    return [name for name, _ in request.form().multi_items()]


@app.get("/dated")
def dated() -> Response:
    """A response with a date, which conditional requests name."""
    return Response("x", 200, {"last-modified": "Mon, 01 Jan 2024 00:00:00 GMT"})


@app.post("/back")
def back(item: Item) -> Item:
    """What was read is sent."""
    return item


@app.post("/back-model")
def back_model(model: Model) -> Model:
    """The same by pydantic."""
    return model
