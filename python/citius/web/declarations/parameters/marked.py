"""Marked parameters: an annotation and a default in, what they say of the source of a value out.

A marker (``Query()``, ``Depends(f)``; sources.py) stands at the top of an annotation, ``Annotated[T, …]`` or
``Annotated[T, …] | None``, or in the place of the default, ``q: int = Query(1)``. Aliases of types
(``type X = …``) are what they stand for. A marker in any other place is a ``ConfigError``: nothing would read
it. Tests: ``tests/gateway/test_markers.py``.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Union,
    cast,
    get_args,
    get_origin,
)

from citius.errors import ConfigError
from citius.records import record
from citius.web.declarations.parameters.sources import (
    MISSING,
    Depends,
    Marker,
    depends_in,
    marker_in,
)
from citius.web.declarations.type_kinds import (
    EndlessType,
    bare,
    has_fields,
    is_named_tuple,
    kind_of,
    metadata_of,
    normal,
    python_function,
    resolved,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_OTHER_FRAMEWORKS: Final = frozenset(
    (
        "fastapi",
        "litestar",
        "ninja",
        "fast_depends",
        "blacksheep",
        "esmerald",
        "robyn",
        "quart_schema",
    )
)
"""Packages whose markers say nothing here."""


@record(frozen=True, slots=True)
class Marked:
    """What an annotation and a default say."""

    annotation: Any
    """Without the marker; ``MISSING`` without an annotation."""
    default: Any
    """That of the parameter or of the marker."""
    marker: Marker | None = None
    depends: Depends | None = None


def marked(annotation: Any, default: Any, where: str) -> Marked:
    """Take the marker of a parameter out of its annotation or its default.

    Args:
        annotation: Of the parameter.
        default: Of the parameter.
        where: What messages call the parameter.

    Raises:
        ConfigError: There are several markers, or one where nothing reads it.
    """
    given = annotation
    annotation = _hoisted(_normal(annotation, where))
    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    found: list[Marker | Depends] = [*marker_in(metadata), *depends_in(metadata)]
    plain = annotation
    if found:
        plain = annotation.__origin__
        others = [one for one in metadata if as_marker(one) is None]
        plain = Annotated[plain, *others] if others else plain
    in_default = as_marker(default)
    depends = [one for one in (*found, in_default) if isinstance(one, Depends)]
    is_called = any(one.call is None for one in depends)  # the class has its own parameters
    _refuse_lost(plain, where, fields=not depends, inside=not is_called)
    if in_default is not None:
        found.append(in_default)
        default = MISSING
    else:
        _refuse_default(default, where)
    if len(found) > 1:
        both = " and ".join(map(repr, found))
        raise ConfigError(f"{where} has {both}; it takes one of them")
    if not any(isinstance(one, Depends) for one in found):
        _refuse_part_of_request(given, where)
    if not found:
        return Marked(plain, default)
    one = found[0]
    if isinstance(one, Depends):
        if one.call is None:  # the class is what is called
            plain = _without_none(plain)
        return Marked(plain, default, depends=one)
    if default is not MISSING and one.default is not MISSING:
        raise ConfigError(f"{where} has two defaults, {default!r} and that of {one!r}")
    if one.default is not MISSING:
        default = one.default
    if in_default is not None and default is None and plain not in (MISSING, Any):
        plain = Union[plain, None]  # noqa: UP007 - `q: str = Query(None)` means it
    return Marked(plain, default, marker=one)


def _refuse_part_of_request(annotation: Any, where: str) -> None:
    """Refuse what the request has, such as a ``FormData``, which would be read as a JSON object.

    Raises:
        ConfigError: It is one.
    """
    for one in (annotation, *kind_of(annotation).parts):
        cls = bare(one)
        is_ours = isinstance(cls, type) and cls.__module__.startswith("citius.")
        if is_ours and issubclass(cls, Mapping) and not has_fields(cls):
            raise ConfigError(
                f"{where} has the type citius.{cls.__name__}, which no request brings; take the "
                "citius.Request, which has it"
            )


def _refuse_default(default: Any, where: str) -> None:
    """Refuse a default that is meant as a marker and is none.

    Raises:
        ConfigError: It is.
    """
    if is_foreign_marker(default):
        raise ConfigError(f"{where} has the default {default!r}, {_of_other(default)}")
    if type(default).__name__ in ("FieldInfo", "Field", "_CountingAttr") and is_of_model(default):
        raise ConfigError(
            f"{where} has the default {default!r}, which is for fields of models; write "
            "Query(1, ge=1) of citius"
        )
    if (lost := marker_within(default)) is not None:
        raise ConfigError(
            f"{where} has {lost!r} within its default, where nothing reads it; write `= {lost!r}` alone"
        )
    if default is ...:
        raise ConfigError(f"{where} has the default ..., which is no value; leave `= ...` out")
    if _would_be_called(default):
        raise ConfigError(
            f"{where} has the default {default!r}, which would not be called; write Depends("
            f"{_written(default)})"
        )
    if isinstance(default, Iterator):
        raise ConfigError(
            f"{where} has the default {default!r}, which gives its values to the first request alone"
        )


def _said_by_field(value: Any) -> str:
    """What a description of a model's field says that holds for no parameter; empty for constraints."""
    if type(value).__name__ == "Meta":
        return ""  # msgspec's constraints hold wherever their type stands
    if not hasattr(value, "is_required"):
        return "default"  # msgspec's and those of dataclasses have nothing else
    if not value.is_required():
        return "default"
    return "alias" if value.alias or value.validation_alias else ""


def _would_be_called(value: object) -> bool:
    """Whether a default, or what stands in an ``Annotated``, is meant to be called: a scheme, a function."""
    if value is MISSING:
        return False
    if isinstance(getattr(value, "openapi", None), dict):
        return True
    return callable(value) and not isinstance(value, enum.Enum) and not has_fields(type(value))


def _written(value: Any) -> str:
    return getattr(value, "__name__", None) or getattr(value, "name", type(value).__name__)


def marker_within(default: object) -> object:
    """A marker in a container, such as by a comma behind it; ``None`` if there is none."""
    if isinstance(default, Mapping):
        default = list(cast("Mapping[object, object]", default).values())
    if not isinstance(default, (Sequence, Set)) or isinstance(default, (str, bytes, bytearray)):
        return None
    for one in cast("Iterable[object]", default):
        if as_marker(one) is not None or is_foreign_marker(one):
            return one
        if (inner := marker_within(one)) is not None:
            return inner
    return None


def as_marker(value: object) -> Marker | Depends | None:
    """``value`` as a marker, if it is one, or the class of one."""
    if isinstance(value, (Marker, Depends)):
        return value
    if isinstance(value, type) and issubclass(value, (Marker, Depends)) and value is not Marker:
        return cast("Marker | Depends", cast("Any", value)())
    return None


def is_foreign_marker(value: object) -> bool:
    """Whether a value is a marker of another framework."""
    cls: type[Any] = value if isinstance(value, type) else type(value)
    return cls.__module__.partition(".")[0] in _OTHER_FRAMEWORKS


def is_of_model(value: object) -> bool:
    """Whether a default describes a field of a model of pydantic or msgspec."""
    return type(value).__module__ in (
        "pydantic.fields",
        "msgspec._core",
        "msgspec",
        "dataclasses",
        "attr._make",
    )


def refuse_markers(function: Any, what: str, where: str, *, follow_wrapped: bool = True) -> None:
    """Refuse a function with markers that is called without reading them.

    Args:
        function: A hook, a middleware, an error handler.
        what: What it is, such as ``a middleware``.
        where: The function, with file and line.
        follow_wrapped: Look at the signature of what it wraps, as callers do.

    Raises:
        ConfigError: It has one.
    """
    try:
        signature = inspect.signature(function, follow_wrapped=follow_wrapped)
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    for one in signature.parameters.values():
        found = as_marker(one.default)
        if found is None and is_foreign_marker(one.default):
            found = one.default
        if found is None:
            found = marker_within(one.default)
        if found is None:
            found = next(markers_written(one.annotation, function), None)
        if found is not None:
            raise ConfigError(
                f"the parameter {one.name} of {where} has {found!r}, which only handlers and dependencies "
                f"have read; {what} calls what it needs itself"
            )


def markers_written(annotation: Any, function: Any) -> Iterator[Any]:
    """The markers in an annotation, also in a text whose other names are not known at run time."""
    try:
        annotation = resolved(annotation, function)
    except Exception:
        names: dict[str, Any] = getattr(python_function(function), "__globals__", {})
        with suppress(Exception):
            for one in walk(annotation, into=lambda record: False):
                if isinstance(one, (str, ForwardRef)):
                    yield from named_in(one if isinstance(one, str) else one.__forward_arg__, names)
    else:
        yield from markers_in(annotation, fields=False)


def named_in(text: str, names: dict[str, Any]) -> Iterator[Any]:
    """The markers that the text of an annotation names."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute)):
            written = ast.unparse(node.func if isinstance(node, ast.Call) else node)
            with suppress(Exception):
                found = eval(written, names)
                if as_marker(found) is not None or is_foreign_marker(found):
                    yield found


def refuse_result_marker(annotation: Any, where: str) -> None:
    """Refuse a marker in the type of a result.

    Raises:
        ConfigError: There is one.
    """
    found = next(markers_in(annotation, fields=False), None)
    if found is not None:
        raise ConfigError(
            f"the result of {where} has {found!r}, where nothing reads it; a marker stands at a parameter"
        )


def _normal(annotation: Any, where: str) -> Any:
    """The type with what its aliases stand for.

    Raises:
        ConfigError: The value of an alias has a name that cannot be resolved.
    """
    try:
        return normal(annotation)
    except NameError as error:
        raise ConfigError(
            f"{where} has the type {annotation}, in which {error}; import the name at run time, not under "
            "TYPE_CHECKING"
        ) from None
    except RecursionError:
        return annotation  # an alias that contains itself


def _hoisted(annotation: Any) -> Any:
    """``Annotated[T | None, …]`` for ``Annotated[T, …] | None``, if that has a marker."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    others = [one for one in get_args(annotation) if one is not NoneType]
    if len(others) != 1 or len(get_args(annotation)) != 2:
        return annotation
    metadata: tuple[Any, ...] = getattr(others[0], "__metadata__", ())
    markers = [one for one in metadata if as_marker(one) is not None]
    if not markers:
        return annotation
    rest = [one for one in metadata if as_marker(one) is None]
    inner: Any = others[0].__origin__
    inner = Annotated[inner, *rest] if rest else inner
    return Annotated[inner | None if isinstance(inner, type) else Union[inner, None], *markers]  # noqa: UP007


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        others = [one for one in get_args(annotation) if one is not NoneType]
        return others[0] if len(others) == 1 else annotation
    return annotation


def _refuse_lost(annotation: Any, where: str, *, fields: bool, inside: bool = True) -> None:
    """Refuse a marker that is left in a type.

    Args:
        annotation: The type.
        where: What messages call the parameter.
        fields: Look into fields of classes.
        inside: Look into the type at all, and not only at what stands around it.

    Raises:
        ConfigError: There is one, or the type has no end.
    """
    for one in getattr(annotation, "__metadata__", ()):
        if (lost := marker_within(one)) is not None:
            raise ConfigError(
                f"{where} has {lost!r} within {one!r}, where nothing reads it; write Annotated[…, {lost!r}]"
            )
        lost = as_marker(getattr(one, "default", None)) or made_marker(
            getattr(one, "default_factory", None)
        )
        if lost is not None:
            raise ConfigError(
                f"{where} has {lost!r} as the default of {type(one).__name__}, where nothing reads it; write "
                f"Annotated[…, {lost!r}]"
            )
        if is_of_model(one) and (what := _said_by_field(one)):
            raise ConfigError(
                f"{where} is annotated with {one!r}, whose {what} is read for fields of models alone; write "
                "a default behind the parameter, and Query(alias=…)"
            )
        if not isinstance(one, type) and _would_be_called(one):
            raise ConfigError(
                f"{where} is annotated with {_written(one)}, which is not called for that; write "
                f"Annotated[…, Depends({_written(one)})]"
            )
    if not inside:
        return
    try:
        found = next(markers_in(annotation, fields=fields), None)
    except EndlessType as error:
        raise ConfigError(f"{where}: {error}") from None
    if found is None:
        return
    if is_foreign_marker(found):
        raise ConfigError(f"{where} has {found!r}, {_of_other(found)}")
    if isinstance(found, Depends):
        raise ConfigError(
            f"{where} has {found!r} inside of its type, where nothing calls it; a marker stands around the "
            "whole type: Annotated[T, Depends(f)]"
        )
    name = type(found).__name__
    raise ConfigError(
        f"{where} has {found!r} inside of its type, where nothing reads it; a marker stands around the whole "
        f"type, Annotated[T, {name}(…)], and items and fields have Annotated[int, msgspec.Meta(ge=1)] or "
        "pydantic.Field"
    )


def _of_other(value: object) -> str:
    cls: type[Any] = value if isinstance(value, type) else type(value)
    name = cls.__name__
    return (
        f"which is {cls.__module__}'s and says nothing here; import {name} from citius and write "
        f"Annotated[T, {name}(…)]"
    )


def markers_in(annotation: Any, *, fields: bool = True) -> Iterator[Any]:
    """The markers anywhere in a type, its items and its ``fields``."""
    if annotation is MISSING:
        return
    try:
        for one in walk(annotation, into=lambda record: fields):
            said = list(metadata_of(one))
            found = kind_of(one)
            if fields and (found.kind == "record" or is_named_tuple(found.cls)):
                said += _said_of_fields(found.cls)
                said += map(made_marker, factories_of(found.cls))
            yield from (it for it in said if as_marker(it) is not None or is_foreign_marker(it))
    except NameError:
        return  # the reader of the type raises the error


def _said_of_fields(cls: Any) -> list[Any]:
    """Defaults of fields, and the metadata that a model of pydantic keeps from its types."""
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    attributes: tuple[Any, ...] = getattr(cls, "__attrs_attrs__", ())
    found = [one.default for one in (*models.values(), *fields.values(), *attributes)]
    found += getattr(cls, "_field_defaults", {}).values()
    found += getattr(cls, "__struct_defaults__", ())
    return [*found, *(meta for one in models.values() for meta in one.metadata)]


def factories_of(cls: Any) -> Iterator[Any]:
    """What makes the defaults of fields."""
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    attributes: tuple[Any, ...] = getattr(cls, "__attrs_attrs__", ())
    for one in (*models.values(), *fields.values()):
        yield getattr(one, "default_factory", None)
    for default in (
        *(one.default for one in attributes),
        *getattr(cls, "__struct_defaults__", ()),
    ):
        yield getattr(default, "factory", None)


def made_marker(factory: Any) -> Marker | Depends | None:
    """The marker that the factory of a default makes; it is called only if its code names one."""
    if (found := as_marker(factory)) is not None:
        return found
    if not _names_marker(factory, set()):
        return None
    try:
        return as_marker(factory())
    except Exception:
        pass
    try:
        return as_marker(factory({}))  # pydantic's may take what was read before
    except Exception:
        return None  # it says so itself when it is called for a value


def _names_marker(function: Any, seen: set[int]) -> bool:
    """Whether the code of a function, or of one that it calls, names a marker."""
    if as_marker(function) is not None:
        return True
    if isinstance(function, functools.partial):
        within: list[Any] = [function.func, *function.args, *function.keywords.values()]
        return any(_names_marker(one, seen) for one in within)
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if code is None or id(function) in seen:
        return False
    seen.add(id(function))
    names: dict[str, Any] = function.__globals__
    found = [names[name] for name in code.co_names if name in names]
    found += [
        getattr(one, name, None) for one in found if inspect.ismodule(one) for name in code.co_names
    ]
    found += function.__defaults__ or ()
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty yet
            found.append(cell.cell_contents)
    return any(_names_marker(one, seen) for one in found)
