"""What fields say of a request that is passed on, and of the response to it.

Tests: ``tests/http/gateway/test_websockets.py``, ``tests/http/gateway/test_attacks.py``.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import HttpReply

_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def is_granted(reply: HttpReply, sent: list[tuple[bytes, bytes]]) -> bool:
    """Whether a 101 is the answer to the WebSocket that was asked for (RFC 6455 §4.1).

    A server that can be made to answer 101 to something else would give its client the connection itself.
    """
    keys = [value for name, value in sent if name.lower() == b"sec-websocket-key"]
    if len(keys) != 1 or (reply.field(b"upgrade") or b"").lower() != b"websocket":
        return False
    accept = base64.b64encode(hashlib.sha1(keys[0] + _WEBSOCKET_GUID).digest())
    return reply.field(b"sec-websocket-accept") == accept


def dashed(name: bytes) -> bytes:
    """A name as servers read it that take ``_`` for ``-``, as CGI does."""
    return name.lower().replace(b"_", b"-")


def unambiguous(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Fields without those that such a server takes for another one of them, which a hook may have set."""
    found = list(fields)
    names = {name.lower() for name, _ in found if b"_" not in name}
    return [pair for pair in found if b"_" not in pair[0] or dashed(pair[0]) not in names]


def upgrades(fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request is for a WebSocket: the field is left out of others, whatever their client says."""
    return any(name.lower() == b"upgrade" for name, _ in fields)
