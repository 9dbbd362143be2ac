"""``App.asgi()``: a native application as an ASGI 3 application, for other servers and for ASGI middleware.

Requests go through connections in memory (memory.py), so that the parser, the limits, the routes and the
encoders are those of ``citius serve``. Framing is the server's: fields about connections are not passed on
in either direction. Tests: ``tests/interop/test_asgi.py``, and ``tests/frameworks/test_servers.py`` beside
other servers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from citius.observability import logging
from citius.settings.config import Config
from citius.web.binding.headers import OF_CONNECTION
from citius.web.interop.inmemory.http1 import (
    LAST_CHUNK,
    ProtocolError,
    ResponseReader,
    chunk,
    request_head,
)
from citius.web.interop.inmemory.memory import MemoryServer
from citius.web.interop.scopes import encoded, target_of
from citius.web.interop.websockets import serve_websocket

if TYPE_CHECKING:
    from citius._core import Request
    from citius.web.application.app import App
    from citius.web.interop.inmemory.memory import MemoryConnection
    from citius.web.interop.scopes import Receive, Scope, Send

# Fields of one connection (RFC 9110 §7.6.1): the server in front has its own.
_OF_REQUESTS = frozenset({b"upgrade", b"keep-alive", b"proxy-connection", b"http2-settings"})


class ASGIAdapter:
    """An ASGI 3 application that calls a native one; ``App.asgi`` makes it."""

    def __init__(self, app: App, config: Config | None = None) -> None:
        self._app = app
        self._config = config or Config()
        self._servers: list[MemoryServer] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection of another server.

        Raises:
            ValueError: The scope is of another type.
        """
        kind = scope["type"]
        if kind == "http":
            await self._serve_request(scope, receive, send)
        elif kind == "websocket":
            target, root_path = target_of(scope)
            scheme = "https" if scope.get("scheme") == "wss" else "http"
            connection = self._connect(scope, scheme, root_path)
            await serve_websocket(connection, target, scope, receive, send)
        elif kind == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            raise ValueError(f"expected a scope of type http, websocket or lifespan, got {kind!r}")

    def scope_of(self, request: Request) -> Scope | None:
        """The scope that a request has come with."""
        for server in self._servers:
            connection = server.connection_of(request)
            if connection is not None:
                return connection.scope
        return None

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        server = None
        try:
            server = MemoryServer(self._app, self._config)
            await server.start()
            server.open()
        except Exception as error:
            logging.log_exception("the application's start-up failed", error)
            await send(
                {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
            )
            return
        self._servers.insert(0, server)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await server.close()
        finally:
            self._servers.remove(server)
        await send({"type": "lifespan.shutdown.complete"})

    def _server(self) -> MemoryServer:
        """The server of the running loop; one without start-up hooks where there was no lifespan."""
        loop = asyncio.get_running_loop()
        for server in self._servers:
            if server.loop is loop:
                return server
        for server in list(self._servers):
            if server.loop.is_closed():
                server.abandon()
                self._servers.remove(server)
        server = MemoryServer(self._app, self._config)
        self._servers.append(server)
        return server

    def _connect(self, scope: Scope, scheme: str, root_path: str) -> MemoryConnection:
        client = scope.get("client")
        address = (str(client[0]), int(client[1] or 0)) if client else None
        connection = self._server().connect(address, scheme, root_path)
        connection.scope = scope
        return connection

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        fields: list[tuple[bytes, bytes]] = [
            (name, value) for name, value in scope["headers"] if name not in _OF_REQUESTS
        ]
        body = _BodyFraming(scope["http_version"], fields)
        target, root_path = target_of(scope)
        try:
            head = request_head(method, target, body.fields)
        except ValueError as error:
            await _refuse(send, str(error))
            return
        connection = self._connect(scope, scope.get("scheme", "http"), root_path)
        listener = _Listener(connection, receive, body)
        try:
            connection.feed(head)
            listener.start()
            await _respond(connection, method, scope, send, listener)
        finally:
            listener.stop()
            connection.close()


class _BodyFraming:
    """How a request's body is framed on the way to the reactor."""

    def __init__(self, http_version: str, fields: list[tuple[bytes, bytes]]) -> None:
        names = {name for name, _ in fields}
        has_length, is_coded = b"content-length" in names, b"transfer-encoding" in names
        # Only HTTP/1 tells by its fields whether there is a body.
        is_unknown = not (has_length or is_coded or http_version.startswith("1"))
        self.is_chunked = is_coded or is_unknown
        self.has_body = has_length or self.is_chunked
        if self.is_chunked:
            # The server in front has taken all codings off.
            fields = [field for field in fields if field[0] != b"transfer-encoding"]
            fields.append((b"transfer-encoding", b"chunked"))
        self.fields = fields


class _Listener:
    """What the client does while its request is served: it sends a body, and it may leave."""

    def __init__(self, connection: MemoryConnection, receive: Receive, body: _BodyFraming) -> None:
        self.client_has_left = False
        self._connection = connection
        self._receive = receive
        self._body = body
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """Listen; without a body, only if the response does not come at once."""
        if self._body.has_body:
            self._begin()
        else:
            asyncio.get_running_loop().call_soon(self._begin)

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if not self._stopped and not self._connection.is_complete:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        connection, is_chunked = self._connection, self._body.is_chunked
        goes_on = self._body.has_body
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.client_has_left = True
                connection.close()
                return
            if goes_on:
                data: bytes = message.get("body", b"")
                goes_on = message.get("more_body", False)
                if is_chunked:
                    data = chunk(data) + (b"" if goes_on else LAST_CHUNK)
                await connection.send(data)


async def _respond(
    connection: MemoryConnection, method: str, scope: Scope, send: Send, listener: _Listener
) -> None:
    """Pass the response on.

    Raises:
        ProtocolError: It was cut off, and the client must be able to tell.
    """
    reader = ResponseReader(method)
    has_begun = sends_trailers = False
    while not reader.complete:
        data = await connection.receive()
        try:
            reader.receive(data, not data)
        except ProtocolError:
            if listener.client_has_left:
                return
            raise
        if reader.complete:
            connection.is_complete = True
        if reader.status is None:
            continue
        if not has_begun:
            has_begun = True
            start = _start_of(reader)
            offered: dict[str, Any] = scope.get("extensions") or {}
            if "http.response.trailers" in offered and "trailer" in dict(reader.fields):
                sends_trailers = start["trailers"] = True
            await send(start)
        piece = reader.take_body()
        if piece or reader.complete:
            await send(
                {"type": "http.response.body", "body": piece, "more_body": not reader.complete}
            )
    if sends_trailers:
        await send(
            {
                "type": "http.response.trailers",
                "headers": encoded(reader.trailers),
                "more_trailers": False,
            }
        )


def _start_of(reader: ResponseReader) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": reader.status,
        "headers": encoded(reader.fields, OF_CONNECTION),
    }


async def _refuse(send: Send, why: str) -> None:
    """The response to a request that would not be read as what it is."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode("utf-8", "replace")})
