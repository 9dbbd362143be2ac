"""Annotations: what a type says of the values that a request may bring.

Types in, facts out: whether values come in a body, whether msgspec can make them, whether a default is one of
them. Nothing is known here of parameters or routes. msgspec is imported when it is first needed. Tests:
``tests/unit/test_binding.py``, ``tests/unit/test_checks.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import MutableMapping, MutableSequence, MutableSet
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_origin

from citius._core import Response
from citius.errors import ConfigError
from citius.records import record
from citius.web.declarations.fillable import is_json_text
from citius.web.declarations.parameters.sources import LENGTHS
from citius.web.declarations.type_kinds import (
    RECORDS,
    bare,
    has_record,
    is_named_tuple,
    is_pydantic_dataclass,
    is_typed_dict,
    kind_of,
    metadata_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# What the text of a path or a query is already.
AS_SENT = (inspect.Parameter.empty, str, Any)


def is_body(annotation: Any) -> bool:
    """Whether values of this type come in a body: they have fields or keys."""
    found = kind_of(annotation)
    if found.kind in ("record", "mapping") or is_named_tuple(found.cls):
        return True
    return found.kind in ("union", "array", "tuple") and any(map(is_body, found.parts))


def without_none(annotation: Any) -> Any:
    """The type without ``None``: what a query, a header or a form brings, if anything."""
    if hasattr(annotation, "__metadata__") or annotation is inspect.Parameter.empty:
        return annotation
    found = kind_of(annotation)
    others = [one for one in found.parts if one is not NoneType]
    if found.kind == "union" and len(others) < len(found.parts):
        return Union[tuple(others)]  # noqa: UP007
    return annotation


def is_app(annotation: Any) -> bool:
    """Whether this is ``citius.App``, which imports this module."""
    cls: Any = annotation
    return isinstance(cls, type) and (cls.__module__, cls.__qualname__) == (
        "citius.web.application.app",
        "App",
    )


def without_response(annotation: Any, *, is_explicit: bool) -> tuple[bool, Any]:
    """Whether a type is a model that responses are made to fit, and the type without ``Response``.

    A return annotation is one if it has a class with fields in it; other annotations are for type checkers. A
    type that is declared for the response always is one.
    """
    if annotation is inspect.Parameter.empty:
        return False, annotation
    members = kind_of(annotation).parts if kind_of(annotation).kind == "union" else ()
    others = [one for one in members if bare(one) is not Response]
    if len(others) < len(members):
        annotation = Union[tuple(others)] if others else Response  # noqa: UP007
    if bare(annotation) in (Response, None, NoneType, Any):
        return False, annotation
    return is_explicit or has_record(annotation), annotation


def is_encoded(annotation: Any) -> bool:
    """Whether a result of this annotation goes to an encoder: not text, bytes, a ``Response`` or unknown."""
    if annotation is inspect.Parameter.empty:
        return False
    found = kind_of(annotation)
    if found.kind == "union":
        return any(map(is_encoded, found.parts))
    return found.kind in ("record", "array", "tuple", "mapping")


def wants_list(annotation: Any) -> bool:
    """``list[int]``, ``tuple[str, ...]``, ``set[int] | None``."""
    if is_json_text(annotation):
        return False
    found = kind_of(annotation)
    if found.kind == "union":
        return any(map(wants_list, found.parts))
    return found.kind in ("array", "tuple") and not is_named_tuple(found.cls)


_BUILT_IN = (int, float, bool, str, bytes, dict, Any)


def foreign_type(annotation: Any, where: str) -> type | None:
    """The class in a type that msgspec cannot make of text or of a body, if there is one."""
    if annotation in _BUILT_IN:
        return None
    import msgspec.inspect

    try:
        return _custom_in(msgspec.inspect.type_info(annotation), set())
    except (TypeError, NameError) as error:
        advice = "; write pydantic.Field(…) for the constraint" if "Decimal" in str(error) else ""
        raise ConfigError(f"{where} has a type that msgspec cannot read: {error}{advice}") from None


def _custom_in(info: Any, seen: set[Any], *, is_needed: bool = True) -> type | None:
    """The first class in ``info`` that msgspec does not know.

    Fields with defaults may have one, as they need not be sent; not a dataclass of pydantic, whose rules
    msgspec would leave out.
    """
    import msgspec.inspect as types_of

    if isinstance(info, types_of.CustomType):
        return info.cls if is_needed else None
    if isinstance(info, types_of.DataclassType) and is_pydantic_dataclass(info.cls):
        return info.cls
    if (id(info), is_needed) in seen or not isinstance(info, types_of.Type):
        return None
    seen.add((id(info), is_needed))
    inner: list[Any] = [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    inner += [getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    found = [_custom_in(one, seen, is_needed=is_needed) for one in inner]
    found += [
        _custom_in(one.type, seen, is_needed=is_needed and one.required)
        for one in getattr(info, "fields", ())
    ]
    return next((cls for cls in found if cls is not None), None)


def qualified(cls: type) -> str:
    """A class with its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


def instead_of(cls: type) -> str:
    """What to write in the place of a class that msgspec does not know."""
    if is_pydantic_dataclass(cls):
        return "a msgspec.Struct has no fields of pydantic's types: make it a dataclass or a model"
    if any(base.__module__.partition(".")[0] == "pydantic" for base in cls.__mro__):
        return (
            "a msgspec.Struct has no fields of pydantic's types: make it a dataclass or a model, or take the "
            f"request and call {cls.__name__}.model_validate_json(request.body())"
        )
    return "use a msgspec.Struct, a dataclass, a TypedDict or a type that msgspec knows"


def is_of(value: Any, annotation: Any) -> bool:
    """Whether a default is of its parameter's type; constraints of the type are left to the author."""
    if annotation is Any:
        return True
    if hasattr(annotation, "__metadata__"):  # Annotated
        return is_of(value, annotation.__origin__)
    if isinstance(annotation, type) and get_origin(annotation) is None:
        cls: type[Any] = annotation
        if not is_typed_dict(cls):
            return isinstance(value, (int, float) if cls is float else cls)
    import msgspec

    try:
        msgspec.convert(value, annotation, from_attributes=True)
    except msgspec.ValidationError:
        return _is_converted(value, annotation)
    return True


def _is_converted(value: Any, annotation: Any) -> bool:
    """Whether what a value looks like in JSON is of the type: enums, tuples and the like."""
    import msgspec

    try:
        msgspec.convert(msgspec.to_builtins(value), annotation)
    except (msgspec.ValidationError, TypeError):
        return False
    return True


def constrained(annotation: Any, constraints: dict[str, Any]) -> Any:
    """The type with constraints of a marker.

    Those of lengths hold for an array itself, others for its items; none holds for ``None``.
    """
    if not constraints:
        return annotation
    import msgspec

    metadata = metadata_of(annotation)
    if metadata:
        return Annotated[constrained(bare(annotation), constraints), *metadata]
    found = kind_of(annotation)
    if found.kind == "union":
        each = (one if one is NoneType else constrained(one, constraints) for one in found.parts)
        return Union[tuple(each)]  # noqa: UP007
    if found.kind in ("array", "tuple") and not is_named_tuple(found.cls):
        own = {name: value for name, value in constraints.items() if name in LENGTHS}
        of_items = {name: value for name, value in constraints.items() if name not in LENGTHS}
        items: list[Any] = [constrained(one, of_items) for one in found.parts]
        if found.kind == "array" and found.cls is tuple:
            items.append(...)
        container: Any = found.cls
        annotation = container[tuple(items)]
        return Annotated[annotation, msgspec.Meta(**own)] if own else annotation
    return Annotated[annotation, msgspec.Meta(**constraints)]


@record(frozen=True, slots=True)
class MadeDefault:
    """A default that is made anew for each request: that of a field with a factory."""

    make: Callable[[], Any]


def made_default(cls: Any, name: str, default: Any) -> MadeDefault:
    """What stands in the signature of a class for the factory of a field, as a default.

    Args:
        cls: The class.
        name: The parameter.
        default: Its default in the signature.

    Raises:
        ConfigError: The factory takes the values of other fields.
    """
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    model = next((one for key, one in models.items() if name in (key, one.alias)), None)
    if model is not None:
        if model.default_factory_takes_validated_data:
            raise ConfigError(
                f"the parameter {name} of {cls.__qualname__} has a default_factory that takes other fields, "
                "which are not known yet; give it a default, or make it in a validator"
            )
        return MadeDefault(model.default_factory)
    if hasattr(default, "factory"):  # msgspec's
        return MadeDefault(default.factory)
    return MadeDefault(lambda: default)  # dataclasses and attrs call the factory in its place


def is_factory(default: Any) -> bool:
    """Whether a default in the signature of a class with fields stands for a factory."""
    return type(default).__name__ in ("_HAS_DEFAULT_FACTORY_CLASS", "Factory", "_Nothing")


def copier_of(default: Any) -> Callable[[], Any] | None:
    """What copies a default that a handler could change for the next request; ``None`` for all others."""
    cls = cast("Any", type(default))
    if cls is MadeDefault:
        return cast("MadeDefault", default).make
    if cls in (list, dict, set, bytearray) and not default:
        return cast("Callable[[], Any]", cls)
    if not _is_changeable(default):
        return None
    from copy import deepcopy

    return partial(deepcopy, default)


def _is_changeable(value: Any) -> bool:
    """Whether a value, or one in it, can be changed in place."""
    if isinstance(value, tuple):  # a NamedTuple too
        return any(map(_is_changeable, cast("tuple[Any, ...]", value)))
    if isinstance(value, (MutableSequence, MutableMapping, MutableSet)):
        return True
    return any(hasattr(cast("Any", type(value)), name) for name in RECORDS)
