"""Records behave as dataclasses of the same declaration do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import pytest
from citius.records import record

MAKERS = {"dataclass": dataclass, "record": record}


class _Base:
    """What both are made of; each maker gets a copy."""

    kind: ClassVar[str] = "k"
    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list[int])
    d: int = field(default=4, compare=False, repr=False)
    _: KW_ONLY
    e: int | None = None
    f: int = field(default=1, kw_only=False)


def made(maker: str, **options: Any) -> Any:
    """The class, made by ``@dataclass`` or by ``@record``."""
    content = {
        name: value
        for name, value in vars(_Base).items()
        if name not in ("__dict__", "__weakref__")
    }
    content["c"], content["d"] = (
        field(default_factory=list[int]),
        field(default=4, compare=False, repr=False),
    )
    content["__annotations__"] = dict(_Base.__annotations__)
    return MAKERS[maker](**options)(type("Made", (), content))


OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"kw_only": True, "slots": True},
    {"eq": False},
    {"repr": False},
]


def outcome(function: Any) -> object:
    """What a call returns, or the class of what it raises."""
    try:
        return function()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(given) or "plain")
def test_what_can_be_seen_is_that_of_a_dataclass(options: dict[str, Any]) -> None:
    """Each observation is the same on both classes."""

    def observe(cls: Any) -> list[object]:
        one, other = cls(a=1, c=[2]), cls(a=1, b="b", c=[2], d=9)
        return [
            outcome(lambda: cls(1).b),
            outcome(cls),
            outcome(lambda: cls(1, 2, 3, 4, 5, 6)),
            outcome(lambda: cls(a=1, g=2)),
            outcome(lambda: cls(1, 2, [], 4, 5).f),
            outcome(lambda: cls(a=1, e=2).e),
            outcome(lambda: cls(1, a=2).a),
            outcome(lambda: cls(a=1).c is cls(a=1).c),
            one == other,
            one == cls(a=2),
            one.__eq__(3),
            outcome(lambda: setattr(one, "a", 5)),
            outcome(lambda: delattr(one, "b")),
            outcome(lambda: hash(other))
            if not options.get("eq", True)
            else outcome(lambda: hash(cls(a=1, c=()))) is TypeError,
            (repr(other) if options.get("repr", True) else repr(other).startswith("<")),
            outcome(lambda: dataclasses.asdict(other)),
            [f.name for f in dataclasses.fields(cls)],
            dataclasses.is_dataclass(cls),
            outcome(lambda: dataclasses.replace(other, a=7).a),
            getattr(cls, "__match_args__", None),
            hasattr(other, "__dict__"),
            getattr(cls, "__slots__", None),
            [
                (p.name, p.kind, p.default is inspect.Parameter.empty)
                for p in inspect.signature(cls).parameters.values()
            ],
            outcome(lambda: copy.copy(other).b),
            cls.kind,
            cls.__qualname__,
            cls.__module__,
        ][: None if options.get("eq", True) else 13]

    assert observe(made("record", **options)) == observe(made("dataclass", **options))


@record(frozen=True, slots=True)
class Point:
    """For pickle, which looks for it here."""

    x: int
    y: int = 2

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@record(frozen=True, slots=True)
class Named(Point):
    """With a field more."""

    name: str = ""


def test_pickle_and_inheritance() -> None:
    """Frozen instances with slots can be pickled; a subclass has the fields of its base first."""
    one = Named(1, name="n")
    assert pickle.loads(pickle.dumps(one)) == one
    assert [f.name for f in dataclasses.fields(Named)] == ["x", "y", "name"]
    assert one != Point(1)
    assert Named.__slots__ == ("name",)
    with pytest.raises(ValueError, match="negative"):
        Point(-1)


def test_a_field_without_a_default_after_one_with_a_default() -> None:
    """As a dataclass refuses it."""
    with pytest.raises(TypeError, match="second has no default"):

        @record()
        class Wrong:  # pyright: ignore[reportUnusedClass]
            first: int = 1
            second: str  # pyright: ignore[reportGeneralTypeIssues]
