"""Values as MessagePack and JSON, by msgspec: one decoder for each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

encode_msgpack = msgspec.msgpack.Encoder().encode
encode_json = msgspec.json.Encoder().encode


# Called by the extension module, by these names.


def msgpack_decoder(as_: Any) -> Callable[[bytes], Any]:
    """The function that decodes MessagePack; ``None``: as what it says itself."""
    return (msgspec.msgpack.Decoder() if as_ is None else msgspec.msgpack.Decoder(as_)).decode


def json_decoder(as_: Any) -> Callable[[bytes], Any]:
    """The function that decodes JSON; ``None``: as what it says itself."""
    return (msgspec.json.Decoder() if as_ is None else msgspec.json.Decoder(as_)).decode
