"""Which types a query, a header section, cookies or a form can bring: texts, lists of texts, fields of those.

A parameter of another type would never get a value. It is refused at the start, with the handler's file and
line. Tests: ``tests/gateway/test_fillable.py``.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from citius.errors import ConfigError
from citius.web.declarations.type_kinds import (
    fields_of,
    is_named_tuple,
    kind_of,
    metadata_of,
    name_of,
)


def is_json_text(annotation: Any) -> bool:
    """Whether values are JSON in one text: ``pydantic.Json``, whatever is in it."""
    for one in metadata_of(annotation):
        cls: Any = one if isinstance(one, type) else type(one)
        if cls.__name__ == "Json" and cls.__module__.startswith("pydantic"):
            return True
    return False


def check_fillable(annotation: Any, source: str, where: str) -> None:
    """Refuse a type of which no request has values.

    Args:
        annotation: Of a parameter whose source is named texts.
        source: ``query``, ``header``, ``cookie`` or ``form``.
        where: What messages call the parameter.

    Raises:
        ConfigError: It is one.
    """
    if _is_text(annotation):
        return
    found = kind_of(annotation)
    if found.kind == "record":
        _check_fields(found.cls, annotation, source, where)
        return
    what = _unfillable(annotation)
    if what:
        raise ConfigError(
            f"{where} takes {what} from the {_NAMES[source]}, which no request can bring; take one model "
            "with fields of texts, numbers or lists of these, without a union around it, or the body with "
            "Body()"
        )


_NAMES = {"query": "query", "header": "header section", "cookie": "cookies", "form": "form"}


def _check_fields(cls: Any, annotation: Any, source: str, where: str) -> None:
    if _has_own_reader(cls):
        return
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    for name, hint in fields_of(annotation).items():
        model = models.get(name)
        if model is not None and (any(map(_is_reader, model.metadata)) or not _may_come(model)):
            continue
        what = "" if _is_text(hint) else _unfillable(hint)
        if what:
            raise ConfigError(
                f"{where} takes {cls.__name__} from the {_NAMES[source]}, whose field {name} is {what}: no "
                "request can bring it; its fields are texts, numbers or lists of these"
            )


def _unfillable(annotation: Any) -> str:
    """What a type is that named texts cannot bring; empty if they can."""
    if _is_text(annotation):
        return ""
    found = kind_of(annotation)
    if found.kind == "record" or is_named_tuple(found.cls):
        return f"the model {found.cls.__name__}"
    if found.kind == "mapping":
        return "a mapping"
    if found.kind == "stream":
        return "a stream"
    if found.kind == "union":
        parts = [one for one in found.parts if one is not NoneType]
        each = [_unfillable(one) for one in parts]
        return f"a union with {next(filter(None, each))}" if any(each) else ""
    if found.kind in ("array", "tuple"):
        for one in found.parts:
            inner = kind_of(one)
            members = inner.parts if inner.kind == "union" else (one,)
            if any(kind_of(it).kind in ("array", "tuple") and not _is_text(it) for it in members):
                return "a list of lists"
            what = _unfillable(one)
            if what:
                return f"a list of {what.removeprefix('the ')}"
    return ""


def _is_text(annotation: Any) -> bool:
    """Whether something reads values of the type from one text, whatever the type is."""
    return is_json_text(annotation) or any(map(_is_reader, metadata_of(annotation)))


def _is_reader(meta: Any) -> bool:
    cls: Any = meta if isinstance(meta, type) else type(meta)
    is_of_pydantic = cls.__module__.startswith("pydantic")
    return is_of_pydantic and cls.__name__ in (
        "Json",
        "BeforeValidator",
        "PlainValidator",
        "WrapValidator",
    )


def _may_come(field: Any) -> bool:
    """Whether a field of a model is one that is read at all."""
    return getattr(field, "init", None) is not False


def _has_own_reader(cls: Any) -> bool:
    """Whether a model of pydantic has validators that see what was sent."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    if decorators is None:
        return False
    groups = (decorators.field_validators, decorators.model_validators)
    return any(
        getattr(one.info, "mode", "after") != "after" for group in groups for one in group.values()
    )


def is_upload(annotation: Any) -> bool:
    """Whether a type is ``UploadFile``, a list of these, or either or nothing; forms are not imported."""
    cls: Any = _of_file(annotation)
    return (
        getattr(cls, "__qualname__", "") == "UploadFile"
        and cls.__module__ == "citius.web.binding.forms"
    )


def check_file(annotation: Any, where: str) -> None:
    """Refuse a type that no file of a form can be.

    Raises:
        ConfigError: It is neither an ``UploadFile`` nor ``bytes``, nor a list of those, nor optional.
    """
    if not is_upload(annotation) and _of_file(annotation) is not bytes:
        raise ConfigError(
            f"{where} is a file of a form; annotate it as citius.UploadFile or bytes, as a list of either, "
            f"or with `| None`, instead of {name_of(annotation)}"
        )


def _of_file(annotation: Any) -> Any:
    found = kind_of(annotation)
    if found.kind == "union":
        others = [one for one in found.parts if one is not NoneType]
        found = kind_of(others[0]) if len(others) == 1 else found
    return kind_of(found.parts[0]).cls if found.cls is list else found.cls
