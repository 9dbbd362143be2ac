"""Parameters that do not match: every mistake has its place, in both protocols and both forms."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pytest
from citius import App, Depends
from citius.errors import RpcError
from citius.testing import Client
from citius.web.routing.rpc import procedures
from pydantic import BaseModel


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    price: float
    tags: list[str] = []


class Order(BaseModel):
    count: int
    note: str = ""


def page(limit: Annotated[int, msgspec.Meta(le=100)] = 10) -> int:
    return limit


def add(item: Item, count: Annotated[int, msgspec.Meta(ge=1)], *, note: str | None = None) -> str:
    return "added"


def total(*numbers: float) -> float:
    return sum(numbers)


def both(a: int, b: int) -> int:
    return a + b


def foreign(order: Order, b: int) -> int:
    return order.count


def depending(name: str, page: Annotated[int, Depends(page)]) -> str:
    return name


@pytest.fixture(scope="module")
def decoders() -> dict[str, Any]:
    """The decoders of each procedure, as the extension gets them."""
    app, made = App(), dict[str, Any]()
    for procedure in (add, total, both, foreign, depending):
        app.rpc(procedure)
    kept = procedures.Decoders.__init__

    def init(self: Any, handler: Any, *rest: Any) -> None:
        made[handler.__name__] = self
        kept(self, handler, *rest)

    procedures.Decoders.__init__ = init
    try:
        Client(app).close()
    finally:
        procedures.Decoders.__init__ = kept
    return made


def mistakes(decoders: dict[str, Any], name: str, params: Any) -> list[tuple[str, str]]:
    """Pointer and detail of each, which both protocols tell alike."""
    one, found = decoders[name], []
    is_array = isinstance(params, list)
    for call, encode in (
        (one.json_array if is_array else one.json_object, msgspec.json.encode),
        (one.msgpack_array if is_array else one.msgpack_map, msgspec.msgpack.encode),
    ):
        with pytest.raises(RpcError) as refused:
            call(encode(params))
        assert refused.value.type == "InvalidParams"
        errors = refused.value.data["errors"]
        assert all(error["in"] == "params" for error in errors)
        assert errors[0]["detail"] in refused.value.message
        found.append([(error["pointer"], error["detail"]) for error in errors])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("both", ["x", None], [("#/0", "an integer, got a string"), ("#/1", "an integer, got null")]),
        ("both", [1], [("#/1", "missing: b")]),
        ("both", [], [("#/0", "missing: a"), ("#/1", "missing: b")]),
        ("both", [1, "x", 3], [("#/1", "an integer"), ("#/2", "at most 2 parameters, got 3")]),
        ("both", {"a": "x", "c": 1}, [("#/b", "missing"), ("#/c", "unknown"), ("#/a", "integer")]),
        (
            "add",
            [{"name": "", "tags": ["a", 1], "colour": 1}, 0],
            [
                ("#/0/name", "length >= 1"),
                ("#/0/price", "missing"),
                ("#/0/tags/1", "expected a string"),
                ("#/0/colour", "unknown field"),
                ("#/1", "expected an integer >= 1"),
            ],
        ),
        (
            "add",
            {"item": {"name": 1, "price": "x"}, "count": 1, "note": 5},
            [("#/item/name", "string"), ("#/item/price", "number"), ("#/note", "string")],
        ),
        ("total", [1, "x", None], [("#/1", "expected a number"), ("#/2", "expected a number")]),
        (
            "foreign",
            [{"count": "x", "note": 1}, "y"],
            [("#/0/count", "integer"), ("#/0/note", "string"), ("#/1", "expected an integer")],
        ),
        ("depending", ["a", 101], [("#/1", "<= 100")]),
        ("depending", {"limit": "x"}, [("#/name", "missing"), ("#/limit", "expected an integer")]),
    ],
)  # fmt: skip
def test_every_mistake(
    decoders: dict[str, Any], name: str, params: Any, expected: list[tuple[str, str]]
) -> None:
    found = mistakes(decoders, name, params)
    assert {pointer for pointer, _ in found} == {pointer for pointer, _ in expected}
    details = dict(found)
    for pointer, detail in expected:
        assert detail in details[pointer]


def test_there_are_not_more_than_a_hundred(decoders: dict[str, Any]) -> None:
    assert len(mistakes(decoders, "total", ["x"] * 10_000)) == 100
    item = {"name": "a", "price": 1, "tags": [1] * 10_000}
    assert len(mistakes(decoders, "add", [item, 1])) == 100


def test_text_that_is_none(decoders: dict[str, Any]) -> None:
    for call, params in (
        (decoders["both"].json_array, b'["\xff", 1]'),
        (decoders["both"].json_array, b"[" * 100_000),
        (decoders["add"].json_object, json.dumps({"item": {}}).encode() + b"}"),
        (decoders["both"].msgpack_array, b"\x92\xa1\xff\x01"),
    ):
        with pytest.raises(RpcError) as refused:
            call(params)
        assert refused.value.type == "InvalidParams"
        assert refused.value.data["errors"]
