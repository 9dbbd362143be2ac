"""Types of pydantic (v2): values are read, sent and described by pydantic-core itself.

A type is pydantic's if it has a model, a type or an annotation of pydantic's in it; and if msgspec does not
know it, but ``pydantic.TypeAdapter`` does. Nothing here imports pydantic: without an application that has
done so, no type is pydantic's. Tests: ``tests/gateway/test_pydantic.py``.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    cast,
)

from citius.errors import BadRequest, ConfigError, HTTPError, UnprocessableContent
from citius.web.declarations.annotations import foreign_type, wants_list
from citius.web.declarations.fillable import is_json_text
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import (
    TypeKind,
    fields_of,
    has_fields,
    is_pydantic_dataclass,
    is_typed_dict,
    kind_of,
    metadata_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pydantic import TypeAdapter, ValidationError

    from citius.web.responses.declared.filters import FieldOptions

    Mistakes = list[dict[str, str]]

_PACKAGES = ("pydantic", "pydantic_core", "pydantic_extra_types", "annotated_types")


def adapter_of(annotation: Any) -> TypeAdapter[Any] | None:
    """What reads and sends values of a type; ``None`` if that is msgspec's work.

    Raises:
        ConfigError: The type is pydantic's, and has something in it that pydantic does not know.
    """
    if "pydantic" not in sys.modules:
        return None
    try:
        kept = _adapters.get(annotation, _UNKNOWN)
    except TypeError:  # its metadata cannot be compared
        return _adapter(annotation)
    if kept is _UNKNOWN:
        kept = _adapters[annotation] = _adapter(annotation)
    return cast("TypeAdapter[Any] | None", kept)


_adapters: dict[Any, TypeAdapter[Any] | None] = {}
_UNKNOWN = object()


def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    is_own = is_pydantic(annotation)
    has_meta = _has(annotation, _is_meta)
    if is_own and has_meta:
        raise ConfigError(
            f"the type {annotation!r} has constraints of msgspec.Meta, which pydantic does not know: use "
            "pydantic.Field"
        )
    if not is_own:
        refuse_lost_rules(annotation)
        if has_meta or not _is_foreign(annotation):
            return None
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        made = TypeAdapter(annotation)
        made.rebuild()
    except (PydanticUserError, PydanticUndefinedAnnotation, ImportError) as error:
        if not is_own:
            return None
        raise ConfigError(
            f"pydantic has no schema for the type {annotation!r}: {str(error).splitlines()[0]}"
        ) from None
    return made


def refuse_lost_rules(annotation: Any) -> None:
    """Refuse a type of msgspec's with rules of pydantic's in its fields, which msgspec leaves out.

    Raises:
        ConfigError: It has some.
    """
    if "pydantic" not in sys.modules:
        return
    try:
        records = [kind_of(one).cls for one in walk(annotation) if kind_of(one).kind == "record"]
        found = next((cls for cls in records if _loses_rules(cls)), None)
    except NameError:
        return  # the reader of the type raises the error
    if found is not None:
        raise ConfigError(
            f"{found.__qualname__} has constraints of pydantic in its fields, which msgspec does not know: "
            "use msgspec.Meta, or make it a pydantic model or dataclass"
        )


def _loses_rules(cls: Any) -> bool:
    if hasattr(cls, "__struct_fields__"):
        hints = fields_of(cls).values()
        parts = (part for hint in hints for part in walk(hint, into=lambda record: False))
        rules: list[Any] = [meta for part in parts for meta in metadata_of(part)]
        rules += cls.__struct_defaults__
    elif hasattr(cls, "__dataclass_fields__") and not is_pydantic(cls):
        rules = [one.default for one in cls.__dataclass_fields__.values()]
    else:
        return False
    return any(type(one).__module__.partition(".")[0] in _PACKAGES for one in rules)


def _is_foreign(annotation: Any) -> bool:
    """Whether msgspec does not know the type."""
    try:
        return foreign_type(annotation, "a parameter") is not None
    except ConfigError:
        return False


def is_pydantic(annotation: Any) -> bool:
    """Whether a type has something of pydantic's in it."""
    return "pydantic" in sys.modules and _has(annotation, _is_own)


def _is_own(cls: type) -> bool:
    is_of_package = cls.__module__.partition(".")[0] in _PACKAGES
    has_schema = hasattr(cls, "__get_pydantic_core_schema__")
    return is_of_package or has_schema or is_pydantic_dataclass(cls)


def _is_meta(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "msgspec"


def _has(annotation: Any, is_wanted: Callable[[type], bool]) -> bool:
    """Whether a type, an annotation of it, or a part of it, is of a wanted class; not parts of Structs."""
    try:
        for one in walk(annotation, into=_is_entered):
            if any(is_wanted(meta.__class__) for meta in metadata_of(one)):
                return True
            cls = kind_of(one).cls
            if isinstance(cls, type) and is_wanted(cast("type[Any]", cls)):
                return True
    except NameError:
        return False  # the reader of the type raises the error
    return False


def _is_entered(record: TypeKind) -> bool:
    """Whether pydantic makes of a class what is in its fields: those of a model are its own."""
    return hasattr(record.cls, "__dataclass_fields__") or is_typed_dict(record.cls)


def constrained(annotation: Any, constraints: dict[str, Any]) -> Any:
    """The type with constraints of a marker."""
    from pydantic import Field

    return Annotated[annotation, Field(**constraints)]


def is_of(value: Any, adapter: TypeAdapter[Any]) -> bool:
    """Whether a default is of its parameter's type."""
    from pydantic import ValidationError

    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


# --- values that come ------------------------------------------------------------------------------


def value_reader(
    adapter: TypeAdapter[Any], name: str, place: str
) -> Callable[[Any, Mistakes], Any]:
    """A function from text (or a list of texts) to a value."""
    from pydantic import ValidationError

    validate = adapter.validate_python

    def read(value: Any, mistakes: Mistakes) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            mistakes += _mistakes_of(error, value, place, (name,))
            return None
        except OverflowError:
            mistakes.append(_out_of_range(place, (name,)))
            return None

    return read


def _out_of_range(place: str, path: tuple[str, ...]) -> dict[str, str]:
    """The mistake of a duration beyond `timedelta`, for which pydantic raises `OverflowError`."""
    from citius.web.declarations.validation_errors import mistake

    return mistake(place, path, "out of range")


def record_reader(
    annotation: Any, adapter: TypeAdapter[Any], place: str
) -> Callable[[list[tuple[str, str]], Mistakes], Any]:
    """A function from names and texts to a value with fields, each taken by its own name."""
    from pydantic import ValidationError

    dashed = place == "header"
    names: dict[str, str] = {}
    lists: set[str] = set()
    for name, is_list in _accepted(annotation):
        names[name.replace("_", "-").lower() if dashed else name] = name
        if is_list:
            lists.add(name)
    keeps_others = _config_of(annotation).get("extra", "ignore") != "ignore"

    def read(pairs: list[tuple[str, str]], mistakes: Mistakes) -> Any:
        values: dict[str, Any] = {}
        for sent, text in pairs:
            name = names.get(sent)
            if name in lists:
                values.setdefault(name, []).append(text)
            elif name is not None:
                values[name] = text
            elif keeps_others:
                values[sent] = text
        try:
            return adapter.validate_python(values)
        except ValidationError as error:
            found = _mistakes_of(error, values, place, ())
            if dashed:  # the names that the client knows
                found = [one | {"pointer": one["pointer"].replace("_", "-")} for one in found]
            mistakes += found
            return None
        except OverflowError:
            mistakes.append(_out_of_range(place, ()))
            return None

    return read


def _accepted(annotation: Any) -> Iterator[tuple[str, bool]]:
    """The names in the request from which pydantic takes fields, and whether each has a list of texts."""
    cls = kind_of(annotation).cls
    fields: Any = getattr(cls, "__pydantic_fields__", None)
    if fields is None:
        fields = {name: _Field(hint) for name, hint in fields_of(annotation).items()}
    config = _config_of(annotation)
    by_alias = config.get("validate_by_alias", True)
    by_name = config.get("validate_by_name") or config.get("populate_by_name") or not by_alias
    for name, field in fields.items():
        is_list = wants_list(field.annotation) and not any(map(_is_json, field.metadata))
        alias = field.validation_alias or field.alias
        if alias is None or by_name:
            yield name, is_list
        if alias is not None and by_alias:
            for one in getattr(alias, "choices", None) or [alias]:
                path = getattr(one, "path", None)
                # What an AliasPath begins with has a list, of which it takes one.
                yield (str(path[0]), len(path) > 1) if path else (one, is_list)


def _config_of(annotation: Any) -> Any:
    """The settings of a model, a dataclass or a TypedDict."""
    cls = kind_of(annotation).cls
    return getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}


def _is_json(meta: Any) -> bool:
    return is_json_text(Annotated[str, meta])


class _Field:
    """A field of a class that is not pydantic's, as a model describes one of its own."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.metadata = metadata_of(annotation)
        own = (one for one in self.metadata if hasattr(one, "validation_alias"))
        info: Any = next(own, None)
        self.validation_alias = None if info is None else info.validation_alias
        self.alias = None if info is None else info.alias


def refusing(cls: Any, places: dict[str, tuple[str, str]]) -> Callable[..., Any]:
    """A class of records that is a dependency: what it refuses of its parameters is the client's mistake.

    Args:
        cls: A model, a Struct, a dataclass or a class of attrs; others are returned as they are.
        places: The source and the name in the request of each parameter.
    """
    if not isinstance(cls, type) or not has_fields(cls):
        return cls
    if not is_pydantic(cls):
        checks = hasattr(cls, "__post_init__") or hasattr(cls, "__attrs_attrs__")
        return _refusing_record(cls, places) if checks else cls
    from pydantic import ValidationError

    made: Any = cls

    def make(*arguments: Any, **named: Any) -> Any:
        try:
            return made(*arguments, **named)
        except ValidationError as error:
            errors = [_of_parameter(one, places) for one in error.errors(include_url=False)]
            raise UnprocessableContent("request validation failed", errors=errors) from None
        except OverflowError:
            errors = [_out_of_range("request", ())]
            raise UnprocessableContent("request validation failed", errors=errors) from None

    return make


def _refusing_record(cls: Any, places: dict[str, tuple[str, str]]) -> Callable[..., Any]:
    """The same for a class with ``__post_init__`` or validators, which refuse by what msgspec takes so."""
    sources = {source for source, _ in places.values()}
    source = sources.pop() if len(sources) == 1 else "request"

    def make(*arguments: Any, **named: Any) -> Any:
        try:
            return cls(*arguments, **named)
        except HTTPError:
            raise
        except (ValueError, TypeError) as error:
            from citius.web.declarations.validation_errors import mistake

            errors = [mistake(source, (), str(error))]
            raise UnprocessableContent("request validation failed", errors=errors) from None

    return make


def _of_parameter(error: Any, places: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The mistake in a parameter: pydantic has its name, or its place among the arguments."""
    from citius.web.declarations.validation_errors import mistake

    first = error["loc"][0] if error["loc"] else None
    known = places.get(list(places)[first] if isinstance(first, int) else str(first))
    source, sent = known or ("request", "")
    said: str = error["msg"]
    return mistake(source, (sent,) if sent else (), said[:1].lower() + said[1:])


def decoder(format: str, adapter: TypeAdapter[Any]) -> Callable[[bytes], Any]:
    """A function from a body to a value."""
    if format == "json":
        return adapter.validate_json
    from msgspec import msgpack

    return lambda data: adapter.validate_python(msgpack.decode(data))


def refusal_of(error: Exception, label: str, format: str, data: bytes) -> HTTPError | None:
    """What a client is told whose body pydantic did not take; ``None`` if it was not pydantic."""
    if "pydantic" not in sys.modules:
        return None
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return BadRequest(f"the body is no valid {label}: {first['msg']}")
    errors = _mistakes_of(error, _sent(format, data), "body", ())
    return UnprocessableContent("the body is not of the expected shape", errors=errors)


def _sent(format: str, data: bytes) -> Any:
    """What a body is without a type, as pydantic has read it: its JSON may have ``NaN``."""
    from pydantic_core import from_json

    if format == "json":
        return from_json(data)
    if format == "text":
        return data.decode()
    from msgspec import msgpack

    return msgpack.decode(data)


def _mistakes_of(
    error: ValidationError, value: Any, place: str, path: tuple[str, ...]
) -> list[dict[str, str]]:
    """Every mistake, with its place in what was sent."""
    from citius.web.declarations.validation_errors import MISTAKES_MAX, mistake

    found: list[dict[str, str]] = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        kind, text = one["type"], one["msg"]
        said = _DETAILS.get(kind) or text[:1].lower() + text[1:]
        at = _place_in(value, one["loc"], kind in _DETAILS)
        found.append(mistake(place, (*path, *at), said))
    return found[:MISTAKES_MAX]


_DETAILS = {
    "missing": "missing",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
}


def _place_in(value: Any, places: Iterable[int | str], is_of_name: bool) -> tuple[str, ...]:
    """Names and indices that lead to a part of ``value``: pydantic's places name members of unions too."""
    found: list[str] = []
    places = tuple(places)
    for index, place in enumerate(places):
        is_last = index == len(places) - 1
        if isinstance(value, dict) and (place in value or (is_last and is_of_name)):
            value = cast("dict[Any, Any]", value).get(place)
        elif isinstance(value, list) and isinstance(place, int) and place < len(cast("Any", value)):
            value = cast("list[Any]", value)[place]
        else:
            continue
        found.append(str(place))
    return tuple(found)


class _Foreign(type):
    """The class of classes that stand for types of pydantic in types of msgspec."""

    adapter: TypeAdapter[Any]

    def __instancecheck__(cls, instance: object) -> bool:
        return True  # asked after pydantic has made the value


def foreign_class(adapter: TypeAdapter[Any]) -> Any:
    """A class whose values ``read_foreign`` makes, for msgspec."""
    return _Foreign("Foreign", (), {"adapter": adapter})


def read_foreign(cls: Any, value: Any) -> Any:
    """A value of such a class, as a decoder of msgspec's calls it.

    Raises:
        NotImplementedError: It is another class that msgspec does not know.
        ValueError: The value is not of the type.
    """
    if not isinstance(cls, _Foreign):
        raise NotImplementedError(f"values of {cls!r} cannot be decoded")
    from pydantic import ValidationError

    try:
        return cls.adapter.validate_python(value)
    except ValidationError as error:
        first = _mistakes_of(error, value, "", ())[0]
        raise ValueError(f"{first['pointer']}: {first['detail']}") from None
    except OverflowError:
        raise ValueError("#: out of range") from None


# --- values that leave -----------------------------------------------------------------------------


def sender(adapter: TypeAdapter[Any], options: FieldOptions) -> Callable[[Any], Any]:
    """A function from a value to what JSON can say of it, with the fields of the type only.

    It raises pydantic's ``ValidationError`` for values of other types.
    """
    from pydantic_core import PydanticSerializationError

    # The serializer sends all of a part that is not of its declared type, and warns.
    dump = partial(
        adapter.dump_python,
        by_alias=options.by_alias,
        exclude_none=options.exclude_none,
        exclude_unset=options.exclude_unset,
        exclude_defaults=options.exclude_defaults,
        warnings="error",
    )

    def made(value: Any) -> Any:
        found = adapter.validate_python(value, from_attributes=True)
        try:
            return dump(found, mode="json")
        except (PydanticSerializationError, UnicodeDecodeError):
            pass
        found = _of_declared_types(found)
        try:
            return dump(found, mode="json")
        except (PydanticSerializationError, UnicodeDecodeError):
            return dump(
                found
            )  # what a client has sent where anything may be: the encoder has a way

    def _of_declared_types(value: Any) -> Any:
        """The value with parts of exactly the declared types: validation keeps objects as they are."""
        plain = adapter.dump_python(
            value,
            by_alias=False,
            exclude_unset=options.exclude_unset,
            round_trip=True,
            warnings=False,
        )
        return adapter.validate_python(plain, from_attributes=True, by_alias=False, by_name=True)

    return made


def encodable(value: Any) -> Any:
    """What can be encoded in the place of a value that msgspec does not know.

    A key of a dictionary that is no text, as MessagePack may have, is its JSON; an extension value is an
    object with its ``code`` and its ``data`` in base64.

    Raises:
        TypeError: pydantic does not know it either.
    """
    if value is None or isinstance(value, (bool, tuple, list)):  # msgspec knows them but as keys
        import msgspec

        return msgspec.json.encode(value, enc_hook=encodable).decode()
    if type(value).__module__ == "msgspec.msgpack":
        return {"code": value.code, "data": value.data}
    if "pydantic_core" in sys.modules:
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            made = to_jsonable_python(value, by_alias=True)
            # What msgspec knows, and refuses as a key of a dictionary.
            if type(made) is not type(value):
                return made
        except (PydanticSerializationError, UnicodeDecodeError):
            # A part of it is of no declared type, as a client may have sent it.
            serializer: Any = getattr(value, "__pydantic_serializer__", None)
            if serializer is not None:
                return serializer.to_python(value, by_alias=True)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def in_json(value: Any) -> Any:
    """What JSON says of a default or an example, for descriptions; ``MISSING`` if it has no such value."""
    import msgspec

    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=encodable)
    except (TypeError, ValueError, ArithmeticError, NotImplementedError, RecursionError):
        return MISSING


# --- what the documentation says --------------------------------------------------------------------


def schemas(
    received: dict[str, TypeAdapter[Any]], sent: dict[str, TypeAdapter[Any]], prefix: str
) -> tuple[dict[tuple[str, bool], dict[str, Any]], dict[str, Any]]:
    """The JSON Schemas of types by their keys and whether they are sent, and what they refer to."""
    if not received and not sent:
        return {}, {}
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Describes what JSON cannot say, such as a function that a field has by default, as anything."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            """A default that JSON does not have is left out, as those of msgspec are."""

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            return {}

    inputs: list[Any] = [(key, "validation", one) for key, one in received.items()]
    inputs += [(key, "serialization", one) for key, one in sent.items()]
    made, definitions = TypeAdapter.json_schemas(
        inputs, ref_template=prefix + "{model}", schema_generator=Generator
    )
    found = {(key, mode == "serialization"): one for (key, mode), one in made.items()}
    return cast("Any", found), definitions.get("$defs", {})
