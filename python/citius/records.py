"""Classes with fields, as ``dataclasses.dataclass`` makes them, without generating and compiling source.

``@dataclass`` compiles the methods of each class: 0.3 to 0.9 ms a class. The 40 classes that every worker
imports took a third of the CPU time of its start that way. The methods here are shared by all classes and
read a list of fields. An instance takes about twice as long to make, so classes whose instances are made for
each request or message stay dataclasses.

They are dataclasses to ``dataclasses.fields``, ``replace``, ``asdict`` and ``is_dataclass``, and to type
checkers. Tests: ``tests/unit/test_records.py``, which compares them with dataclasses.
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, field
from inspect import Parameter, Signature
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["record"]

T = TypeVar("T")


@dataclass_transform(field_specifiers=(field,))
def record(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Callable[[type[T]], type[T]]:
    """Make the annotated names of a class its fields.

    Args:
        frozen: Fields cannot be assigned to, and instances can be hashed if ``eq`` is true.
        slots: Instances have no ``__dict__``.
        kw_only: Fields are given by name only.
        eq: Instances of one class are equal if their fields are.
        repr: ``repr`` shows the fields.

    Raises:
        TypeError: A field without a default follows one with a default.
    """

    def make(cls: type[T]) -> type[T]:
        fields = _fields(cls, kw_only=kw_only)
        if slots:
            cls = _with_slots(cls, fields)
        set_on: Any = cls
        set_on.__dataclass_fields__ = fields
        set_on.__dataclass_params__ = _Parameters(
            frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, repr=repr
        )
        set_on.__init__ = _initializer(cls, fields)
        set_on.__signature__ = _LazySignature()
        set_on.__match_args__ = tuple(name for name, one in fields.items() if not one.kw_only)
        set_on.__replace__ = _replace
        own = vars(cls)
        if repr and "__repr__" not in own:
            set_on.__repr__ = _repr
        if eq and "__eq__" not in own:
            set_on.__eq__ = _equals
        if (eq and "__hash__" not in own) or own.get("__hash__", 0) is None:
            set_on.__hash__ = _hash if frozen else None
        if frozen:
            set_on.__setattr__ = _refuse_change
            set_on.__delattr__ = _refuse_change
            if slots:
                set_on.__getstate__ = _state
                set_on.__setstate__ = _set_state
        return cls

    return make


class _Parameters:
    """What ``@dataclass`` was given, by its names."""

    def __init__(self, **given: bool) -> None:
        self.init = self.match_args = True
        self.order = self.unsafe_hash = self.weakref_slot = False
        vars(self).update(given)


def _fields(cls: type, *, kw_only: bool) -> dict[str, Field[Any]]:
    """Those of its bases, and its own."""
    found: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(getattr(base, "__dataclass_fields__", {}))
    optional = ""
    for name, annotation in cls.__annotations__.items():
        if "ClassVar" in str(annotation):
            continue
        if annotation is KW_ONLY or annotation == "KW_ONLY":
            kw_only = True
            continue
        given = vars(cls).get(name, MISSING)
        one: Any = cast("Any", given) if isinstance(given, Field) else field(default=given)
        one.name, one.type = name, annotation
        if one.kw_only is MISSING:
            one.kw_only = kw_only
        one._field_type = getattr(dataclasses, "_FIELD")  # noqa: B009 - fields() looks for it
        found[name] = one
        if one.default is not MISSING:
            setattr(cls, name, one.default)
        elif isinstance(given, Field):
            delattr(cls, name)
    for one in found.values():
        if one.kw_only:
            continue
        if one.default is not MISSING or one.default_factory is not MISSING:
            optional = one.name
        elif optional:
            raise TypeError(
                f"{cls.__qualname__}: {one.name} has no default, and {optional} before it has one"
            )
    return found


def _with_slots(cls: type[T], fields: dict[str, Field[Any]]) -> type[T]:
    """The class anew: ``__slots__`` count while a class is made."""
    inherited = {
        name for base in cls.__mro__[1:] for name in getattr(base, "__dataclass_fields__", ())
    }
    content = {name: value for name, value in vars(cls).items() if name not in fields}
    for name in ("__dict__", "__weakref__"):
        content.pop(name, None)
    content["__slots__"] = tuple(name for name in fields if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _initializer(cls: type, fields: dict[str, Field[Any]]) -> Callable[..., None]:
    """The ``__init__`` of a class."""
    # How each field is set, whatever ``__setattr__`` refuses, and what it is without a value.
    put = [
        (name, _setter(cls, name), one.default, one.default_factory) for name, one in fields.items()
    ]
    positional = [one for one, made in zip(put, fields.values(), strict=True) if not made.kw_only]
    by_name_only = [one for one, made in zip(put, fields.values(), strict=True) if made.kw_only]
    checked = getattr(cls, "__post_init__", None)

    def initialize(self: Any, /, *args: Any, **given: Any) -> None:
        if len(args) > len(positional):
            most = len(positional)
            raise TypeError(
                f"{cls.__name__}() takes {most} positional arguments, and was given {len(args)}"
            )
        for value, (_, set_value, _, _) in zip(args, positional, strict=False):
            set_value(self, value)
        for name, set_value, default, factory in (*positional[len(args) :], *by_name_only):
            if name in given:
                set_value(self, given.pop(name))
            elif default is not MISSING:
                set_value(self, default)
            elif factory is not MISSING:
                set_value(self, factory())
            else:
                raise TypeError(f"{cls.__name__}() lacks the argument {name!r}")
        if given:
            name = next(iter(given))
            why = "was given twice" if name in fields else "does not exist"
            raise TypeError(f"{cls.__name__}(): the argument {name!r} {why}")
        if checked is not None:
            self.__post_init__()

    return initialize


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    slot = getattr(cls, name, None)
    if type(slot).__name__ == "member_descriptor":
        return slot.__set__  # pyright: ignore[reportOptionalMemberAccess]
    return lambda self, value: object.__setattr__(self, name, value)


class _LazySignature:
    """The signature of a class, made when it is asked for."""

    def __get__(self, _: object, cls: type) -> Signature:
        parameters = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                default=_shown_default(one),
                annotation=one.type,
            )
            for name, one in getattr(cls, "__dataclass_fields__").items()  # noqa: B009
        ]
        return Signature(sorted(parameters, key=lambda one: one.kind))


def _shown_default(one: Field[Any]) -> Any:
    if one.default is not MISSING:
        return one.default
    return Parameter.empty if one.default_factory is MISSING else one.default_factory


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(
        getattr(self, name) for name, one in self.__dataclass_fields__.items() if one.compare
    )


def _equals(self: Any, other: object) -> bool:
    if self.__class__ is not other.__class__:
        return NotImplemented
    return self is other or _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (name for name, one in self.__dataclass_fields__.items() if one.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _replace(self: T, /, **changes: Any) -> T:
    # ``copy.replace`` of CPython 3.13 calls it.
    return cast("Any", dataclasses.replace)(self, **changes)


def _refuse_change(self: object, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change {name!r} of {type(self).__name__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)
