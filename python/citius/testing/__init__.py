"""A test client for applications: no socket, no process.

    from citius.testing import Client

    with Client(app) as client:
        assert client.get("/").text == "Hello"

``Transport`` is for httpx (to be installed beside citius), and ``plugin`` has fixtures for pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.testing.client import (
        Client,
        StreamedTestResponse,
        TestResponse,
        TooManyRedirects,
    )
    from citius.testing.cookies import Cookies
    from citius.testing.transport import Transport
    from citius.testing.websocket import Socket, WebSocketRefused
    from citius.web.interop.http1 import ProtocolError

__all__ = [
    "Client",
    "Cookies",
    "ProtocolError",
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
        "client": (
            "Client",
            "ProtocolError",
            "StreamedTestResponse",
            "TestResponse",
            "TooManyRedirects",
        ),
        "cookies": ("Cookies",),
        "transport": ("Transport",),
        "websocket": ("Socket", "WebSocketRefused"),
    },
)
