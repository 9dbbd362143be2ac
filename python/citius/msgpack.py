"""Many MessagePack messages at once.

``msgspec.msgpack.decode`` takes one message per call. Services that get many small ones together (a batch
from a queue, rows of a store) pay as much for the calls as for the work; ``decode_many`` takes them in one.
What comes out is what msgspec would make of each, its mistakes included.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import msgspec.inspect

from citius._core import RecordDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = TypeVar("_T")


def decode_many(messages: Iterable[bytes], type: type[_T]) -> list[_T]:
    """One object of ``type`` for each message, which is one of them and nothing else.

    It is fastest for Structs whose fields are numbers, texts, bytes, booleans and ``None``.

    Raises:
        msgspec.DecodeError: A message is malformed, or does not fit the type.
    """
    return decoder_of(type)(messages if isinstance(messages, list) else list(messages))


@lru_cache(maxsize=256)
def decoder_of(type: type[_T]) -> Callable[[list[bytes]], list[_T]]:
    """What ``decode_many`` calls for this type, to be kept."""
    decode = msgspec.msgpack.Decoder(type).decode
    fields = _plain_fields(type)
    if fields is None:
        return lambda messages: [decode(message) for message in messages]
    return RecordDecoder(type, fields, decode).decode_many


def _plain_fields(type: Any) -> list[tuple[str, str, list[str]]] | None:
    """Name, key and types of each field; ``None`` if instances take more than filling their slots."""
    if not (isinstance(type, msgspec.StructMeta) and issubclass(type, msgspec.Struct)):
        return None
    config = type.__struct_config__
    special = config.array_like or config.tag is not None
    # What runs when an instance is made, or looks at it, has to run.
    if special or any(hasattr(type, name) for name in ("__post_init__", "__del__")):
        return None
    if type.__new__ is not msgspec.Struct.__new__ or type.__init__ is not msgspec.Struct.__init__:
        return None
    info = msgspec.inspect.type_info(type)
    if not isinstance(info, msgspec.inspect.StructType):
        return None
    fields: list[tuple[str, str, list[str]]] = []
    for field in info.fields:
        names = _names(field.type)
        if names is None or len(field.encode_name.encode()) > 31:
            return None
        fields.append((field.name, field.encode_name, names))
    return fields


_NAMES: dict[Any, str] = {
    msgspec.inspect.IntType: "int",
    msgspec.inspect.FloatType: "float",
    msgspec.inspect.StrType: "str",
    msgspec.inspect.BytesType: "bytes",
    msgspec.inspect.BoolType: "bool",
    msgspec.inspect.NoneType: "None",
}


def _names(kind: msgspec.inspect.Type) -> list[str] | None:
    """The plain types that a field may have; ``None`` if there is another, or a constraint."""
    if isinstance(kind, msgspec.inspect.UnionType):
        parts = [_names(part) for part in kind.types]
        return None if None in parts else [name for part in parts if part for name in part]
    name = _NAMES.get(type(kind))
    is_free = all(getattr(kind, key) is None for key in kind.__struct_fields__ if key != "encoding")
    return [name] if name is not None and is_free else None
