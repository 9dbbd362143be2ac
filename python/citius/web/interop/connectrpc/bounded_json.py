"""JSON as connectrpc decodes it, without the nesting that ends the process.

The extension of protobuf-py reads what stands for a well-known type, such as ``Any`` or ``Timestamp``,
without a limit: 60 KB of brackets overflow the stack. Other messages have a limit, as binary ones do.
Tests: ``tests/rpc/test_rpc_depth.py``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from citius._core import json_is_deeper

DEPTH_MAX: Final = 200
"""Arrays and objects around a value. Origin: the library's limit for unknown fields of messages. Exceeded:
invalid_argument."""

_JSON: Any = import_module("connectrpc._codec").ProtoJSONCodec


class BoundedJSON(_JSON):
    """The library's codec, with a limit of nesting."""

    def __init__(self, given: Any) -> None:
        self.__dict__.update(given.__dict__)

    def decode(self, data: bytes | bytearray, message_class: Any) -> Any:
        """Read a message.

        Raises:
            Exception: It is none, or nested too deep.
        """
        if json_is_deeper(data, DEPTH_MAX):
            raise ValueError(f"expected JSON nested {DEPTH_MAX} deep at most")
        return message_class.from_json(
            data, registry=self._registry, ignore_unknown_fields=self._ignore_unknown_fields
        )


def make_bounded(service: Any) -> None:
    """Have a service decode by ``BoundedJSON`` what it would decode by the library's class."""
    given: dict[str, Any] = service._codecs
    service._codecs = {
        name: BoundedJSON(one) if one.__class__ is _JSON else one for name, one in given.items()
    }
