"""Handlers of all sources and types, which `scripts/fuzz_requests.py` sends to."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pydantic
from citius import App, Body, Cookie, File, Form, Header, Query, Request, Response, UploadFile
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
    "optional": Item | None,
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
_add("/file/one", app.post, Annotated[bytes, File()])
_add("/file/many", app.post, Annotated[list[UploadFile], File()], [])


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
