"""An HTTP/2 client that decides about every frame; `rig.Peer` is the same for bytes.

It acknowledges settings and pings and opens windows by what has come, unless told otherwise. Field blocks are
put together and read by `hpack`, which shares no code with the server.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpack import Decoder, Encoder

if TYPE_CHECKING:
    from rig import Peer, Server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
) = range(10)
PRIORITY_UPDATE = 16
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 1, 1, 4, 8, 32
NO_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 7, 8, 11
INITIAL_WINDOW = 4

Fields = Iterable[tuple[str, str]]


@dataclass(slots=True)
class Frame:
    """One frame as it came."""

    kind: int
    flags: int
    stream: int
    payload: bytes


@dataclass(slots=True)
class StreamResponse:
    """What has come of the response of one stream so far."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytearray = field(default_factory=bytearray)
    trailers: dict[str, str] | None = None
    informational: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    ended: bool = False
    reset: int | None = None
    """The code of the server's RST_STREAM."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame as it travels."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def settings(values: dict[int, int]) -> bytes:
    """A SETTINGS frame."""
    pairs = b"".join(struct.pack("!HI", name, value) for name, value in values.items())
    return frame(SETTINGS, 0, 0, pairs)


class H2Peer:
    """A connection of HTTP/2 by prior knowledge, over what a `rig.Peer` holds."""

    def __init__(
        self, peer: Peer, given: dict[int, int] | None = None, *, opens_windows: bool = True,
        greets: bool = True,
    ) -> None:  # fmt: skip
        self.peer = peer
        self.opens_windows = opens_windows
        self.answers: dict[int, StreamResponse] = {}
        self.finished: list[int] = []
        """Streams in the order in which their answers were complete."""
        self.goaways: list[tuple[int, int]] = []
        """Last stream and code of each."""
        self.settings: dict[int, int] = {}
        self.encoder = Encoder()
        self.decoder = Decoder()
        if (
            peer.socket.family == socket.AF_INET
        ):  # windows are opened by small frames, one after the other
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if greets:
            self.send(PREFACE + settings(given or {}))

    def __enter__(self) -> H2Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    # --- outwards ---------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Any bytes."""
        self.peer.send(data)

    def block(self, fields: Fields) -> bytes:
        """A field block."""
        # Never indexed, so that blocks do not depend on each other.
        return self.encoder.encode([(name, value, True) for name, value in fields], huffman=False)

    def head(
        self, stream: int, method: str, path: str, fields: Fields = (), *, end: bool = True
    ) -> bytes:
        """A request head as it travels."""
        own = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "test")]
        flags = END_HEADERS | (END_STREAM if end else 0)
        return frame(HEADERS, flags, stream, self.block([*own, *fields]))

    def request(
        self, stream: int, method: str, path: str, body: bytes | None = None, fields: Fields = (),
    ) -> None:  # fmt: skip
        """A whole request, its body in frames of 16 KiB at most."""
        data = self.head(stream, method, path, fields, end=body is None)
        if body is not None:
            pieces = [body[at : at + 16384] for at in range(0, len(body), 16384)] or [b""]
            data += b"".join(frame(DATA, 0, stream, piece) for piece in pieces[:-1])
            data += frame(DATA, END_STREAM, stream, pieces[-1])
        self.send(data)

    def reset(self, stream: int, code: int = CANCEL) -> None:
        """Take a request back."""
        self.send(frame(RST_STREAM, 0, stream, struct.pack("!I", code)))

    def open_window(self, stream: int, increment: int) -> None:
        """Allow more data."""
        self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack("!I", increment)))

    def ping(self) -> None:
        """Wait until the server has read everything sent so far."""
        self.send(frame(PING, 0, 0, b"probe..."))
        got = self.step()
        while not (got.kind == PING and got.flags & ACK and got.payload == b"probe..."):
            got = self.step()

    # --- inwards ----------------------------------------------------------------------------

    def frame(self) -> Frame:
        """The next frame of any type, without a reaction to it.

        Raises:
            EOFError: The server has closed.
        """
        head = self.peer.read(9)
        length = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack("!BBI", head[3:])
        assert length <= 16384, "larger frames were not allowed"
        return Frame(kind, flags, stream, self.peer.read(length))

    def step(self) -> Frame:
        """The next frame, taken note of."""
        got = self.frame()
        answer = self.answers.setdefault(got.stream, StreamResponse()) if got.stream else None
        match got.kind:
            case 0:
                assert answer is not None
                assert not answer.ended, "data behind the end"
                answer.body += got.payload
                if self.opens_windows and got.payload:
                    self.open_window(0, len(got.payload))
                    if not got.flags & END_STREAM:
                        self.open_window(got.stream, len(got.payload))
            case 1:
                assert answer is not None
                assert got.flags & END_HEADERS
                self._take_fields(answer, dict(self.decoder.decode(got.payload)))
            case 3 if answer is not None:
                answer.reset = struct.unpack("!I", got.payload)[0]
                self.finished.append(got.stream)
            case 4 if not got.flags & ACK:
                pairs = struct.iter_unpack("!HI", got.payload)
                self.settings.update(pairs)
                self.send(frame(SETTINGS, ACK, 0))
            case 6 if not got.flags & ACK:
                self.send(frame(PING, ACK, 0, got.payload))
            case 7:
                last, code = struct.unpack("!II", got.payload[:8])
                self.goaways.append((last, code))
            case _:
                pass
        if got.kind in (DATA, HEADERS) and got.flags & END_STREAM and answer is not None:
            answer.ended = True
            self.finished.append(got.stream)
        return got

    def _take_fields(self, answer: StreamResponse, fields: dict[str, str]) -> None:
        if ":status" not in fields:
            answer.trailers = fields
            return
        status = int(fields.pop(":status"))
        if status < 200:
            answer.informational.append((status, fields))
        else:
            answer.status, answer.headers = status, fields

    def answer(self, stream: int) -> StreamResponse:
        """The whole answer of ``stream``, or what there was of it before a reset."""
        while stream not in self.finished:
            self.step()
        return self.answers[stream]

    def get(self, stream: int, path: str, fields: Fields = ()) -> StreamResponse:
        """A request without a body, and its answer."""
        self.request(stream, "GET", path, None, fields)
        return self.answer(stream)

    def to_end(self) -> None:
        """Everything until the server closes; a reset is an end too."""
        try:
            while True:
                self.step()
        except (EOFError, ConnectionError):
            return


def connect(server: Server, given: dict[int, int] | None = None, **options: bool) -> H2Peer:
    """A connection to ``server``."""
    return H2Peer(server.connect(), given, **options)
