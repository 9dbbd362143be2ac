"""WebSocket frames as a client in memory writes and reads them (RFC 6455 §5).

The server sends whole messages without masks. Masks of the client are zeros: they protect proxies, of which
there are none. Tests: ``tests/gateway/test_websocket.py``.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

HANDSHAKE: Final = (
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
)
"""Fields of a request for a WebSocket (RFC 6455 §4.1); the key is that of the RFC's example."""


def frame(opcode: int, payload: bytes) -> bytes:
    """A frame of a client."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0xFF)) + size.to_bytes(8, "big")
    return head + bytes(4) + payload


def split_frame(data: bytes | bytearray) -> tuple[int, bytes, int] | None:
    """Opcode, payload and size of the server's first frame; ``None`` if it is not complete."""
    if len(data) < 2:
        return None
    size, start = data[1], 2
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(data[2:start], "big")
        if len(data) < start:
            return None
    end = start + size
    return None if len(data) < end else (data[0] & 0x0F, bytes(data[start:end]), end)
