"""A WebSocket client that decides about every byte of its frames; shares no code with the server."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from rig import Peer, Reply, Server

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
TAIL = b"\x00\x00\xff\xff"


@dataclass(slots=True)
class Frame:
    """One frame of the server's."""

    opcode: int
    payload: bytes
    is_final: bool = True
    is_compressed: bool = False

    @property
    def code(self) -> int:
        """The code of a close frame."""
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.payload[:2], "big") if self.payload else 1005


def frame(
    opcode: int, payload: bytes = b"", *, final: bool = True, rsv: int = 0, mask: bool = True
) -> bytes:
    """A client's frame."""
    size = len(payload)
    head = bytes(((0x80 if final else 0) | rsv << 4 | opcode,))
    flag = 0x80 if mask else 0
    if size < 126:
        head += bytes((flag | size,))
    elif size < 1 << 16:
        head += struct.pack(">BH", flag | 126, size)
    else:
        head += struct.pack(">BQ", flag | 127, size)
    if not mask:
        return head + payload
    key = os.urandom(4)
    repeated = (key * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(
        size, "big"
    )
    return head + key + masked


class RawSocket:
    """A connection after its upgrade."""

    def __init__(self, server: Server, path: str = "/", **fields: str) -> None:
        self.peer: Peer = server.connect(receive_buffer_bytes=None)
        self.reply, self.key = upgrade(self.peer, path, **fields)

    def accepted(self) -> RawSocket:
        """Itself, if it was."""
        assert self.reply.status == 101, self.reply
        expected = hashlib.sha1(self.key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
        accept = self.reply.headers["sec-websocket-accept"]
        assert accept == base64.b64encode(expected.digest()).decode()
        return self

    def send(self, *frames: bytes, piece_bytes: int = 0) -> None:
        """Send frames, cut into pieces if wanted."""
        data = b"".join(frames)
        if not piece_bytes:
            self.peer.send(data)
        for start in range(0, len(data) if piece_bytes else 0, piece_bytes or 1):
            self.peer.send(data[start : start + piece_bytes])

    def text(self, text: str) -> None:
        """Send a text message."""
        self.send(frame(TEXT, text.encode()))

    def frame(self) -> Frame:
        """The server's next frame."""
        first, second = self.peer.read(2)
        assert not second & 0x80, "servers do not mask"
        size = second & 0x7F
        if size == 126:
            size = int.from_bytes(self.peer.read(2), "big")
        elif size == 127:
            size = int.from_bytes(self.peer.read(8), "big")
        return Frame(first & 0x0F, self.peer.read(size), bool(first & 0x80), bool(first & 0x40))

    def message(self) -> str | bytes:
        """The next message; control frames before it are a failure."""
        got = self.frame()
        assert got.opcode in (TEXT, BINARY), got
        assert got.is_final
        payload = got.payload
        if got.is_compressed:
            payload = zlib.decompressobj(-15).decompress(payload + TAIL)
        return payload.decode() if got.opcode == TEXT else payload

    def closed(self, code: int) -> Frame:
        """The close frame that comes next has this code, and then the connection ends."""
        got = self.frame()
        assert got.code == code, got
        if not self.peer.read_to_end() == b"":
            raise AssertionError("something follows the close frame")
        return got

    def messages(self, count: int) -> Iterator[str | bytes]:
        """So many messages."""
        for _ in range(count):
            yield self.message()


def upgrade(peer: Peer, path: str = "/", **fields: str) -> tuple[Reply, str]:
    """Ask for a WebSocket; the answer, and the key it has to prove."""
    key = base64.b64encode(os.urandom(16)).decode()
    given = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec_websocket_version": "13",
        "sec_websocket_key": key,
        **fields,
    }
    given = {name: value for name, value in given.items() if value}
    return peer.request("GET", path, **given), given.get("sec_websocket_key", key)


def deflated(payload: bytes) -> bytes:
    """The payload of a compressed frame."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH)
    return packed.removesuffix(TAIL)
