"""WebSockets of the test clients: frames as a client writes and reads them.

``_Frames`` takes bytes and gives messages and replies; ``Socket`` and ``AsyncSocket`` carry them.
Tests: ``tests/gateway/test_websocket.py``, ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.errors import ConnectionClosed
from citius.web.interop.inmemory.frames import BINARY, CLOSE, PING, PONG, TEXT, frame, split_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from citius.testing.client import Client
    from citius.testing.client import _Connection as Connection  # pyright: ignore[reportPrivateUsage]
    from citius.testing.requests import TestResponse
    from citius.web.binding.headers import Headers
    from citius.web.interop.inmemory.http1 import ResponseReader


class WebSocketRefused(Exception):
    """The response to a WebSocket handshake was not the expected one."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__(f"the response was {response.status_code} instead of a WebSocket")
        self.response = response


class _Frames:
    """A WebSocket without its transport."""

    def __init__(self, reader: ResponseReader, headers: Headers) -> None:
        self.headers = headers
        self.subprotocol = headers.get("sec-websocket-protocol")
        self.close_code: int | None = None
        """The code the server has closed it with; ``None`` before."""
        self.close_reason = ""
        self._reader = reader
        self._messages: list[str | bytes] = []
        self._has_said_close = False
        # Responses to control frames: they are sent when no wait is under way.
        self._replies: list[bytes] = []

    @property
    def _is_over(self) -> bool:
        return self.close_code is not None or self._reader.complete

    def _has_news(self) -> bool:
        """Whether there is a message, or will be none."""
        self._take_frames()
        return bool(self._messages) or self._is_over

    def _next(self) -> str | bytes:
        if self._messages:
            return self._messages.pop(0)
        raise ConnectionClosed(self.close_code or 1006, self.close_reason)

    def _close_frame(self, code: int, reason: str) -> bytes | None:
        """The frame that closes it; ``None`` if it is closed."""
        if self._is_over:
            return None
        self._has_said_close = True
        return frame(CLOSE, code.to_bytes(2, "big") + reason.encode())

    def _take_replies(self) -> bytes:
        replies, self._replies = b"".join(self._replies), []
        return replies

    def _take_frames(self) -> None:
        received = self._reader.body
        while (found := split_frame(received)) is not None:
            opcode, payload, size = found
            del received[:size]
            if opcode == TEXT:
                self._messages.append(payload.decode())
            elif opcode == BINARY:
                self._messages.append(payload)
            elif opcode == PING:
                self._replies.append(frame(PONG, payload))
            elif opcode == CLOSE:
                self.close_code = int.from_bytes(payload[:2], "big") if payload else 1005
                self.close_reason = payload[2:].decode()
                if not self._has_said_close:
                    self._has_said_close = True
                    self._replies.append(frame(CLOSE, payload))


def _message(message: str | bytes) -> bytes:
    return frame(TEXT, message.encode()) if isinstance(message, str) else frame(BINARY, message)


def _json_message(value: object) -> bytes:
    import msgspec

    return frame(TEXT, msgspec.json.encode(value))


def _from_json(message: str | bytes) -> Any:
    import msgspec

    return msgspec.json.decode(message)


class Socket(_Frames):
    """A WebSocket, seen from the client."""

    def __init__(self, client: Client, connection: Connection, headers: Headers) -> None:
        super().__init__(connection, headers)
        self._client = client
        self._connection = connection

    def send(self, message: str | bytes) -> None:
        """Send a message."""
        self._feed(_message(message))

    def send_json(self, value: object) -> None:
        """Send an object as JSON, in a text message."""
        self._feed(_json_message(value))

    def receive(self) -> str | bytes:
        """The next message.

        Raises:
            ConnectionClosed: There is none: it is closed.
        """
        self._wait(self._has_news)
        return self._next()

    def receive_json(self) -> Any:
        """The next message, decoded."""
        return _from_json(self.receive())

    def __iter__(self) -> Iterator[str | bytes]:
        """Messages, until it is closed."""
        try:
            while True:
                yield self.receive()
        except ConnectionClosed:
            return

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it, and wait for the server's side of that; messages that still come are kept."""
        closing = self._close_frame(code, reason)
        if closing is not None:
            self._feed(closing)
            self._wait(lambda: self._take_frames() or self._is_over)

    def _wait(self, done: Callable[[], object]) -> None:
        self._client._wait(lambda: bool(done()))  # pyright: ignore[reportPrivateUsage]
        if replies := self._take_replies():
            self._feed(replies)

    def _feed(self, data: bytes) -> None:
        self._client._feed(self._connection, data)  # pyright: ignore[reportPrivateUsage]


class AsyncSocket(_Frames):
    """A WebSocket, seen from an ``AsyncClient``."""

    def __init__(
        self,
        reader: ResponseReader,
        headers: Headers,
        feed: Callable[[bytes], None],
        read: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(reader, headers)
        self._feed = feed
        self._read = read

    async def send(self, message: str | bytes) -> None:
        """Send a message."""
        self._feed(_message(message))

    async def send_json(self, value: object) -> None:
        """Send an object as JSON, in a text message."""
        self._feed(_json_message(value))

    async def receive(self) -> str | bytes:
        """The next message.

        Raises:
            ConnectionClosed: There is none: it is closed.
        """
        while not self._has_news():
            await self._read_more()
        self._reply()
        return self._next()

    async def receive_json(self) -> Any:
        """The next message, decoded."""
        return _from_json(await self.receive())

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Messages, until it is closed."""
        try:
            while True:
                yield await self.receive()
        except ConnectionClosed:
            return

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it, and wait for the server's side of that; messages that still come are kept."""
        self._take_frames()
        closing = self._close_frame(code, reason)
        if closing is None:
            return
        self._feed(closing)
        while not self._is_over:
            await self._read_more()
            self._take_frames()

    async def _read_more(self) -> None:
        self._reply()
        await self._read()

    def _reply(self) -> None:
        if replies := self._take_replies():
            self._feed(replies)
