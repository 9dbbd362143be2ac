"""A test client for applications: no socket, no process.

    from citius.testing import Client

    with Client(app) as client:
        assert client.get("/").text == "Hello"

``AsyncClient`` is its sibling for ``async def`` tests. ``Transport`` is for httpx (to be installed beside
citius), and ``plugin`` has fixtures for pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.testing.asyncclient import AsyncClient, AsyncStreamedTestResponse
    from citius.testing.client import Client, StreamedTestResponse
    from citius.testing.cookies import Cookies
    from citius.testing.events import (
        AsyncEventSource,
        EventSource,
        EventStreamRefused,
        ReceivedEvent,
    )
    from citius.testing.requests import TestResponse, TooManyRedirects
    from citius.testing.transport import Transport
    from citius.testing.websocket import AsyncSocket, Socket, WebSocketRefused
    from citius.web.interop.inmemory.http1 import ProtocolError

__all__ = [
    "AsyncClient",
    "AsyncEventSource",
    "AsyncSocket",
    "AsyncStreamedTestResponse",
    "Client",
    "Cookies",
    "EventSource",
    "EventStreamRefused",
    "ProtocolError",
    "ReceivedEvent",
    "Socket",
    "StreamedTestResponse",
    "TestResponse",
    "TooManyRedirects",
    "Transport",
    "WebSocketRefused",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "asyncclient": ("AsyncClient", "AsyncStreamedTestResponse"),
        "client": ("Client", "ProtocolError", "StreamedTestResponse"),
        "cookies": ("Cookies",),
        "events": ("AsyncEventSource", "EventSource", "EventStreamRefused", "ReceivedEvent"),
        "requests": ("TestResponse", "TooManyRedirects"),
        "transport": ("Transport",),
        "websocket": ("AsyncSocket", "Socket", "WebSocketRefused"),
    },
)
