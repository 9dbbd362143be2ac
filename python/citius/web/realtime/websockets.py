"""WebSockets of native applications: how a handler is bound, and how a ``def`` talks to one.

``async def`` handlers get the extension's ``WebSocket``. A ``def`` handler runs in a thread of the pool,
with ``serial=True`` and under gevent in a greenlet, and gets a :class:`SerialWebSocket`, whose methods wait:

    @app.websocket("/echo")
    def echo(ws: SerialWebSocket) -> None:
        for message in ws:
            ws.send(message)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

from citius._core import Room, WebSocket
from citius.errors import ConnectionClosed
from citius.serial import is_serial, park, plain
from citius.web.binding.bind import Bound, Wrapper, is_direct
from citius.web.binding.other_names import serial_hint
from citius.web.binding.signature import (
    path_parameters,
    socket_handler_parameters,
    websocket_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from citius._core import Request
    from citius.web.binding.headers import Headers, QueryParams
    from citius.web.binding.signature import Kind, Parameter
    from citius.web.routing.endpoint import Endpoint

    _Reader = Callable[[Callable[..., Any], str], tuple[Parameter, ...]]

__all__ = ["Room", "SerialWebSocket", "WebSocket"]


class SerialWebSocket:
    """A WebSocket whose methods wait in the thread or the greenlet that calls them."""

    __slots__ = ("_socket",)

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    @property
    def socket(self) -> WebSocket:
        """The WebSocket for ``async`` code, and for rooms."""
        return self._socket

    def accept(
        self,
        subprotocol: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> None:
        """Grant the client its WebSocket. Sending and receiving do so too."""
        self._socket.accept(subprotocol, headers)

    def send(self, message: str | bytes) -> None:
        """Send a message, text or binary; waits while too much of what was sent is under way.

        Raises:
            ConnectionClosed: It is over.
        """
        if is_serial():
            park(self._socket.send(message))
        else:
            self._wait_for(self._socket._send(message))  # pyright: ignore[reportPrivateUsage]

    def send_json(self, value: object) -> None:
        """Send an object as JSON, in a text message."""
        sent = self._socket.send_json(value)
        if is_serial():
            park(sent)
        else:
            self._wait_for(not self._socket._is_full())  # pyright: ignore[reportPrivateUsage]

    def receive(self) -> str | bytes:
        """The next message.

        Raises:
            ConnectionClosed: It is over.
        """
        from citius.waiting import wait_in_thread

        while True:
            message = self._socket._take()  # pyright: ignore[reportPrivateUsage]
            if message is not None:
                return message
            if is_serial():
                return park(self._socket.receive())
            wait_in_thread(self._socket._on_message)  # pyright: ignore[reportPrivateUsage]

    def __iter__(self) -> Iterator[str | bytes]:
        """Messages, until it is over."""
        try:
            while True:
                yield self.receive()
        except ConnectionClosed:
            return

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close it; nothing can be sent or received any more."""
        self._socket.close(code, reason)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = serial_hint(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f"; {hint}" if hint else "")
            )

    def _wait_for(self, has_room: bool) -> None:
        from citius.waiting import wait_in_thread

        if not has_room:
            wait_in_thread(self._socket._on_writable)  # pyright: ignore[reportPrivateUsage]

    @property
    def request(self) -> Request:
        """The request that it was made of."""
        return self._socket.request

    @property
    def path(self) -> str:
        """The path of the request."""
        return self._socket.path

    @property
    def path_params(self) -> dict[str, Any]:
        """Parameters in the path."""
        return self._socket.path_params

    @property
    def query(self) -> QueryParams:
        """Parameters in the query."""
        return self._socket.query

    @property
    def headers(self) -> Headers:
        """Fields of the request."""
        return self._socket.headers

    @property
    def client(self) -> tuple[str, int] | None:
        """Address and port of the client."""
        return self._socket.client

    @property
    def state(self) -> Any:
        """A namespace for the handler."""
        return self._socket.state

    @property
    def subprotocols(self) -> list[str]:
        """What the client has offered, best first."""
        return self._socket.subprotocols

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._socket.is_open


def takes_serial(kind: Kind, handler: Callable[..., Any]) -> bool:
    """Whether a handler gets a socket whose methods wait: in a thread, or in a greenlet."""
    return kind == "blocking" or plain(handler) is not None


def parameter_readers(
    protocol: Literal["websocket", "webtransport"], *, serial: bool
) -> tuple[_Reader, _Reader]:
    """What reads the parameters of handlers, and of their dependencies."""
    from citius.web.realtime.webtransport import WebTransportSession

    socket: type = SerialWebSocket if serial else WebSocket
    if protocol == "webtransport":
        socket = WebTransportSession
    every = (WebSocket, SerialWebSocket, WebTransportSession)
    return (
        functools.partial(socket_handler_parameters, socket=socket, sockets=every),
        functools.partial(websocket_parameters, socket=socket, sockets=every),
    )


def bind_websocket(endpoint: Endpoint) -> Bound:
    """A handler as the extension calls it: with the socket, and parameters of the path."""
    handler, parameters = endpoint.handler, endpoint.parameters
    serial = endpoint.protocol == "websocket" and takes_serial(endpoint.kind, handler)
    in_path = path_parameters(endpoint.pattern)
    if not endpoint.dependencies and all(
        is_direct(one, in_path) and one.source != "request" for one in parameters
    ):
        args = [None if one.source == "socket" else one.wire_name for one in parameters]
        return Bound(_serial(handler, args) if serial else handler, tuple(args))
    opening = ["socket = SerialWebSocket(socket)"] if serial else []
    opening.append("request = socket.request")
    names = {"SerialWebSocket": SerialWebSocket}
    return Wrapper(in_path, first="socket", opening=opening, names=names).bind(endpoint)


def _serial(handler: Callable[..., Any], args: list[str | None]) -> Callable[..., Any]:
    at = args.index(None)

    @functools.wraps(handler)
    def call(*given: Any) -> Any:
        values = list(given)
        values[at] = SerialWebSocket(values[at])
        return handler(*values)

    return call
