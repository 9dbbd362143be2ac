"""WebSockets of ``App.asgi()``: ASGI's messages on one side, frames of a connection in memory on the other.

Tests: ``tests/interop/test_asgi.py``, ``tests/frameworks/test_servers.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from citius.web.binding.headers import OF_CONNECTION
from citius.web.interop.inmemory import frames
from citius.web.interop.inmemory.http1 import ProtocolError, ResponseReader, request_head
from citius.web.interop.scopes import encoded

if TYPE_CHECKING:
    from citius.web.interop.inmemory.memory import MemoryConnection
    from citius.web.interop.scopes import Message, Receive, Scope, Send

# What the handshake in memory has its own of.
_OF_REQUESTS = frozenset(
    {b"connection", b"upgrade", b"sec-websocket-key", b"sec-websocket-version",
     b"sec-websocket-extensions", b"sec-websocket-protocol", b"transfer-encoding",
     b"content-length", b"http2-settings"}
)  # fmt: skip
_OF_RESPONSES = OF_CONNECTION | {
    "upgrade", "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions",
}  # fmt: skip
_HANDSHAKE = encoded(frames.HANDSHAKE)

_NO_STATUS, _ABNORMAL = 1005, 1006


async def serve_websocket(
    connection: MemoryConnection, target: bytes, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve one WebSocket, asked for at ``target``."""
    await receive()
    fields = [*_HANDSHAKE, *(one for one in scope["headers"] if one[0] not in _OF_REQUESTS)]
    offered: list[str] = list(scope.get("subprotocols") or ())
    if offered:
        fields.append((b"sec-websocket-protocol", ", ".join(offered).encode("latin-1")))
    listener: asyncio.Task[None] | None = None
    try:
        connection.feed(request_head("GET", target, fields))
        listener = asyncio.get_running_loop().create_task(_listen(connection, receive))
        reader = ResponseReader("GET")
        while reader.status is None or (reader.status != 101 and not reader.complete):
            data = await connection.receive()
            reader.receive(data, not data)
        if reader.status != 101:
            await _refuse(reader, scope, send)
            return
        await send(
            {
                "type": "websocket.accept",
                "subprotocol": dict(reader.fields).get("sec-websocket-protocol"),
                "headers": encoded(reader.fields, _OF_RESPONSES),
            }
        )
        await _pass_on(connection, reader.body, send)
    except ProtocolError:
        # The client has left before there was a response, or the application has been stopped.
        await send({"type": "websocket.close", "code": 1011})
    except ValueError:
        await send({"type": "websocket.close", "code": 1008})
    finally:
        if listener is not None:
            listener.cancel()
        connection.close()


async def _listen(connection: MemoryConnection, receive: Receive) -> None:
    """Pass on what the client sends."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            code: int = message.get("code") or _NO_STATUS
            if code != _ABNORMAL:
                reason: str = message.get("reason") or ""
                payload = code.to_bytes(2, "big") + reason.encode() if code != _NO_STATUS else b""
                await connection.send(frames.frame(frames.CLOSE, payload))
            connection.close()
            return
        text: str | None = message.get("text")
        if text is not None:
            await connection.send(frames.frame(frames.TEXT, text.encode()))
        else:
            await connection.send(frames.frame(frames.BINARY, message["bytes"]))


async def _pass_on(connection: MemoryConnection, received: bytearray, send: Send) -> None:
    """Pass on what the application sends, until one side closes."""
    while True:
        while (found := frames.split_frame(received)) is not None:
            opcode, payload, size = found
            del received[:size]
            if opcode == frames.PING:
                connection.feed(frames.frame(frames.PONG, payload))
            elif opcode == frames.CLOSE:
                await send(_close_of(payload))
                return
            elif opcode == frames.TEXT:
                await send({"type": "websocket.send", "text": payload.decode()})
            elif opcode == frames.BINARY:
                await send({"type": "websocket.send", "bytes": payload})
        data = await connection.receive()
        if not data:
            # Closed without a close frame: the client has left, or the application was stopped.
            return
        received += data


def _close_of(payload: bytes) -> Message:
    code = int.from_bytes(payload[:2], "big") if payload else 1000
    return {"type": "websocket.close", "code": code, "reason": payload[2:].decode()}


async def _refuse(reader: ResponseReader, scope: Scope, send: Send) -> None:
    """Pass on a response that is no WebSocket."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1000})
        return
    await send(
        {
            "type": "websocket.http.response.start",
            "status": reader.status,
            "headers": encoded(reader.fields, _OF_RESPONSES),
        }
    )
    await send({"type": "websocket.http.response.body", "body": reader.take_body()})
