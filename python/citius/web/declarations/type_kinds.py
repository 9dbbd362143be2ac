"""Kinds of types: an annotation in, what it is made of out. The only list of containers in this package.

Binding, response filters, the OpenAPI document and the checks ask here which types an annotation consists of,
so that a container is known to all of them or to none. Names are looked through: ``Annotated``, ``NewType``,
aliases of PEP 695 with and without arguments, ``Required`` and its kin, type variables, classes that extend a
container. msgspec and pydantic are not imported. Tests: ``tests/unit/test_type_kinds.py``.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import sys
import types
from collections import abc
from functools import partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from citius.errors import ConfigError
from citius.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ARRAYS: Final[dict[Any, type]] = {
    list: list, tuple: tuple, set: set, frozenset: frozenset, collections.deque: list,
    abc.Sequence: list, abc.MutableSequence: list, abc.Collection: list, abc.Iterable: list,
    abc.Container: list, abc.Reversible: list, abc.Set: set, abc.MutableSet: set, abc.ValuesView: list,
    abc.KeysView: set, abc.ItemsView: list, collections.UserList: list,
}  # fmt: skip
"""Containers that are arrays in JSON, with the one of the same values that msgspec and pydantic know."""

MAPPINGS: Final[dict[Any, type]] = {
    dict: dict, collections.OrderedDict: dict, collections.defaultdict: dict, collections.Counter: dict,
    collections.ChainMap: dict, collections.UserDict: dict, types.MappingProxyType: dict, abc.Mapping: dict,
    abc.MutableMapping: dict,
}  # fmt: skip
"""Containers that are objects in JSON, and the one that stands for each."""

STREAMS: Final = (
    abc.Iterator,
    abc.Generator,
    abc.AsyncIterator,
    abc.AsyncGenerator,
    abc.AsyncIterable,
)
"""Types whose values are sent piece by piece; the first argument is the type of a piece."""

Kind = Literal["record", "array", "tuple", "mapping", "union", "stream", "any", "plain", "unknown"]


@record(frozen=True, slots=True)
class TypeKind:
    """What an annotation is.

    ``record``: a class with fields, whose values are objects in JSON; `fields_of` has them. ``tuple``: an
    array with a type for each place, a ``NamedTuple`` too. ``plain``: a value without parts. ``unknown``: a
    class with arguments that is none of these, or a name that is not resolved.
    """

    kind: Kind
    cls: Any
    """The class, without arguments; of a container the one that msgspec and pydantic know."""
    parts: tuple[Any, ...] = ()
    """Types of items; of keys and values; of members; of pieces; of places; arguments of what is unknown."""


def kind_of(annotation: Any) -> TypeKind:
    """What an annotation is.

    Raises:
        NameError: An alias has a name that cannot be resolved.
    """
    annotation = bare(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object:
        return TypeKind("any", Any)
    if origin is Union or origin is types.UnionType:
        return TypeKind("union", Union, arguments)
    if isinstance(annotation, (str, ForwardRef)):
        return TypeKind("unknown", annotation)
    cls: Any = origin or annotation
    if not isinstance(cls, type):  # Literal and what is no type
        return TypeKind("plain", cls)
    if has_fields(cls):
        return TypeKind("record", cls, arguments)
    if is_named_tuple(cls):
        return TypeKind("tuple", cls, tuple(fields_of(annotation).values()))
    if origin is tuple and not arguments:  # tuple[()]
        return TypeKind("tuple", tuple)
    if cls in ARRAYS or cls in MAPPINGS:
        return _container(cls, arguments)
    if cls in STREAMS:
        return TypeKind("stream", cls, arguments[:1] or (Any,))
    base = _container_base(annotation)
    if base is not None:
        return kind_of(base)
    return TypeKind("unknown", cls, arguments) if arguments else TypeKind("plain", cls)


def _container(cls: Any, arguments: tuple[Any, ...]) -> TypeKind:
    if cls in MAPPINGS:
        value = int if cls is collections.Counter else Any
        return TypeKind(
            "mapping",
            dict,
            (*arguments, Any, value)[:2] if len(arguments) != 1 else (*arguments, value),
        )
    if cls is tuple and arguments and arguments[-1] is not ...:
        return TypeKind("tuple", tuple, arguments)
    if cls is abc.ItemsView and arguments:
        return TypeKind("array", list, (tuple[arguments],))
    return TypeKind("array", ARRAYS[cls], arguments[:1] or (Any,))


def _container_base(annotation: Any) -> Any:
    """The container that a class extends, such as ``list[User]``; ``None`` if there is none."""
    cls: Any = get_origin(annotation) or annotation
    if issubclass(cls, (str, bytes, bytearray, memoryview, range)) or cls.__module__ == "enum":
        return None
    for base in _bases(annotation):
        plain = get_origin(base) or base
        if plain in ARRAYS or plain in MAPPINGS or plain in STREAMS:
            return base
        if isinstance(plain, type) and plain not in (Generic, Protocol, object):
            found = _container_base(base)
            if found is not None:
                return found
    return None


def _bases(annotation: Any) -> list[Any]:
    """The bases of a class with its arguments put in the places of type variables."""
    cls: Any = get_origin(annotation) or annotation
    bases: tuple[Any, ...] = cls.__dict__.get("__orig_bases__", cls.__bases__)
    given = arguments_of(annotation)
    return [substituted(one, given) for one in bases if get_origin(one) not in (Generic, Protocol)]


def arguments_of(annotation: Any) -> dict[Any, Any]:
    """What stands for each type variable of a generic class, or of an alias."""
    origin = get_origin(annotation)
    if origin is None:
        return {}
    names = getattr(origin, "__type_params__", ()) or getattr(origin, "__parameters__", ())
    if not names:  # a class that extends `UserList[T]`, which is not of `Generic`
        bases = getattr(origin, "__orig_bases__", ())
        names = list(
            dict.fromkeys(name for base in bases for name in getattr(base, "__parameters__", ()))
        )
    return dict(zip(names, get_args(annotation), strict=False))


def substituted(annotation: Any, given: dict[Any, Any]) -> Any:
    """A type with types in the places of type variables."""
    if not given:
        return annotation
    try:
        if annotation in given:
            return given[annotation]
    except TypeError:  # metadata that cannot be hashed
        pass
    names = getattr(annotation, "__parameters__", ())
    if not names or isinstance(annotation, type):
        return annotation
    return annotation[tuple(given.get(one, one) for one in names)]


def bare(annotation: Any) -> Any:
    """A type without its names: what an alias, a ``NewType`` or a type variable stands for.

    Metadata is dropped. An alias that stands for itself only is ``Any``.

    Raises:
        NameError: An alias has a name that cannot be resolved.
    """
    seen: list[Any] = []
    while True:
        inner = _named(annotation)
        if inner is annotation:
            return annotation
        if any(inner is one for one in seen):
            return Any
        seen.append(annotation)
        annotation = inner


def _named(annotation: Any) -> Any:
    """What a name stands for; the annotation itself if it is none."""
    if hasattr(annotation, "__metadata__"):  # Annotated
        return annotation.__origin__
    if is_alias(annotation):
        return _in_module(annotation.__value__, annotation)
    if hasattr(annotation, "__supertype__"):  # NewType
        return annotation.__supertype__
    if isinstance(annotation, TypeVar):
        return _of_variable(annotation)
    origin = get_origin(annotation)
    if is_alias(origin):
        return substituted(_in_module(origin.__value__, origin), arguments_of(annotation))
    if not isinstance(origin, type) and getattr(origin, "_name", None) in _QUALIFIERS:
        return get_args(annotation)[0]
    return annotation


def _of_variable(variable: Any) -> Any:
    if getattr(variable, "has_default", bool)():  # since Python 3.13
        return variable.__default__
    bound = _in_module(variable.__bound__, variable)
    return bound or Union[variable.__constraints__ or (Any,)]  # noqa: UP007


def _in_module(annotation: Any, owner: Any) -> Any:
    """A type that may be a text, with the names of the module where its owner is defined."""
    if not isinstance(annotation, (str, ForwardRef)):
        return annotation
    names = dict(vars(sys.modules.get(owner.__module__, types)))
    return _evaluated({"of": annotation}, names, None)["of"]


_QUALIFIERS: Final = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")


def is_alias(annotation: Any) -> bool:
    """Whether this is an alias of PEP 695 (``type X = …``), of ``typing`` or of ``typing_extensions``."""
    return type(annotation).__name__ == "TypeAliasType"


def metadata_of(annotation: Any) -> tuple[Any, ...]:
    """The metadata of ``Annotated``, behind names too; not those of parts."""
    found: list[Any] = []
    seen: list[Any] = []
    while not any(annotation is one for one in seen):
        seen.append(annotation)
        found += getattr(annotation, "__metadata__", ())
        annotation = _named(annotation)
    return tuple(found)


def parts_of(annotation: Any) -> tuple[Any, ...]:
    """The types in a type, those of the fields of a class included; ``Literal`` has none.

    Raises:
        NameError: An annotation of a field cannot be resolved.
    """
    found = kind_of(annotation)
    if found.kind == "record":
        return (*found.parts, *fields_of(annotation).values())
    return found.parts


def walk(annotation: Any, into: Callable[[TypeKind], bool] = lambda record: True) -> Iterator[Any]:
    """A type and all types in it, each once; the fields of those classes ``into`` which it says.

    Raises:
        NameError: A name in it cannot be resolved.
        EndlessType: A generic class contains itself with other arguments each time.
    """
    seen: list[Any] = []
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(annotation, ())]
    while waiting:
        one, around = waiting.pop()
        if any(one is other for other in seen):
            continue
        seen.append(one)
        yield one
        found = kind_of(one)
        is_entered = found.kind == "record" and into(found)
        if is_entered:
            if around.count(found.cls) == _NESTED_MAX:
                raise EndlessType(
                    f"the class {found.cls.__qualname__} contains itself with other arguments each time, so "
                    f"that there is no end of its types: {annotation!r}"
                )
            around = (*around, found.cls)
        parts = parts_of(one) if is_entered else found.parts
        waiting += [(part, around) for part in reversed(parts)]


_NESTED_MAX = 12
"""How often a generic class may be in itself with other arguments; one with the same is met once."""


class EndlessType(ConfigError):
    """A type without an end, such as ``class Tree(Generic[T])`` with a field of ``Tree[list[T]]``."""


def has_record(annotation: Any) -> bool:
    """Whether values of this type hold objects with fields."""
    kinds = map(kind_of, walk(annotation, into=lambda record: False))
    return any(one.kind == "record" or is_named_tuple(one.cls) for one in kinds)


def has_fields(annotation: Any) -> bool:
    """Whether this is a class of records: a Struct, a dataclass, a TypedDict, one of attrs or pydantic."""
    cls: Any = get_origin(annotation) or annotation
    return isinstance(cls, type) and (
        any(hasattr(cls, name) for name in RECORDS) or is_typed_dict(cls)
    )


def is_typed_dict(cls: object) -> bool:
    """Whether this is a TypedDict, of ``typing`` or of ``typing_extensions``."""
    plain: Any = cls
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(plain, "__required_keys__")


def is_pydantic_dataclass(cls: Any) -> bool:
    """Whether this is a class of ``pydantic.dataclasses.dataclass``, which msgspec takes for a plain one."""
    return hasattr(cls, "__is_pydantic_dataclass__")


def is_named_tuple(cls: Any) -> bool:
    """Whether this is a class of ``typing.NamedTuple`` or ``collections.namedtuple``."""
    return hasattr(cls, "_fields") and isinstance(cls, type) and issubclass(cls, tuple)


RECORDS: Final = (
    "__struct_fields__",
    "__dataclass_fields__",
    "__attrs_attrs__",
    "__pydantic_core_schema__",
)
"""Of a msgspec.Struct, a dataclass, a class of attrs and a model of pydantic, which need not be imported."""


def fields_of(annotation: Any) -> dict[str, Any]:
    """The types of the fields of a class by their names, with its arguments in the places of type variables.

    Raises:
        NameError: An annotation cannot be resolved.
    """
    annotation = bare(annotation)
    cls: Any = get_origin(annotation) or annotation
    model: Any = getattr(cls, "__pydantic_fields__", None)
    # A plain dataclass that extends one of pydantic's has the list of its base only.
    is_own = "__pydantic_fields__" in vars(cls) or "__dataclass_fields__" not in vars(cls)
    if model is not None and is_own:
        return {name: field.annotation for name, field in model.items()}
    hints = _hints_of(annotation)
    if is_named_tuple(cls):
        return {name: hints.get(name, Any) for name in cls._fields}
    names = getattr(cls, "__struct_fields__", None)
    if names is None:
        attributes: Any = getattr(cls, "__attrs_attrs__", None)
        if attributes is not None:
            names = [one.name for one in attributes]
        elif hasattr(cls, "__dataclass_fields__"):
            names = [one.name for one in dataclasses.fields(cls)]
        else:
            names = list(hints)
    return {name: hints.get(name, Any) for name in names}


def _hints_of(annotation: Any) -> dict[str, Any]:
    """The annotations of a class and its bases, resolved."""
    cls: Any = get_origin(annotation) or annotation
    found: dict[str, Any] = {}
    if is_typed_dict(cls):
        # Its bases are gone but for their annotations, which are those of the class too.
        own = _resolved_all(cls, get_type_hints(cls, include_extras=True))
        given = arguments_of(annotation)
        return {name: substituted(one, given) for name, one in own.items()}
    for base in reversed(_bases(annotation)):
        plain = get_origin(base) or base
        if isinstance(plain, type) and plain not in (object, Generic, Protocol, tuple, dict):
            found |= _hints_of(base)
    given = arguments_of(annotation)
    own = _resolved_all(cls, inspect.get_annotations(cls))
    return found | {name: substituted(one, given) for name, one in own.items()}


def _resolved_all(cls: type, annotations: dict[str, Any]) -> dict[str, Any]:
    module = sys.modules.get(cls.__module__)
    names: dict[str, Any] = dict(vars(module)) if module is not None else {}
    names.setdefault(cls.__name__, cls)
    local = {one.__name__: one for one in getattr(cls, "__type_params__", ())}
    return _evaluated(annotations, names, {**vars(cls), **local})


def resolved_in(cls: type, annotation: Any) -> Any:
    """A type with the names in it looked up where a class was written.

    Raises:
        NameError: A name cannot be resolved.
    """
    return _resolved_all(cls, {"of": annotation})["of"]


def called(function: Any, stop: Callable[[Any], bool] | None = None) -> Any:
    """What runs in the end when a function or an object is called.

    It is behind decorators that keep ``__wrapped__``, ``functools.partial``, and ``__call__`` of an object.
    """
    return list(behind(function))[-1]


def deciding(function: Any) -> Any:
    """The function that decides whether a call has to be awaited, or is a generator.

    It is the first that does of a decorator's function and what that wraps, otherwise what runs in the end.
    """
    if type(function) is types.FunctionType and not function.__dict__:
        return function  # nothing is wrapped, as in most functions
    for one in behind(function):
        if (
            inspect.iscoroutinefunction(one)
            or inspect.isgeneratorfunction(one)
            or inspect.isasyncgenfunction(one)
        ):
            return one
    return called(function)


def behind(function: Any) -> Iterator[Any]:
    """What is called one after the other when a function or an object is called."""
    seen: list[Any] = []
    while not any(function is one for one in seen):
        yield function
        seen.append(function)
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function) or inspect.isclass(function) or not callable(function):
            return
        else:
            function = type(function).__call__


def python_function(function: Any) -> Any:
    """The function whose code and annotations those of a call are: of a class that of its objects' making."""
    target = called(function)
    return target.__init__ if inspect.isclass(target) else target


def is_async(function: Any) -> bool:
    """Whether what a function or an object returns when it is called has to be awaited."""
    if type(function) is types.FunctionType and not function.__dict__:
        return bool(
            function.__code__.co_flags & inspect.CO_COROUTINE
        )  # some calls ask for each request
    return inspect.iscoroutinefunction(deciding(function))


def makes_generator(function: Any) -> bool:
    """Whether a call gives a generator, or an asynchronous one."""
    target = deciding(function)
    return inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)


def resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """A type with the names in it looked up where a function was written: ``list["User"]``.

    Raises:
        NameError: A name cannot be resolved.
    """
    names: dict[str, Any] = getattr(python_function(function), "__globals__", {})
    return _evaluated({"of": annotation}, names, None)["of"]


def _evaluated(
    annotations: dict[str, Any], names: dict[str, Any], local: dict[str, Any] | None
) -> dict[str, Any]:
    holder = type("holder", (), {"__annotations__": annotations})  # a class may have ClassVar
    return get_type_hints(holder, names, local, include_extras=True)


def normal(annotation: Any) -> Any:
    """``annotation`` in types that msgspec and pydantic know: lists, sets and dicts for other containers.

    Names are replaced by what they stand for, metadata is kept. The annotation itself if there is nothing to
    replace.

    Raises:
        NameError: A name cannot be resolved.
        RecursionError: An alias contains itself.
    """
    metadata = metadata_of(annotation)
    plain = bare(annotation)
    made = _normal_parts(plain)
    if made is plain and plain is not annotation and hasattr(annotation, "__metadata__"):
        return annotation if annotation.__origin__ is plain else Annotated[plain, *metadata]
    return Annotated[made, *metadata] if metadata else made


def _normal_parts(annotation: Any) -> Any:
    found = kind_of(annotation)
    origin: Any = get_origin(annotation)
    if found.kind == "record":
        arguments = get_args(annotation)
        made = tuple(map(normal, arguments))
        return annotation if _same(made, arguments) else origin[made]
    if found.kind not in ("array", "tuple", "mapping", "union") or is_named_tuple(found.cls):
        return annotation
    parts = tuple(map(normal, found.parts))
    if found.kind == "union":
        return annotation if _same(parts, found.parts) else Union[parts]  # noqa: UP007
    if (origin or annotation) is found.cls and (_same(parts, found.parts) or not origin):
        return annotation
    if found.kind == "tuple":
        return found.cls[parts]
    if found.cls is tuple:
        return tuple[parts[0], ...]
    return found.cls[*parts]


def _same(made: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    return all(one is other for one, other in zip(made, given, strict=True))


def name_of(annotation: Any) -> str:
    """A type as its parameter's annotation says it."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
