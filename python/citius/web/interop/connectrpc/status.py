"""How a call over HTTP has ended: its code, for the access log and the metrics.

gRPC says it in ``grpc-status`` of the header or trailer section, gRPC-Web and Connect's streams in the last
envelope of the body, Connect's unary calls in the body of an error. The server gets it with the trailer
section (responses/rpc_trailers.py). Tests: ``tests/rpc/test_rpc_status.py``.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

from citius.observability.rpc_codes import NUMBERS
from citius.web.interop.calls import RPC_STATUS
from citius.web.responses.rpc_trailers import Trailers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius.web.interop.scopes import Message

END_BYTES_MAX: Final = 64 * 1024
"""Bytes of what a body ends with, or of an error, that are read. Exceeded: the code is unknown."""

_UNKNOWN: Final = 2
_ENVELOPE: Final = struct.Struct(">BI")
_COMPRESSED: Final = 1
# The flag of an envelope that ends a stream, by the beginning of the media type.
_ENDS: Final = {b"application/grpc-web": 0x80, b"application/connect+": 0x02}


class RpcStatus:
    """Reads the code of a call from the messages of its response.

    Args:
        compressions: What envelopes may be compressed by, each with ``decompress``.
    """

    def __init__(self, compressions: Mapping[str, Any]) -> None:
        self.code: int | None = None
        self._compressions = compressions
        self._coding = ""
        self._end = 0
        """The flag of the envelope that ends the stream; 0 without envelopes."""
        self._is_error = False
        self._left = 0
        """Bytes of an envelope that are not looked at."""
        self._kept = bytearray()

    def see(self, message: Message) -> None:
        """Look at a message, before it is sent."""
        kind = message["type"]
        if kind == "http.response.start":
            self._begin(int(message["status"]), _fields(message))
        elif kind == "http.response.trailers":
            self._read_fields(_fields(message))
        elif self._end or self._is_error:
            self._read(bytes(message.get("body", b"")))
            if self._is_error and not message.get("more_body", False):
                self._read_error(bytes(self._kept))

    def trailers(self, fields: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
        """A trailer section with the code, if there is one."""
        return fields if self.code is None else Trailers(fields, self.code)

    def _begin(self, status: int, fields: dict[bytes, bytes]) -> None:
        media_type = fields.get(b"content-type", b"")
        self._end = next((flag for begin, flag in _ENDS.items() if media_type.startswith(begin)), 0)
        self._coding = fields.get(
            b"connect-content-encoding", fields.get(b"grpc-encoding", b"")
        ).decode("latin-1")
        self._read_fields(fields)
        is_plain = media_type.startswith(b"application/json") and b"content-encoding" not in fields
        self._is_error = status != 200 and is_plain and not self._end

    def _read_fields(self, fields: dict[bytes, bytes]) -> None:
        said = fields.get(b"grpc-status")
        if said is not None:
            self.code = int(said) if said.isdigit() and int(said) < len(NUMBERS) else _UNKNOWN

    def _read(self, data: bytes) -> None:
        """Take a piece of the body: of an error all of it, of a stream the envelope that ends it."""
        if self._is_error:
            self._kept += data[: END_BYTES_MAX - len(self._kept)]
            return
        while data:
            skipped = min(self._left, len(data))
            self._left -= skipped
            data = data[skipped:]
            if not data:
                return
            self._kept += data
            data = b""
            if len(self._kept) < _ENVELOPE.size:
                return
            flags, size = _ENVELOPE.unpack_from(self._kept)
            if not flags & self._end:
                data = bytes(self._kept[_ENVELOPE.size :])
                self._kept.clear()
                self._left = size
            elif size > END_BYTES_MAX:
                self.code = _UNKNOWN
                self._kept.clear()
                self._left = size
            elif len(self._kept) >= _ENVELOPE.size + size:
                self._read_end(flags, bytes(self._kept[_ENVELOPE.size :]))
                self._kept.clear()
                return

    def _read_end(self, flags: int, data: bytes) -> None:
        if flags & _COMPRESSED:
            compression = self._compressions.get(self._coding)
            if compression is None:
                self.code = _UNKNOWN
                return
            data = bytes(compression.decompress(data))
        if self._end == _ENDS[b"application/grpc-web"]:
            lines = (line.partition(b":") for line in data.split(b"\r\n"))
            self._read_fields({name.strip().lower(): value.strip() for name, _, value in lines})
        else:
            self._read_error(data, without=0)

    def _read_error(self, data: bytes, without: int | None = None) -> None:
        """The code in Connect's JSON: that of an error, or of what ends a stream, which may have none."""
        try:
            said = json.loads(data)
            if without is not None:
                said = said.get("error")
                if said is None:
                    self.code = without
                    return
            self.code = NUMBERS.get(said["code"], _UNKNOWN)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.code = self.code if without is None else _UNKNOWN


class WithStatus:
    """An ASGI application of connectrpc, whose responses have their codes."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._compressions: Mapping[str, Any] = getattr(app, "_compressions", {})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a call."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        status = RpcStatus(self._compressions)

        async def watched(message: Message) -> None:
            status.see(message)
            if message["type"] == "http.response.start":
                message = {**message, RPC_STATUS: status}
            await send(message)

        await self._app(scope, receive, watched)
        return None


def _fields(message: Message) -> dict[bytes, bytes]:
    return {
        bytes(name).lower(): bytes(value).strip() for name, value in message.get("headers") or ()
    }
