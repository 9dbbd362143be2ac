"""WebSockets of the test client (client.py): frames as a client writes and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.errors import ConnectionClosed
from citius.web.interop.frames import BINARY, CLOSE, PING, PONG, TEXT, frame, split_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.testing.client import Client, TestResponse
    from citius.testing.client import _Connection as Connection  # pyright: ignore[reportPrivateUsage]
    from citius.web.headers import Headers


class WebSocketRefused(Exception):
    """The response to a WebSocket handshake was not the expected one."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__(f"the response was {response.status_code} instead of a WebSocket")
        self.response = response


class Socket:
    """A WebSocket, seen from the client."""

    def __init__(self, client: Client, connection: Connection, headers: Headers) -> None:
        self.headers = headers
        self.subprotocol = headers.get("sec-websocket-protocol")
        self.close_code: int | None = None
        """The code the server has closed it with; ``None`` before."""
        self.close_reason = ""
        self._client = client
        self._connection = connection
        self._messages: list[str | bytes] = []
        self._has_said_close = False
        # Responses to control frames: they are sent when no wait is under way.
        self._replies: list[tuple[int, bytes]] = []

    def send(self, message: str | bytes) -> None:
        """Send a message."""
        if isinstance(message, str):
            self._frame(TEXT, message.encode())
        else:
            self._frame(BINARY, message)

    def send_json(self, value: object) -> None:
        """Send an object as JSON, in a text message."""
        import msgspec

        self._frame(TEXT, msgspec.json.encode(value))

    def receive(self) -> str | bytes:
        """The next message.

        Raises:
            ConnectionClosed: There is none: it is closed.
        """
        self._wait(self._has_news)
        if self._messages:
            return self._messages.pop(0)
        raise ConnectionClosed(self.close_code or 1006, self.close_reason)

    def receive_json(self) -> Any:
        """The next message, decoded."""
        import msgspec

        return msgspec.json.decode(self.receive())

    def __iter__(self) -> Iterator[str | bytes]:
        """Messages, until it is closed."""
        try:
            while True:
                yield self.receive()
        except ConnectionClosed:
            return

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it, and wait for the server's side of that; messages that still come are kept."""
        if self.close_code is None and not self._connection.complete:
            self._frame(CLOSE, code.to_bytes(2, "big") + reason.encode())
            self._has_said_close = True
            self._wait(lambda: self._take_frames() or self._is_over())

    def _has_news(self) -> bool:
        self._take_frames()
        return bool(self._messages) or self._is_over()

    def _is_over(self) -> bool:
        return self.close_code is not None or self._connection.complete

    def _wait(self, done: Callable[[], object]) -> None:
        self._client._wait(lambda: bool(done()))  # pyright: ignore[reportPrivateUsage]
        replies, self._replies = self._replies, []
        for opcode, payload in replies:
            self._frame(opcode, payload)

    def _frame(self, opcode: int, payload: bytes) -> None:
        self._client._feed(self._connection, frame(opcode, payload))  # pyright: ignore[reportPrivateUsage]

    def _take_frames(self) -> None:
        received = self._connection.body
        while (found := split_frame(received)) is not None:
            opcode, payload, size = found
            del received[:size]
            if opcode == TEXT:
                self._messages.append(payload.decode())
            elif opcode == BINARY:
                self._messages.append(payload)
            elif opcode == PING:
                self._replies.append((PONG, payload))
            elif opcode == CLOSE:
                self.close_code = int.from_bytes(payload[:2], "big") if payload else 1005
                self.close_reason = payload[2:].decode()
                if not self._has_said_close:
                    self._has_said_close = True
                    self._replies.append((CLOSE, payload))
