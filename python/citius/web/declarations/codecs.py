"""JSON and MessagePack by msgspec, types of pydantic by pydantic: values to bytes, bytes to values of a type.

The encoders are made when they are first needed (module ``__getattr__``), because a service that sends text
never needs msgspec and its worker should not pay for it. Decoders raise ``HTTPError``: 400 for bytes that are
no JSON or MessagePack, 422 for well-formed data of the wrong shape, with the place. The extension calls this
module (citius-py/src/functions.rs). Tests: ``tests/unit/test_request_values.py``.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from citius.errors import BadRequest, HTTPError, UnprocessableContent
from citius.web.declarations.finite import checked
from citius.web.declarations.pydantic_types import adapter_of, encodable
from citius.web.declarations.pydantic_types import decoder as decoder_of_pydantic
from citius.web.declarations.pydantic_types import refusal_of as refusal_of_pydantic

if TYPE_CHECKING:
    from collections.abc import Callable

    encode_json: Callable[[object], bytes]
    encode_msgpack: Callable[[object], bytes]


def __getattr__(name: str) -> Any:
    """Make ``encode_json`` and ``encode_msgpack`` when they are first needed."""
    if name == "encode_json":
        import msgspec

        value = msgspec.json.Encoder(enc_hook=encodable).encode
    elif name == "encode_msgpack":
        import msgspec

        value = msgspec.msgpack.Encoder(enc_hook=encodable).encode
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def encode_as_msgpack(value: object) -> bytes:
    """``encode_msgpack``, with texts for what MessagePack has no place for."""
    encode: Callable[[object], bytes] = __getattr__("encode_msgpack")
    try:
        return encode(value)
    except Exception as error:
        return encode_otherwise("encode_msgpack", value, error)


def encode_otherwise(name: str, value: object, error: BaseException) -> bytes:
    """The bytes of a value that an encoder has refused.

    MessagePack has integers of 64 bits, and times between the years 1 and 9999 in UTC: what is beyond, as a
    client may send it, is text.

    Args:
        name: The encoder, ``encode_json`` or ``encode_msgpack``.
        value: What it has refused.
        error: Why.

    Raises:
        BaseException: There is no other way: ``error``, or one that says which part of the value it is.
    """
    encode: Callable[[object], bytes] = globals().get(name) or __getattr__(name)
    if isinstance(error, OverflowError) and name == "encode_msgpack":
        import msgspec

        to_builtins: Callable[..., object] = msgspec.to_builtins
        kept = (bytes, bytearray, memoryview, datetime)
        made = to_builtins(value, builtin_types=kept, enc_hook=encodable)
        return encode(_within_range(made, encode))
    raise _encoding_failed(value, error) from None


def _within_range(value: Any, encode: Callable[[object], bytes]) -> Any:
    """A value of built-in types with texts for numbers and times that MessagePack refuses."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_within_range(key, encode): _within_range(one, encode) for key, one in items}
    if isinstance(value, (list, tuple)):
        parts = [_within_range(one, encode) for one in cast("list[Any]", value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, (int, datetime)) and _is_refused(encode, value):
        return value.isoformat() if isinstance(value, datetime) else str(value)
    return value


def _encoding_failed(value: object, error: BaseException) -> BaseException:
    """The error to raise for a value that an encoder has refused: it says which part of the value that is."""
    if not isinstance(error, (TypeError, ValueError)):
        return error
    encode: Callable[[object], bytes] = globals().get("encode_json") or __getattr__("encode_json")
    place, part = "", value
    for _ in range(_DEPTH_MAX):
        inner = next(((key, one) for key, one in _parts(part) if _is_refused(encode, one)), None)
        if inner is None:
            break
        place, part = f"{place}/{inner[0]}", inner[1]
    return TypeError(f"the response cannot be encoded: {error} (at #{place}, {part!r:.100})")


_DEPTH_MAX = 100


def _is_refused(encode: Callable[[object], bytes], value: object) -> bool:
    try:
        encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return True
    return False


def _parts(value: Any) -> Iterable[tuple[object, object]]:
    """The parts of a value by their keys, indices or names."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).items()
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return enumerate(cast("list[object]", value))
    fields = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", ())
    return [(name, getattr(value, name)) for name in fields if hasattr(value, name)]


def decode_json(type: Any, data: bytes) -> Any:
    """``data`` as JSON; of that type, unless ``type`` is ``None``."""
    return _decode("json", "JSON", type, data)


def decode_msgpack(type: Any, data: bytes) -> Any:
    """``data`` as MessagePack; of that type, unless ``type`` is ``None``."""
    return _decode("msgpack", "MessagePack", type, data)


def _decode(format: str, label: str, type: Any, data: bytes) -> Any:
    try:
        return decode(format, type, data)
    except Exception as error:
        refusal = refusal_of(error, label, format, type, data)
        if refusal is None:
            raise
        raise refusal from None


def decode(format: str, type: Any, data: bytes, refused: Exception | None = None) -> Any:
    """The value in a body.

    Args:
        format: ``json`` or ``msgpack``.
        type: What it should be.
        data: The body.
        refused: What the decoder has said of it already.

    Raises:
        msgspec.DecodeError: It is none, or not of the type.
    """
    import msgspec

    try:
        if refused is not None:
            raise refused
        return decoder(format, type)(data)
    except msgspec.ValidationError as error:
        if format != "json" or not _may_be_integer(error):
            raise
        found: list[float] = []
        try:
            value = _with_integers(decoder(format, None)(data), found)
        except UNDECODABLE:
            value = None  # after the mistake it is no JSON: `refusal_of` says so
        if found:
            try:
                return converter(type)(value, type, str_keys=True)
            except (*REFUSALS, TypeError) as error:
                if not is_refusal(error):
                    raise
        raise


def accepted_or_mistakes(
    type: Any, data: bytes, refused: Exception
) -> tuple[Any, list[dict[str, str]]] | None:
    """The value of JSON that the decoder has ``refused``, or its mistakes; ``None``: it is neither."""
    import msgspec

    if refused.__class__ is not msgspec.ValidationError:
        return None
    found: list[float] = []
    try:
        sent = decoder("json", None)(data)
        value = _with_integers(sent, found) if _may_be_integer(refused) else sent
    except UNDECODABLE:
        return None  # after the mistake it is no JSON
    if found:
        try:
            return converter(type)(value, type, str_keys=True), []
        except (*REFUSALS, TypeError) as error:
            if not is_refusal(error):
                raise
    return None, _find_mistakes()(sent, type, refused, "body", strict=True)


@functools.cache
def _find_mistakes() -> Callable[..., list[dict[str, str]]]:
    """The second pass, imported when the first body is refused."""
    from citius.web.declarations.validation_errors import find_mistakes

    return find_mistakes


def _may_be_integer(refused: Exception) -> bool:
    """Whether the first mistake is a number such as 5.0, which JSON Schema takes for an integer."""
    return "got `float`" in str(refused)


def _with_integers(value: Any, found: list[float]) -> Any:
    """The value with integers in place of numbers without a fraction, which are noted."""
    cls = value.__class__
    if cls is float:
        if value.is_integer():
            found.append(value)
            return int(value)
    elif cls is list:
        return [_with_integers(one, found) for one in cast("list[Any]", value)]
    elif cls is dict:
        items = cast("dict[Any, Any]", value).items()
        return {key: _with_integers(one, found) for key, one in items}
    return value


def decode_text(type: Any, data: bytes) -> Any:
    """A body of ``text/plain`` as a value: text as it is; numbers, dates and enumerations as JSON has them.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    text = data.decode()
    adapter = adapter_of(type)
    if adapter is not None:
        return adapter.validate_python(text)
    return converter(type)(text if type is str else text.strip(), type, strict=False)


def refusal_of(
    error: Exception, label: str, format: str, type: Any, data: bytes
) -> HTTPError | None:
    """What a client is told whose body was not decoded; ``None`` if it was not the body's fault.

    The body is decoded once more, without a type, to find all mistakes. A decoder stops at its first one;
    what follows may be no JSON or MessagePack, which is 400.
    """
    refusal = refusal_of_pydantic(error, label, format, data)
    if refusal is not None:
        return refusal
    if not isinstance(error, UNDECODABLE):
        return None
    try:
        sent = data.decode() if format == "text" else decoder(format, None)(data)
    except UNDECODABLE as malformed:
        return BadRequest(f"the body is no valid {label}: {malformed}")
    if isinstance(error, TypeError) and not is_refusal(error):
        return None  # of code that the application has in its types
    if _is_malformed(error):
        return BadRequest(f"the body is no valid {label}: {error}")
    from citius.web.declarations.validation_errors import find_mistakes

    errors = find_mistakes(sent, type, error, "body", strict=format != "text")
    return UnprocessableContent("the body is not of the expected shape", errors=errors)


def _is_malformed(error: Exception) -> bool:
    """Whether a decoder speaks of the bytes, not of the values in them."""
    import msgspec

    if isinstance(error, msgspec.ValidationError):
        return False
    return isinstance(error, msgspec.DecodeError | UnicodeDecodeError | RecursionError)


REFUSALS = (ValueError, ArithmeticError)
"""What msgspec raises for values that are not of a type: its ``ValidationError`` is a ``ValueError``, and for
dates out of range it raises plain ones."""


def is_refusal(error: Exception) -> bool:
    """Whether msgspec has refused a value: it raises a ``TypeError`` for a decimal that a set cannot have.

    Any other ``TypeError`` is of code that the application has in its types.
    """
    return isinstance(error, REFUSALS) or "Cannot hash a signaling NaN" in str(error)


UNDECODABLE = (*REFUSALS, TypeError, RecursionError)
"""What its decoders raise besides: a ``TypeError`` for keys that cannot be hashed."""


def decoder(format: str, type: Any) -> Callable[[bytes], Any]:
    """What decodes bodies of that type; made when it is first needed, and kept."""
    if (kept := _decoders.get((format, type))) is not None:
        return kept
    import msgspec

    adapter = None if type is None else adapter_of(type)
    if adapter is not None:
        decode = _decoders[format, type] = decoder_of_pydantic(format, adapter)
        return decode
    wanted = Any if type is None else type
    made = msgspec.json.Decoder(wanted) if format == "json" else msgspec.msgpack.Decoder(wanted)
    decode = (
        checked(made.decode, type, floats=format != "json") if type is not None else made.decode
    )
    _decoders[format, type] = decode
    return decode


@functools.cache
def converter(type: Any) -> Callable[..., Any]:
    """``msgspec.convert`` for values of that type."""
    import msgspec

    return checked(msgspec.convert, type, floats=True)


_decoders: dict[tuple[str, Any], Callable[[bytes], Any]] = {}
