"""Mistakes: every one is found, with its place, in the words of clients; the slow pass is bounded."""

from __future__ import annotations

import datetime
import enum
import time
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar
from uuid import UUID

import msgspec
import msgspec.inspect
import pytest
from citius.web.declarations import validation_errors as module
from citius.web.declarations.type_checks import Trial, check_of
from citius.web.declarations.validation_errors import CHECKS_MAX, MISTAKES_MAX, find_mistakes

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Line(msgspec.Struct):
    sku: Annotated[str, msgspec.Meta(pattern="^[A-Z]+$")]
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class Order(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    customer_id: int
    lines: Annotated[list[Line], msgspec.Meta(min_length=1)]
    color: Color | None = None
    notes: dict[str, int] = {}


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    age: int


class Checked(msgspec.Struct):
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@dataclass
class Point:
    x: int
    y: float


class Shape(TypedDict):
    corners: int


def mistakes(annotation: Any, value: Any, strict: bool = True) -> dict[str, str]:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, annotation, strict=strict)
    found = find_mistakes(value, annotation, caught.value, "body", strict=strict)
    assert {one["in"] for one in found} == {"body"}
    return {one["pointer"]: one["detail"] for one in found}


def test_every_mistake_is_named() -> None:
    order = {
        "lines": [{"sku": "a", "count": 0}, {"count": "many"}, "none"],
        "color": "green",
        "notes": {"a/b": "x"},
        "extra": 1,
    }
    assert mistakes(Order, order) == {
        "#/customerId": "missing",
        "#/lines/0/sku": "expected a string matching regex '^[A-Z]+$'",
        "#/lines/0/count": "expected an integer >= 1",
        "#/lines/1/sku": "missing",
        "#/lines/1/count": "expected an integer, got a string",
        "#/lines/2": "expected an object, got a string",
        "#/color": "expected one of 'red', 'blue'",
        "#/notes/a~1b": "expected an integer, got a string",
        "#/extra": "unknown field",
    }


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Order, {"customerId": 1, "lines": []}, {"#/lines": "expected an array of length >= 1"}),
        (list[Order | None], [None, 5], {"#/1": "expected an object, got an integer"}),
        (Page[int], {"items": [1, "x", None]}, {
            "#/items/1": "expected an integer, got a string",
            "#/items/2": "expected an integer, got null",
        }),
        (Cat | Dog, {"type": "Dog", "age": "x"}, {"#/age": "expected an integer, got a string"}),
        (Cat | Dog, {"type": "Cow"}, {"#/type": "invalid value 'Cow'"}),
        (Checked, {"low": 2, "high": 1}, {"#": "low is above high"}),
        (Point, {"x": "1", "y": []}, {
            "#/x": "expected an integer, got a string", "#/y": "expected a number, got an array",
        }),
        (Shape, {}, {"#/corners": "missing"}),
        (tuple[int, str], [1, 2], {"#/1": "expected a string, got an integer"}),
        (tuple[int, str], [1], {"#": "expected an array of length 2, got 1"}),
        (Color, "green", {"#": "expected one of 'red', 'blue'"}),
        (Literal["a", "b"], "c", {"#": "expected one of 'a', 'b'"}),
        (UUID, "x", {"#": "expected a UUID"}),
        (datetime.datetime, "x", {"#": "expected a date and time (RFC 3339)"}),
        (datetime.date, "x", {"#": "expected a date (RFC 3339)"}),
        (int | str, [], {"#": "expected an integer or a string, got an array"}),
        (list[int] | None, ["x"], {"#/0": "expected an integer, got a string"}),
    ],
)  # fmt: skip
def test_places_and_words(annotation: Any, value: Any, expected: dict[str, str]) -> None:
    if annotation == int | str:
        found = mistakes(annotation, value)
        assert sorted(found["#"].split()) == sorted(expected["#"].split())
        return
    assert mistakes(annotation, value) == expected


def test_texts_are_not_called_strings_where_all_is_text() -> None:
    assert mistakes(list[int], ["1", "x", "2.5"], strict=False) == {
        "#/1": "expected an integer", "#/2": "expected an integer",
    }  # fmt: skip


def test_the_number_of_mistakes_is_bounded_and_the_pass_is_linear() -> None:
    many = ["x"] * 100_000
    begun = time.monotonic()
    assert len(mistakes(list[int], many)) == MISTAKES_MAX
    assert time.monotonic() - begun < 5
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert len(find_mistakes(deep, list[Any], ValueError("odd"), "body", strict=True)) == 1


def test_the_number_of_checks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    whole = module._Walk._check_whole

    def counted(self: Any, *arguments: Any) -> None:
        calls.append(None)
        whole(self, *arguments)

    monkeypatch.setattr(module._Walk, "_check_whole", counted)
    found = mistakes(list[int], [*[1] * 100_000, "x"])
    assert list(found) == ["#/100000"]
    assert len(calls) <= CHECKS_MAX


BOUNDED: list[Any] = [
    int, float, str, bool, None, Color, Literal["a", 1, None], list[int], list[list[str]],
    datetime.datetime, UUID, bytes, Point, int | str,
    Annotated[int, msgspec.Meta(ge=1, lt=10)], Annotated[int, msgspec.Meta(multiple_of=3)],
    Annotated[float, msgspec.Meta(gt=0, le=2.5)], Annotated[str, msgspec.Meta(min_length=1, max_length=3)],
    Annotated[str, msgspec.Meta(pattern="^a")], Annotated[list[float], msgspec.Meta(min_length=2)],
]  # fmt: skip
SENT: list[Any] = [
    0, 1, 3, 9, 10, -1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 0.0, 1.0, 1.5, 2.5, 2.6, -0.5, 1e300,
    float("inf"), float("nan"), "", "a", "ab", "red", "1", "\u00e9\u00e9\u00e9", "abcd", True, False, None,
    [], [1], [1, 2], [1, True], [1.5, 2], [["a"], ["b"]], [["a"], [1]], {}, {"x": 1, "y": 2.0}, b"a",
]  # fmt: skip


@pytest.mark.parametrize("annotation", BOUNDED)
def test_bounds_are_those_of_msgspec_and_so_are_the_words(annotation: Any) -> None:
    node = msgspec.inspect.type_info(annotation)
    check, trial = check_of(node), Trial(node, annotation, strict=True)
    module._read.cache_clear()
    for value in SENT:
        try:
            msgspec.convert(value, annotation, str_keys=True)
            said = None
        except msgspec.ValidationError as error:
            said = str(error)
            assert check is None or not check(value), value
        found = trial.error(value)
        assert (None if found is None else str(found)) == said, value
        if said is not None:
            texts = module._texts_of(node)
            path, words = module._said(ValueError(said), (), strict=True)
            words = module._allowed(node) or words
            assert path or texts.get(value.__class__, words) == words, value


class Size(enum.Enum):
    SMALL = "s"

    @classmethod
    def _missing_(cls, value: object) -> Size | None:
        return cls.SMALL if value == "small" else None


class Shirt(msgspec.Struct):
    size: Size
    count: int


def test_members_that_a_class_makes_of_other_values_are_tried() -> None:
    found = mistakes(Shirt, {"size": "small", "count": "x"})
    assert found == {"#/count": "expected an integer, got a string"}


def test_most_values_are_decided_by_bounds() -> None:
    for annotation, value in [(int, 1), (float, 2), (str, "a"), (Color, "red"), (list[int], [1])]:
        check = check_of(msgspec.inspect.type_info(annotation))
        assert check is not None
        assert check(value)
