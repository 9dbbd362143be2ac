"""Signatures: a function in, its parameters and result with the types that its class gives them out.

``class Users(Crud[User])`` says what the ``T`` of ``Crud`` is, and so do ``Crud[User]`` and an object of it:
a method that is inherited takes and returns a ``User``, with the markers that the argument has. Which class
has defined the function counts, as each class has variables of its own. Tests:
``tests/gateway/test_generic_classes.py``.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import InitVar
from functools import partial
from typing import Any, ForwardRef, cast, get_origin

from citius.errors import ConfigError
from citius.web.declarations.type_kinds import (
    RECORDS,
    arguments_of,
    bare,
    behind,
    has_fields,
    is_named_tuple,
    resolved,
    resolved_in,
    substituted,
)


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function, with annotations that were texts evaluated.

    Raises:
        NameError: A name in an annotation cannot be resolved.
        TypeError: What is given cannot be called.
        ValueError: There is no signature.
    """
    cls = get_origin(function) or function
    maker = cls.__new__ if is_named_tuple(cls) else cls.__init__ if has_fields(cls) else None
    if maker is not None and _is_generated(maker):
        return _of_fields(function, inspect.signature(cls))
    signature = inspect.signature(cls, eval_str=True)
    annotation, definer = _owner_of(function)
    if annotation is None or not getattr(definer, "__parameters__", ()):
        return signature
    given = _given_in(annotation, definer)

    def known(annotation: Any) -> Any:
        with suppress(Exception):  # what reads the annotation says which name is not known
            annotation = resolved(annotation, function)
        if not _is_open(annotation):
            return annotation
        _refuse_open(substituted(annotation, given), definer)
        return substituted(annotation, given)

    parameters = signature.parameters.values()
    return signature.replace(
        parameters=[one.replace(annotation=known(one.annotation)) for one in parameters],
        return_annotation=known(signature.return_annotation),
    )


def _refuse_open(annotation: Any, definer: type) -> None:
    """Refuse a variable of a class that nothing gives a type: its argument may have a marker, or fields.

    Raises:
        ConfigError: There is one. An object of a class with ``__slots__`` does not know its arguments.
    """
    variables = getattr(annotation, "__parameters__", ()) or (annotation,)
    for one in variables:
        is_given = not hasattr(one, "__bound__") or bare(one) is not Any
        if not is_given and one in getattr(definer, "__parameters__", ()):
            name = definer.__qualname__
            raise ConfigError(
                f"nothing says what {one} of {name} is; register what belongs to an object of a class that "
                f"extends {name}[…] with the type"
            )


def _is_generated(function: Any) -> bool:
    """Whether a function is of no file: what msgspec has, and what dataclasses and attrs make."""
    code = getattr(function, "__code__", None)
    return code is None or code.co_filename.startswith("<")


def _of_fields(annotation: Any, signature: inspect.Signature) -> inspect.Signature:
    """The signature of a class with fields, each parameter with its type where the field was declared.

    Dataclasses and attrs repeat the texts of annotations of another module, whose names may be other things
    in this one.
    """
    parameters = dict(signature.parameters)
    names = _parameters_of(get_origin(annotation) or annotation)
    for base in reversed((get_origin(annotation) or annotation).__mro__):
        is_declaring = hasattr(base, "__struct_fields__") or "_fields" in vars(base)
        if not is_declaring and not any(one in vars(base) for one in RECORDS):
            continue  # its annotations are no fields
        given = _given_in(annotation, base)
        for field, written in inspect.get_annotations(base).items():
            one = parameters.get(names.get(field, field))
            if one is None or not (isinstance(written, (str, ForwardRef)) or _is_open(written)):
                continue
            if one.annotation == written or _is_open(one.annotation):
                made = substituted(resolved_in(base, written), given)
                if type(made) is InitVar:
                    made = cast("Any", made).type
                parameters[one.name] = one.replace(annotation=made)
    return signature.replace(parameters=list(parameters.values()))


def _parameters_of(cls: Any) -> dict[str, str]:
    """The parameters of fields that have other names, as attrs makes them of ``_name``."""
    attributes: tuple[Any, ...] = getattr(cls, "__attrs_attrs__", ())
    return {one.name: getattr(one, "alias", None) or one.name.lstrip("_") for one in attributes}


def variables_of(function: Any) -> dict[Any, Any]:
    """What stands for the type variables in the signature of a function; empty outside of generic classes."""
    annotation, definer = _owner_of(function)
    return {} if annotation is None else _given_in(annotation, definer)


def _is_open(annotation: Any) -> bool:
    """Whether a type has a type variable in it, or is one."""
    return bool(getattr(annotation, "__parameters__", ())) or hasattr(annotation, "__bound__")


def _owner_of(function: Any) -> tuple[Any, Any]:
    """The class of a call, with its arguments if they are known, and which of its bases has the function.

    ``(None, None)`` for functions outside of classes.
    """
    if get_origin(function) is not None:
        return function, _with_any(get_origin(function), _MAKERS)
    for one in behind(function):
        if inspect.isclass(one):
            return one, _with_any(one, _MAKERS)
        if inspect.ismethod(one):
            owner = one.__self__
            cls = owner if inspect.isclass(owner) else type(owner)
            return _class_of(owner), _with_function(cls, one.__func__)
        if not (isinstance(one, partial) or inspect.isroutine(one) or hasattr(one, "__wrapped__")):
            cls: Any = cast("Any", type(one))
            return _class_of(one), _with_any(cls, ("__call__",))
    return None, None


_MAKERS = ("__new__", "__init__")


def _class_of(owner: Any) -> Any:
    """The class of an object, as ``Crud[User]`` if it was made so; a class itself."""
    if inspect.isclass(owner):
        return owner
    return getattr(owner, "__dict__", {}).get("__orig_class__", type(owner))


def _with_any(cls: type, names: tuple[str, ...]) -> type:
    """The class that defines one of these functions."""
    return next((one for one in cls.__mro__ if any(name in vars(one) for name in names)), cls)


def _with_function(cls: type, function: Any) -> type:
    """The class that defines a function, which a subclass may have under another name."""
    for one in cls.__mro__:
        if any(getattr(it, "__func__", it) is function for it in vars(one).values()):
            return one
    return _with_any(cls, (function.__name__,)) if hasattr(function, "__name__") else cls


def _given_in(annotation: Any, definer: type) -> dict[Any, Any]:
    """What stands for the type variables of one of the bases of a class, seen from that class."""
    cls, given = _without_arguments(annotation)
    if cls is definer:
        return given
    made: Any = cls
    bases: tuple[Any, ...] = made.__dict__.get("__orig_bases__", made.__bases__)
    for base in (substituted(one, given) for one in bases):
        plain, _ = _without_arguments(base)
        if isinstance(plain, type) and issubclass(plain, definer):
            return _given_in(base, definer)
    return {}


def _without_arguments(annotation: Any) -> tuple[Any, dict[Any, Any]]:
    """A generic class, and what stands for its variables: pydantic makes a class of each ``Model[User]``."""
    cls = get_origin(annotation) or annotation
    made: dict[str, Any] = getattr(cls, "__pydantic_generic_metadata__", {})
    if made.get("origin") is not None:
        origin = made["origin"]
        names = origin.__pydantic_generic_metadata__["parameters"]
        return origin, dict(zip(names, made["args"], strict=False))
    return cls, arguments_of(annotation)
