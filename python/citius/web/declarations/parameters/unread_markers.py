"""Markers where nothing reads them: attributes of classes, annotations of functions that are called later.

Signatures are read by marked.py. Tests: ``tests/gateway/test_unread_markers.py``.
"""

from __future__ import annotations

import functools
import inspect
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast, get_origin
from weakref import WeakKeyDictionary

from citius.errors import ConfigError
from citius.web.declarations.parameters.marked import (
    as_marker,
    factories_of,
    is_foreign_marker,
    made_marker,
    marker_within,
    markers_in,
    markers_written,
    named_in,
    refuse_markers,
)
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import python_function

if TYPE_CHECKING:
    from collections.abc import Iterator, Set


def refuse_unread_attributes(cls: Any, where: str) -> None:
    """Refuse a class that is a dependency and has a marker that is none of its parameters.

    Raises:
        ConfigError: An attribute is one, or its annotation has one, or the factory of a default makes one.
    """
    cls = get_origin(cls) or cls
    if not inspect.isclass(cls):
        return
    try:
        known = {*inspect.signature(cls).parameters}
    except (TypeError, ValueError):
        return
    known |= _fields_by_other_names(cls)
    found = [*_unread_attributes(cls, known), *map(made_marker, factories_of(cls))]
    # attrs keeps no attribute with the default of a field.
    found += [one.default for one in getattr(cls, "__attrs_attrs__", ()) if not one.init]
    for one in found:
        if as_marker(one) is not None or is_foreign_marker(one):
            raise ConfigError(
                f"{where} has {one!r} outside of its parameters, where nothing reads it; write it as the "
                "default or the annotation of a parameter of __init__, or of a field without a factory of a "
                "dataclass"
            )


def refuse_unread_attributes_of(function: Any, where: str) -> None:
    """Refuse a method, or an object that is called, whose class declares markers as attributes.

    An attribute without an annotation may be what a decorator or a parameter of the class is given.

    Raises:
        ConfigError: One is annotated, so that a value is expected in its place, and nothing puts one there.
    """
    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", None)
    if owner is None and not inspect.isroutine(function) and not inspect.isclass(function):
        owner = function
    if owner is None or inspect.ismodule(owner):
        return
    cls: Any = owner if inspect.isclass(owner) else cast("Any", type(owner))
    set_by_object = set(getattr(owner, "__dict__", ())) if owner is not cls else set[str]()
    for one in _annotated_attributes(cls, set_by_object):
        if as_marker(one) is not None:
            raise ConfigError(
                f"{where} is of {cls.__qualname__}, which has {one!r} as an attribute, where nothing reads "
                "it; write it as a parameter"
            )


def refuse_markers_of_hook(function: Any, what: str, where: str) -> None:
    """Refuse markers of what is called without reading them, and of the object whose method it is.

    Args:
        function: A hook, a middleware, an error handler.
        what: What it is, such as ``a middleware``.
        where: The function, with file and line.

    Raises:
        ConfigError: There is one.
    """
    refuse_markers(function, what, where)
    refuse_unread_attributes_of(function, where)


def _unread_attributes(cls: Any, known: Set[str]) -> Iterator[Any]:
    """The values of the attributes of a class that are not ``known``, and what their annotations say."""
    for base in cls.__mro__:
        attributes = _attributes_of(base)
        yield from (value for name, value in attributes.items() if name not in known)
        private: Any = attributes.get("__private_attributes__") or {}  # of pydantic
        for one in private.values():
            yield one.default
            yield made_marker(one.default_factory)
    yield from _annotated_attributes(cls, known)


def _annotated_attributes(cls: Any, known: Set[str]) -> Iterator[Any]:
    """The markers in the annotations of attributes that are not ``known``, and the values of these."""
    for base in cls.__mro__:
        attributes = _attributes_of(base)
        try:
            annotations = inspect.get_annotations(base)
        except Exception:
            continue  # evaluated when they are asked for, since Python 3.14
        names = vars(sys.modules.get(base.__module__, functools))
        for name, annotation in annotations.items():
            if name not in known:
                said = list(_markers_said(annotation, names))
                yield from said or [attributes.get(name)]


def _attributes_of(cls: type) -> dict[str, Any]:
    return dict(vars(cls))


def _fields_by_other_names(cls: Any) -> set[str]:
    """Fields whose parameters may be called otherwise: by their aliases, without an underscore."""
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    attributes: tuple[Any, ...] = getattr(cls, "__attrs_attrs__", ())
    return {*models, *(one.name for one in attributes if one.init)}


def _markers_said(annotation: Any, names: dict[str, Any]) -> Iterator[Any]:
    """The markers in the annotation of an attribute, which may be a text."""
    try:
        made = eval(annotation, names) if isinstance(annotation, str) else annotation
    except Exception:
        if "Annotated" in annotation:
            with suppress(Exception):
                yield from named_in(annotation, names)
        return
    with suppress(Exception):
        yield from markers_in(made, fields=False)


def refuse_unread_markers(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse a call that would take a marker for a value, as that of a function that is deferred.

    Raises:
        TypeError: The default of a parameter without an argument is a marker.
    """
    while isinstance(function, functools.partial):
        args, keywords = (*function.args, *args), {**function.keywords, **keywords}
        function = function.func
    target = python_function(function)
    target = getattr(target, "__func__", target)
    if getattr(target, "__defaults__", None) or getattr(target, "__kwdefaults__", None):
        found = _unread.get(target)
        if found is None:
            found = _unread[target] = _read_by_nothing(function, target)
        if not found:
            return
        given = inspect.signature(function).bind(*args, **keywords).arguments
        for name, value in found.items():
            if name not in given:
                raise TypeError(
                    f"the parameter {name} of {target.__qualname__} has {value!r}, which only handlers and "
                    "dependencies have read; pass its value"
                )


_unread: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()
"""By function the parameters of what nothing reads the markers of."""


def _read_by_nothing(function: Any, target: Any) -> dict[str, Any]:
    """The parameters that a call may leave out, and that have a marker as default or in the annotation."""
    found: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        if one.default is not MISSING:
            lost = as_marker(one.default) or marker_within(one.default)
            lost = lost or next(markers_written(one.annotation, target), None)
            if lost is not None:
                found[one.name] = lost
    return found
