"""Which types a path, a query, a header section, cookies or a form can bring: texts, lists, fields of those.

Values that no body has either, such as functions and classes, are named here too (`no_value`).

A parameter of another type would never get a value. It is refused at the start, with the handler's file and
line. Tests: ``tests/gateway/test_fillable.py``.
"""

from __future__ import annotations

from collections import abc
from dataclasses import MISSING
from types import EllipsisType, NoneType
from typing import Annotated, Any, Final, get_args, get_origin

from citius.errors import ConfigError
from citius.web.declarations.type_kinds import (
    TypeKind,
    fields_of,
    has_fields,
    is_named_tuple,
    kind_of,
    metadata_of,
    name_of,
    walk,
)


def is_json_text(annotation: Any) -> bool:
    """Whether values are JSON in one text: ``pydantic.Json``, whatever is in it."""
    for one in metadata_of(annotation):
        cls = _class_of(one)
        if cls.__name__ == "Json" and cls.__module__.startswith("pydantic"):
            return True
    return False


def check_fillable(annotation: Any, source: str, where: str) -> None:
    """Refuse a type of which no request has values.

    Args:
        annotation: Of a parameter whose source is named texts.
        source: ``path``, ``query``, ``header``, ``cookie`` or ``form``.
        where: What messages call the parameter.

    Raises:
        ConfigError: It is one.
    """
    if _is_text(annotation):
        return
    found = kind_of(annotation)
    if found.kind == "record" and source != "path":
        _check_fields(found.cls, annotation, source, where)
        return
    what = _unfillable(annotation)
    if not what and source in ("path", "cookie"):
        what = _beyond_one_text(annotation, source)
    if what:
        raise ConfigError(
            f"{where} takes {what} from the {_NAMES[source]}, which no request can bring; take one model "
            "with fields of texts, numbers or lists of these, without a union around it, or the body with "
            "Body()"
        )


_NAMES = {
    "path": "path", "query": "query", "header": "header section", "cookie": "cookies", "form": "form",
}  # fmt: skip


def _beyond_one_text(annotation: Any, source: str) -> str:
    """What a type is that needs more than one text, or in cookies a list of several; empty for others."""
    if _is_text(annotation):
        return ""
    found = kind_of(annotation)
    if found.kind == "union":
        others = [one for one in found.parts if kind_of(one).cls.__name__ not in _NOTHING]
        each = [_beyond_one_text(one, source) for one in others]
        return each[0] if each and all(each) else ""
    if has_fields(found.cls):
        return _beyond_one_text(found.cls.__pydantic_fields__["root"].annotation, source)
    if found.kind == "tuple" and len(found.parts) != 1:
        return "a tuple"
    return "a list" if found.kind in ("array", "tuple") and source == "path" else ""


_NOTHING: Final = ("NoneType", "UnsetType")


def _check_fields(cls: Any, annotation: Any, source: str, where: str) -> None:
    if _has_own_reader(cls):
        return
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    is_strict = getattr(cls, "model_config", {}).get("strict") is True
    if not _is_by_fields(cls):
        raise ConfigError(
            f"{where} takes {cls.__name__} from the {_NAMES[source]}, which is no object with fields: no "
            "request can bring it; take its values one by one"
        )
    for name, hint in fields_of(annotation).items():
        model = models.get(name)
        said = () if model is None else model.metadata
        if model is not None and (any(map(_is_reader, said)) or not _may_come(model)):
            continue
        what = "" if _is_text(hint) else _unfillable(hint)
        if not what and _is_strict(hint, said, is_strict=is_strict):
            what = f"a {name_of(hint)} that is strict, which no text is"
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
        if not _is_by_fields(found.cls) and _is_root_of_text(found.cls):
            return ""
        return f"the model {found.cls.__name__}"
    if found.kind == "union":
        each = [_unfillable(one) for one in found.parts if one is not NoneType]
        return f"a union with {next(filter(None, each))}" if any(each) else ""
    if found.kind in ("array", "tuple"):
        return _unfillable_items(found.parts)
    return _NO_TEXTS.get(found.kind) or no_value(annotation) or _beyond_texts(annotation, found)


_NO_TEXTS: Final[dict[str, str]] = {"mapping": "a mapping", "stream": "a stream"}


def _unfillable_items(parts: tuple[Any, ...]) -> str:
    """The same of the items of a list."""
    if not parts:
        return "an empty tuple"
    for one in parts:
        inner = kind_of(one)
        members = inner.parts if inner.kind == "union" else (one,)
        if any(kind_of(it).kind in ("array", "tuple") and not _is_text(it) for it in members):
            return "a list of lists"
        what = _unfillable(one)
        if what:
            return f"a list of {what.removeprefix('the ')}"
    return ""


def _beyond_texts(annotation: Any, found: TypeKind) -> str:
    """What a class is whose values a body may have, and no text is."""
    if found.kind == "plain" and _is_strict(annotation):
        return f"a {name_of(found.cls)} that is strict, which no text is"
    module = getattr(found.cls, "__module__", "").partition(".")[0]
    is_encoded = module == "msgspec" and found.cls.__name__ in ("Raw", "Ext")
    return "a value as it was encoded" if is_encoded else ""


_NO_VALUES: Final[dict[Any, str]] = {
    abc.Callable: "a function",  # pyright: ignore[reportUnknownMemberType]
    type: "a class",
    EllipsisType: "an ellipsis",
}


def no_value(annotation: Any) -> str:
    """What a type is of which neither a text nor a body has values, without its parts; empty for others.

    pydantic has a schema for each of these, since it also checks objects of Python.
    """
    if any(_class_of(one).__name__ == "InstanceOf" for one in metadata_of(annotation)):
        return "an object of a class"
    found = kind_of(annotation)
    is_class = found.kind in ("plain", "unknown") and isinstance(found.cls, type)
    return _NO_VALUES.get(found.cls, "") if is_class else ""


def no_value_in(annotation: Any) -> str:
    """What a type is, or a part of it, of which no body has values; fields with defaults may have such."""
    seen: list[Any] = []
    waiting = [annotation]
    try:
        for one in waiting:
            for part in walk(one, into=lambda record: False):
                if what := no_value(part):
                    return what
                cls = kind_of(part).cls
                if has_fields(cls) and not any(cls is other for other in seen):
                    seen.append(cls)
                    waiting += _required(part)
    except (NameError, ConfigError):
        pass  # the reader of the type raises the error
    return ""


def _required(annotation: Any) -> list[Any]:
    """The types of those fields of a model or dataclass that have no default."""
    cls = kind_of(annotation).cls
    models: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    needed = {name for name, one in models.items() if one.is_required()}
    if not models:
        needed = {
            name
            for name, one in fields.items()
            if one.init and one.default is MISSING and one.default_factory is MISSING
        }
    return [hint for name, hint in fields_of(annotation).items() if name in needed]


def _is_by_fields(cls: Any) -> bool:
    """Whether values of a class with fields are objects: neither arrays nor the value of a ``RootModel``."""
    is_array = getattr(getattr(cls, "__struct_config__", None), "array_like", False)
    return not is_array and not getattr(cls, "__pydantic_root_model__", False)


def _is_root_of_text(cls: Any) -> bool:
    fields: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
    return "root" in fields and not _unfillable(fields["root"].annotation)


def _is_strict(annotation: Any, said: Any = (), *, is_strict: bool = False) -> bool:
    """Whether pydantic takes values of the type itself only, and no text in their place."""
    found = kind_of(annotation)
    if found.kind == "union":
        others = [one for one in found.parts if one is not NoneType]
        return all(_is_strict(one, said, is_strict=is_strict) for one in others)
    if found.kind != "plain" or found.cls is str:
        return False
    for one in (*said, *metadata_of(annotation)):
        if _class_of(one).__module__.startswith("pydantic"):
            is_strict = getattr(one, "strict", None) or is_strict
    return is_strict is True


def _class_of(value: Any) -> Any:
    return value if isinstance(value, type) else type(value)


def _is_text(annotation: Any) -> bool:
    """Whether something reads values of the type from one text, whatever the type is."""
    return is_json_text(annotation) or any(map(_is_reader, metadata_of(annotation)))


def _is_reader(meta: Any) -> bool:
    cls = _class_of(meta)
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
    """Refuse a type that no file of a form can be, and constraints that nothing checks.

    Raises:
        ConfigError: It is neither an ``UploadFile`` nor ``bytes``, nor a list of those, nor optional; or an
            ``UploadFile`` has constraints, which are those of bytes.
    """
    if not is_upload(annotation) and _of_file(annotation) is not bytes:
        raise ConfigError(
            f"{where} is a file of a form; annotate it as citius.UploadFile or bytes, as a list of either, "
            f"or with `| None`, instead of {name_of(annotation)}"
        )
    of_list, of_each = constraints_of_files(annotation)
    if of_each and is_upload(annotation):
        raise ConfigError(
            f"{where} is an UploadFile with {of_each[0]!r}, which nothing checks: the bytes that a file may "
            "have are form=FormLimits(file_bytes_max=…) of the route"
        )
    if of_list and is_upload(annotation):
        # A list of files is counted; what else there is has no sense for one.
        import msgspec

        try:
            msgspec.convert([], Annotated[list[Any], *of_list])
        except msgspec.ValidationError:
            return  # there are too few
        except TypeError as error:
            raise ConfigError(f"{where} is a list of files with {of_list[0]!r}: {error}") from None


def constraints_of_files(annotation: Any) -> tuple[list[Any], list[Any]]:
    """What holds for the list of the files of a name, and what holds for each file."""
    of_list: list[Any] = []
    found: list[Any] = []
    while True:
        if hasattr(annotation, "__metadata__"):
            found += [limit for one in annotation.__metadata__ for limit in _limits_of(one)]
            annotation = annotation.__origin__
            continue
        parts = [one for one in get_args(annotation) if one is not NoneType]
        if len(parts) != 1:
            return of_list, found
        if get_origin(annotation) is list:
            of_list, found = found, []
        annotation = parts[0]


def _limits_of(one: Any) -> list[Any]:
    """The constraints that metadata are; nothing for what documents only."""
    module = type(one).__module__
    if module.startswith("msgspec"):
        limits = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")
        return [one] if any(getattr(one, name, None) is not None for name in limits) else []
    if hasattr(one, "metadata"):  # a description of pydantic's
        return [limit for inner in one.metadata for limit in _limits_of(inner)]
    return [one] if module.startswith(("annotated_types", "pydantic")) else []


def _of_file(annotation: Any) -> Any:
    found = kind_of(annotation)
    if found.kind == "union":
        others = [one for one in found.parts if one is not NoneType]
        found = kind_of(others[0]) if len(others) == 1 else found
    return kind_of(found.parts[0]).cls if found.cls is list else found.cls
