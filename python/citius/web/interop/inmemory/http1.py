"""HTTP/1.1 as a client of a reactor in memory speaks it: a request's head out, a response in.

Used by the ASGI adapter, the transports for httpx and the test client. Not a general client: what comes is
what the server writes. Tests: every test that uses ``citius.testing``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Fields = Iterable[tuple[bytes, bytes]]


# Bytes that would end a target, or the name of a field, early.
_NOT_IN_TARGET = bytes(range(0x21)) + b"\x7f"
_NOT_IN_NAME = bytes(range(0x21)) + b":"


class ProtocolError(Exception):
    """The bytes that came back are no complete HTTP/1.1 response."""


def request_head(method: str, target: bytes, fields: Fields) -> bytes:
    """The head of a request.

    Raises:
        ValueError: A part of it would not be read as what it is.
    """
    if not (method.isascii() and method.isprintable() and method) or " " in method:
        raise ValueError(f"expected a method such as GET, got {method!r}")
    if not target or target.translate(None, _NOT_IN_TARGET) != target:
        raise ValueError(f"expected a request target without spaces, got {target!r}")
    lines = [method.encode() + b" " + target + b" HTTP/1.1"]
    for name, value in fields:
        if not name or name.translate(None, _NOT_IN_NAME) != name:
            raise ValueError(f"expected the name of a field, got {name!r}")
        if b"\n" in value or b"\r" in value or b"\0" in value:
            raise ValueError(f"the field {name.decode('latin-1')} has a line break in its value")
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])


def chunk(data: bytes) -> bytes:
    """A piece of a chunked body; of no data: nothing, because an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


class ResponseReader:
    """One response: bytes in, head and body out."""

    def __init__(self, method: str) -> None:
        self.status: int | None = None
        self.fields: list[tuple[str, str]] = []
        self.trailers: list[tuple[str, str]] = []
        self.body = bytearray()
        """What has come of the body and was not taken."""
        self.complete = False
        self._method = method
        self._received = bytearray()
        self._left: int | None = None
        self._chunked = False

    def receive(self, data: bytes, closed: bool) -> None:
        """Take what came; ``closed`` means that nothing will follow.

        Raises:
            ProtocolError: It is no response, or was cut off.
        """
        self._received += data
        while self.status is None and b"\r\n\r\n" in self._received:
            self._read_head()
        if self.status is not None and not self.complete:
            self._read_body(closed)
        if closed and not self.complete:
            raise ProtocolError(
                f"the connection was closed in the middle of a response (status {self.status})"
            )

    def take_body(self) -> bytes:
        """What has come of the body since this was asked last."""
        piece = bytes(self.body)
        self.body.clear()
        return piece

    def _read_head(self) -> None:
        end = self._received.index(b"\r\n\r\n")
        start_line, *lines = bytes(self._received[:end]).decode("latin-1").split("\r\n")
        del self._received[: end + 4]
        version, status, *_ = start_line.split(" ", 2)
        if not version.startswith("HTTP/1.") or not status.isdecimal():
            raise ProtocolError(f"expected a status line, got {start_line!r}")
        if status.startswith("1") and status != "101":
            return  # an interim response; the final one follows
        self.fields = _fields(lines)
        self.status = int(status)
        fields = dict(self.fields)
        self._chunked = fields.get("transfer-encoding", "").lower() == "chunked"
        if self._method == "HEAD" or self.status in (204, 304):
            self._left, self._chunked = 0, False
        elif not self._chunked and "content-length" in fields:
            self._left = int(fields["content-length"])

    def _read_body(self, closed: bool) -> None:
        if self._chunked:
            while not self.complete and self._read_chunk():
                pass
            return
        taken = len(self._received) if self._left is None else self._left
        piece = self._received[:taken]
        self.body += piece
        del self._received[:taken]
        if self._left is None:
            self.complete = closed  # a body without a length ends with the connection
        else:
            self._left -= len(piece)
            self.complete = self._left == 0

    def _read_chunk(self) -> bool:
        """Take one whole chunk; ``False`` if there is none yet."""
        line_end = self._received.find(b"\r\n")
        if line_end < 0:
            return False
        size = int(bytes(self._received[:line_end]), 16)
        end = line_end + 2 + size
        if size == 0:
            trailers_end = self._received.find(b"\r\n\r\n", line_end)
            if trailers_end >= 0:
                lines = bytes(self._received[line_end + 2 : trailers_end]).decode("latin-1")
                self.trailers = _fields(lines.split("\r\n")) if lines else []
                self.complete = True
            return False
        if len(self._received) < end + 2:
            return False
        self.body += self._received[line_end + 2 : end]
        del self._received[: end + 2]
        return True


def _fields(lines: list[str]) -> list[tuple[str, str]]:
    pairs = (line.partition(":") for line in lines)
    return [(name.lower(), value.strip()) for name, _, value in pairs]
