"""Reads definitions: a TOML file becomes a dataclass, and everything that does not fit is an error.

The keys of a file are the fields of the dataclass, with the fields' types; nested dataclasses are
tables. A key that no field has, a value of another type and a missing key each raise an error that
names the file, the key and what was expected. Whether a name exists elsewhere (a case, a
contestant) is checked by the module that owns the dataclass.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
import types
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from citius_lab.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

T = TypeVar("T")

# Metadata of a field that is no key of the file: the code that reads the file gives its value.
NOT_A_KEY = {"is_key": False}


def read(path: Path) -> dict[str, Any]:
    """Return the table of a file.

    Raises:
        DefinitionError: It cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path}: {error}") from error


def convert(kind: type[T], table: Mapping[str, Any], path: Path, **given: Any) -> T:
    """Return a table as an instance of the dataclass ``kind``.

    Args:
        kind: The dataclass.
        table: What the file holds.
        path: The file, for errors.
        given: Fields whose values do not come from the file.

    Raises:
        DefinitionError: A key is unknown or missing, or a value has another type.
    """
    return _dataclass(kind, table, path, "", given)


def expect_known(path: Path, key: str, name: str, known: Iterable[str]) -> None:
    """Check a name that refers to something else.

    Raises:
        DefinitionError: It is not among ``known``.
    """
    names = list(known)
    if name not in names:
        raise DefinitionError(f"{path}: {key}: unknown {name!r}; known: {', '.join(names)}")


def _dataclass(
    kind: type[T], table: Mapping[str, Any], path: Path, place: str, given: Mapping[str, Any]
) -> T:
    hints = _types_of(kind)
    fields = {
        field.name: field
        for field in dataclasses.fields(cast("Any", kind))
        if field.metadata.get("is_key", True) and field.name not in given
    }
    values: dict[str, Any] = dict(given)
    for key, value in table.items():
        if key not in fields:
            where = f"{place}: " if place else ""
            raise DefinitionError(
                f"{path}: {where}unknown key {key!r}; expected one of {', '.join(fields)}"
            )
        values[key] = _value(hints[key], value, path, f"{place}.{key}" if place else key)
    for name, field in fields.items():
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        if name not in values and not has_default:
            where = f"{place}: " if place else ""
            raise DefinitionError(
                f"{path}: {where}the key {name!r} is missing; expected {_words(hints[name])}"
            )
    return kind(**values)


@functools.cache
def _types_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields; there are a few classes, and hundreds of files of each."""
    return get_type_hints(kind)


def _value(hint: Any, given: object, path: Path, place: str) -> Any:
    """Return ``given`` as what ``hint`` says.

    Raises:
        DefinitionError: It is something else.
    """
    value: Any = given
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        # TOML has no null: an optional key is left out.
        (hint,) = (one for one in arguments if one is not type(None))
        return _value(hint, given, path, place)
    if origin is Literal and value in arguments:
        return value
    if origin is tuple and isinstance(given, list):
        items = cast("list[Any]", value)
        if arguments[-1] is Ellipsis or len(arguments) == len(items):
            kinds = [arguments[0]] * len(items)
            return tuple(
                _value(one, item, path, f"{place}[{number}]")
                for number, (one, item) in enumerate(zip(kinds, items, strict=True))
            )
    if origin is dict and isinstance(given, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _value(arguments[1], item, path, f"{place}.{key}") for key, item in pairs}
    if dataclasses.is_dataclass(hint) and isinstance(given, dict):
        return _dataclass(cast("type[Any]", hint), cast("dict[str, Any]", value), path, place, {})
    if hint is float and type(value) is int:
        return float(value)
    if hint is bytes and isinstance(given, str):
        return given.encode()
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise DefinitionError(f"{path}: {place}: expected {_words(hint)}, got {value!r}")


def _words(hint: Any) -> str:
    """Return what a value has to be, in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return " or ".join(_words(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin is tuple:
        length = "" if arguments[-1] is Ellipsis else f" of {len(arguments)}"
        return f"a list{length}, each item {_words(arguments[0])}"
    if origin is dict:
        return f"a table, each value {_words(arguments[1])}"
    if dataclasses.is_dataclass(hint):
        return "a table"
    return WORDS[hint]


WORDS = {
    str: "a string",
    bytes: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}
