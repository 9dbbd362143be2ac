"""A test client for applications: no socket, no process.

from citius.testing import Client

with Client(app) as client:
assert client.get("/").text == "Hello"
"""

from __future__ import annotations

from citius.testing.client import Client, StreamedTestResponse, TestResponse
from citius.testing.websocket import Socket, WebSocketRefused
from citius.web.interop.http1 import ProtocolError

__all__ = [
    "Client",
    "ProtocolError",
    "Socket",
    "StreamedTestResponse",
    "TestResponse",
    "WebSocketRefused",
]
