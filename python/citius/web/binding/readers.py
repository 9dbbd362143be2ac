"""Readers: parameters in, functions out that make their values of what a client sent.

A reader takes the raw value, or the request, and a list of mistakes. What does not match its type is noted in
the list, all mistakes of it (mistakes.py), and the value is ``None``; binding.py does not call the handler
then. Readers are made once per route. Tests: ``tests/gateway/test_sources.py``.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast, get_origin

from citius._core import read_integer, read_real
from citius.errors import BadRequest, UnprocessableContent, UnsupportedMediaType
from citius.web.declarations import pydantic_types
from citius.web.declarations.annotations import copier_of, is_body, wants_list, without_none
from citius.web.declarations.codecs import (
    REFUSALS,
    accepted_or_mistakes,
    decode,
    decode_text,
    decoder,
    is_refusal,
    refusal_of,
)
from citius.web.declarations.fillable import constraints_of_files, is_upload
from citius.web.declarations.finite import checked
from citius.web.declarations.type_checks import check_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Request
    from citius.web.binding.forms import FormData
    from citius.web.binding.signature import Parameter

    Mistakes = list[dict[str, str]]


def missing(parameter: Parameter) -> dict[str, str]:
    """The mistake of a request that lacks a parameter."""
    from citius.web.declarations.validation_errors import mistake

    return mistake(parameter.source, (parameter.wire_name,), "missing")


def value_reader(parameter: Parameter) -> Callable[[Any, Mistakes], Any]:
    """A function from text (or a list of texts) to the annotated type."""
    # Text is never null, although msgspec would make `None` of "null".
    annotation = without_none(parameter.annotation)
    name, place = parameter.wire_name, parameter.source
    adapter = pydantic_types.adapter_of(annotation)
    if adapter is not None:
        return pydantic_types.value_reader(adapter, name, place)
    import msgspec

    convert = checked(msgspec.convert, annotation, floats=True)

    def converted(value: Any, mistakes: Mistakes) -> Any:
        try:
            return convert(value, annotation, strict=False)
        except (*REFUSALS, TypeError) as error:
            if not is_refusal(error):
                raise
            from citius.web.declarations.validation_errors import find_mistakes

            mistakes += find_mistakes(value, annotation, error, place, path=(name,), strict=False)
            return None

    read, fits = _number_reader(annotation)
    if read is None and (members := _members_of(annotation)):
        # msgspec is ten times slower for an enumeration outside a Struct. It makes the texts of errors.
        return lambda value, mistakes: members.get(value) or converted(value, mistakes)
    if read is None:
        return converted

    def number(value: Any, mistakes: Mistakes) -> Any:
        # Compiled handlers read numbers with the same function. msgspec has the words for what is wrong, and
        # integers that are longer.
        # A parameter such as `{id:int}` is a number already.
        found = read(value) if type(value) is str else value if fits else None
        is_right = found is not None and (fits is None or fits(found))
        return found if is_right else converted(value, mistakes)

    return number


def _number_reader(
    annotation: Any,
) -> tuple[Callable[[str], Any] | None, Callable[[Any], bool] | None]:
    """What reads a number of a type, and what says whether the type allows it; nothing for other types."""
    if annotation is int or annotation is float:
        return (read_integer if annotation is int else read_real), None
    if get_origin(annotation) is not Annotated or annotation.__origin__ not in (int, float):
        return None, None
    import msgspec.inspect

    node = msgspec.inspect.type_info(annotation)
    node = node.type if isinstance(node, msgspec.inspect.Metadata) else node
    fits = check_of(node)
    return (None if fits is None else _number_reader(annotation.__origin__)[0]), fits


def _members_of(annotation: Any) -> dict[Any, enum.Enum]:
    """The members of an enumeration of texts by their values; empty for any other type."""
    if not (isinstance(annotation, type) and issubclass(annotation, enum.Enum)):
        return {}
    members = {one.value: one for one in annotation}
    return members if all(type(value) is str and one for value, one in members.items()) else {}


def record_reader(parameter: Parameter) -> Callable[[list[tuple[str, str]], Mistakes], Any]:
    """A function from names and texts to a type with fields, each taken by its own name."""
    annotation, place = parameter.annotation, parameter.source
    adapter = pydantic_types.adapter_of(annotation)
    if adapter is not None:
        return pydantic_types.record_reader(annotation, adapter, place)
    import msgspec
    import msgspec.inspect

    node = cast("Any", msgspec.inspect.type_info(annotation))
    dashed = place == "header"
    names = {
        field.encode_name.replace("_", "-").lower() if dashed else field.encode_name: field
        for field in node.fields
    }
    lists = {name for name, field in names.items() if _is_array(field.type)}
    nullable = {name for name, field in names.items() if _is_nullable(field.type)}
    forbids_others = getattr(node, "forbid_unknown_fields", False)
    convert = checked(msgspec.convert, annotation, floats=True)

    def read(pairs: list[tuple[str, str]], mistakes: Mistakes) -> Any:
        from citius.web.declarations.validation_errors import mistake

        values: dict[str, Any] = {}
        for name, text in pairs:
            if name in lists:
                values.setdefault(names[name].encode_name, []).append(text)
            elif name in nullable and text.lower() == "null":
                mistakes.append(mistake(place, (name,), "expected a value that is not null"))
            elif name in names:
                values[names[name].encode_name] = text
            elif forbids_others:
                values[name] = text
        try:
            return convert(values, annotation, strict=False)
        except (*REFUSALS, TypeError) as error:
            if not is_refusal(error):
                raise
            from citius.web.declarations.validation_errors import find_mistakes

            found = find_mistakes(values, annotation, error, place, strict=False)
            if dashed:  # the names that the client knows
                found = [one | {"pointer": one["pointer"].replace("_", "-")} for one in found]
            mistakes += found
            return None

    return read


def _is_array(node: Any) -> bool:
    """Whether a field takes all values of its name: ``list[int]``, ``set[str] | None``."""
    return hasattr(node, "item_type") or any(map(_is_array, getattr(node, "types", ())))


def _is_nullable(node: Any) -> bool:
    """Whether msgspec makes ``None`` of the text ``null``."""
    kinds = {type(one).__name__ for one in getattr(node, "types", ())}
    return "NoneType" in kinds and "StrType" not in kinds


def file_reader(parameter: Parameter) -> Callable[[FormData, Mistakes], Any]:
    """A function from a form to a file, or to all files of a name."""
    name, default = parameter.wire_name, parameter.default
    many = wants_list(parameter.annotation)
    wants_bytes = not is_upload(parameter.annotation)
    fits = _check_of_files(parameter, wants_bytes)
    mistake = missing(parameter) if parameter.is_required else None
    copied = copier_of(default)

    def read(form: FormData, mistakes: Mistakes) -> Any:
        # A browser sends a file input without a file as a file without a name.
        uploads: list[Any] = [one for one in form.files_list(name) if one.filename or one.size]
        if not uploads and mistake is not None:
            mistakes.append(mistake)
        if not uploads:
            if mistake is not None:
                return None
            return default if copied is None else copied()
        if wants_bytes:
            uploads = [upload.data for upload in uploads]
        value = uploads if many else uploads[-1]
        return value if fits is None else fits(value, mistakes)

    return read


def _check_of_files(
    parameter: Parameter, wants_bytes: bool
) -> Callable[[Any, Mistakes], Any] | None:
    """What checks files against their constraints, if they have any: of bytes, or of how many there are."""
    of_list, of_each = constraints_of_files(parameter.annotation)
    if not of_list and not of_each:
        return None
    if wants_bytes:
        return value_reader(parameter)
    count = value_reader(replace(parameter, annotation=Annotated[list[Any], *of_list]))

    def counted(uploads: Any, mistakes: Mistakes) -> Any:
        before = len(mistakes)
        count([None] * len(uploads), mistakes)
        return uploads if len(mistakes) == before else None

    return counted


Parts = tuple[str, str, "Callable[[str], Any]"]
"""How parts of a body are encoded, what messages call that, and what finds one by its name."""


def object_parts(request: Request, mistakes: Mistakes) -> Parts | None:
    """The members of the object in a body, each still encoded."""
    import msgspec

    data, content_type = request.body(), request.header("content-type")
    if not data and content_type is None:
        return "json", "JSON", lambda name: None
    format, label = _format_of(content_type, False)
    try:
        members = decoder(format, dict[str, msgspec.Raw])(data)
    except Exception as error:
        refusal = refusal_of(error, label, format, dict[str, Any], data)
        if refusal is None:
            raise
        if not isinstance(refusal, UnprocessableContent):
            raise refusal from None
        mistakes.extend(dict(one) for one in refusal.errors)
        return None
    return format, label, members.get


def form_parts(form: FormData) -> Parts:
    """The fields of a form that are JSON: texts, or files."""

    def find(name: str) -> bytes | None:
        text = form.get(name)
        if text is not None:
            return text.encode("utf-8", "surrogatepass")
        files = form.files_list(name)
        return files[-1].data if files else None

    return "json", "JSON", find


def part_reader(parameter: Parameter, layout: str) -> Callable[[Parts | None, Mistakes], Any]:
    """A function from parts to the value of one."""
    place = "form" if layout == "form" else "body"
    reader, name = BodyReader(parameter), parameter.wire_name
    absent = missing(parameter) | {"in": place}
    copied = copier_of(parameter.default)

    def read(parts: Parts | None, mistakes: Mistakes) -> Any:
        if parts is None:
            return None
        format, label, find = parts
        data = find(name)
        if data is None:
            if parameter.is_required:
                mistakes.append(absent)
                return None
            return copied() if copied else parameter.default
        found: Mistakes = []
        try:
            value = reader.part(format, label, bytes(data), found)
        except BadRequest:
            mistakes.append(absent | {"detail": f"expected {label}"})
            return None
        at = absent["pointer"]
        mistakes += [one | {"in": place, "pointer": at + one["pointer"][1:]} for one in found]
        return value

    return read


class BodyReader:
    """How a body is decoded by its media type.

    JSON that is as the type wants it takes no call but the decoder's: binding.py writes that into the
    function of the route. ``other`` and ``again`` are for the rest.
    """

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._copied = copier_of(parameter.default)
        annotation = parameter.annotation
        self._may_be_text = not is_body(annotation) and not wants_list(annotation)

    def decoder(self) -> Callable[[bytes], Any]:
        """What decodes JSON. A worker that reads no body never asks, and never imports msgspec."""
        return decoder("json", self._parameter.annotation)

    def other(self, request: Request, mistakes: Mistakes) -> Any:
        """The value of a body that is not JSON, or not there."""
        data = request.body()
        content_type = request.header("content-type")
        if not data and not self._parameter.is_required and content_type is None:
            return self._copied() if self._copied else self._parameter.default
        return self._read(*_format_of(content_type, self._may_be_text), data, mistakes)

    def again(self, data: bytes, mistakes: Mistakes, refused: Exception) -> Any:
        """The value of JSON that the decoder ``refused``, by what accepts more and says what is wrong."""
        found = accepted_or_mistakes(self._parameter.annotation, data, refused)
        if found is None:
            return self._read("json", "JSON", data, mistakes, refused)
        value, errors = found
        mistakes += errors
        return value

    def part(self, format: str, label: str, data: bytes, mistakes: Mistakes) -> Any:
        """The value of a part of a body."""
        if format != "json":
            return self._read(format, label, data, mistakes)
        try:
            return self.decoder()(data)
        except Exception as error:
            return self.again(data, mistakes, error)

    def _read(
        self,
        format: str,
        label: str,
        data: bytes,
        mistakes: Mistakes,
        refused: Exception | None = None,
    ) -> Any:
        annotation = self._parameter.annotation
        try:
            if format == "text":
                return decode_text(annotation, data)
            return decode(format, annotation, data, refused)
        except Exception as error:
            refusal = refusal_of(error, label, format, annotation, data)
            if refusal is None:
                raise
            if not isinstance(refusal, UnprocessableContent):
                raise refusal from None
            mistakes.extend(dict(mistake) for mistake in refusal.errors)
            return None


def _format_of(content_type: str | None, may_be_text: bool) -> tuple[str, str]:
    """How a body is encoded, and how messages call that."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return "json", "JSON"
    if media_type in MSGPACK_TYPES:
        return "msgpack", "MessagePack"
    if media_type == "text/plain" and may_be_text:
        return "text", "text"
    expected = "application/json" + (", text/plain" if may_be_text else "")
    raise UnsupportedMediaType(
        f"expected {expected} or application/msgpack, got {media_type or 'no Content-Type'}"
    )


MSGPACK_TYPES = frozenset(
    ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")
)
"""The media types of MessagePack: the registered one, and two that clients sent before it was."""
