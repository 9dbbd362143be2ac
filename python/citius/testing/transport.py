"""Transports of httpx that call an application without a socket: suites written for httpx run unchanged.

    with httpx.Client(transport=Transport(app), base_url="http://testserver") as client:
        assert client.get("/").text == "Hello"

Both ``httpx.Client`` and ``httpx.AsyncClient`` take it. ``with`` runs the start-up and shutdown hooks;
without it there are none. Parser, limits, gateway and streams are those of ``citius serve``.
Tests: ``tests/interop/test_transport.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from citius.settings.config import Config
from citius.testing.client import Client
from citius.unknown_options import known_options
from citius.web.interop.inmemory.exchange import Exchange
from citius.web.interop.inmemory.http1 import LAST_CHUNK, chunk, request_head
from citius.web.interop.inmemory.memory import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from citius._core import Request
    from citius.testing.client import StreamedTestResponse
    from citius.web.application.app import App
    from citius.web.interop.inmemory.memory import MemoryConnection

Fields = list[tuple[bytes, bytes]]


@known_options
class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Calls a native application for ``httpx.Client`` and ``httpx.AsyncClient``.

    Args:
        app: The application.
        raise_errors: Raise in the test what a handler raised unexpectedly, instead of showing its 500.
        client: The address that requests come from, for ``httpx.AsyncClient``.
    """

    def __init__(
        self,
        app: App,
        *,
        raise_errors: bool = True,
        client: tuple[str, int] | None = ("127.0.0.1", 123),
    ) -> None:
        self._app = app
        self._raise_errors = raise_errors
        self._client = client
        self._sync: dict[str, Client] = {}
        self._server: MemoryServer | None = None

    # --- httpx.Client ---------------------------------------------------------------------------

    def __enter__(self) -> Transport:
        self._client_of("http").__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Run the shutdown hooks, if the start-up hooks ran."""
        for client in self._sync.values():
            client.close()
        self._sync.clear()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, whose body is still to come."""
        client = self._client_of(request.url.scheme)
        fields = [
            (k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in request.headers.raw
        ]
        body: Any = request.stream if _is_chunked(request) else request.read()
        target = request.url.raw_path.decode("ascii")
        manager = client.exchange(request.method, target, fields, body or None)
        streamed = manager.__enter__()
        return httpx.Response(
            streamed.status_code,
            headers=streamed.headers.multi_items(),
            stream=_SyncStream(streamed, manager),
        )

    def _client_of(self, scheme: str) -> Client:
        made = self._sync.get(scheme)
        if made is None:
            is_tls = scheme == "https"
            made = self._sync[scheme] = Client(
                self._app, raise_errors=self._raise_errors, scheme="https" if is_tls else "http"
            )
        return made

    # --- httpx.AsyncClient ----------------------------------------------------------------------

    async def __aenter__(self) -> Transport:
        self._server = self._new_server()
        await self._server.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Run the shutdown hooks, if the start-up hooks ran."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, whose body is still to come."""
        if self._server is None:
            self._server = self._new_server()
        connection = self._server.connect(self._client, request.url.scheme)
        exchange = Exchange(connection, request.method)
        try:
            await _send(connection, request)
            status = await exchange.read_head()
        except BaseException:
            connection.close()
            raise
        return httpx.Response(status, headers=exchange.reader.fields, stream=_AsyncStream(exchange))

    def _new_server(self) -> MemoryServer:
        return MemoryServer(self._app, Config(), self._note if self._raise_errors else None)

    def _note(self, request: Request, error: BaseException) -> None:
        connection = None if self._server is None else self._server.connection_of(request)
        if connection is not None:
            connection.error = error


def _is_chunked(request: httpx.Request) -> bool:
    return request.headers.get("transfer-encoding", "").lower() == "chunked"


async def _send(connection: MemoryConnection, request: httpx.Request) -> None:
    """Send head and body; a handler that streams gets the pieces as they come."""
    fields: Fields = [(name.lower(), value) for name, value in request.headers.raw]
    connection.feed(request_head(request.method, request.url.raw_path, fields))
    is_chunked = _is_chunked(request)
    async for piece in _async_pieces(request):
        # Not waited for: a handler may respond without reading it.
        connection.feed(chunk(piece) if is_chunked else piece)
    if is_chunked:
        connection.feed(LAST_CHUNK)


async def _async_pieces(request: httpx.Request) -> AsyncIterator[bytes]:
    stream = request.stream
    if isinstance(stream, httpx.AsyncByteStream):
        async for piece in stream:
            yield piece
    else:
        yield request.read()


class _SyncStream(httpx.SyncByteStream):
    """The body of a response of the test client."""

    def __init__(
        self, streamed: StreamedTestResponse, manager: AbstractContextManager[object]
    ) -> None:
        self._streamed = streamed
        self._manager: AbstractContextManager[object] | None = manager

    def __iter__(self) -> Iterator[bytes]:
        yield from self._streamed

    def close(self) -> None:
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.__exit__(None, None, None)


class _AsyncStream(httpx.AsyncByteStream):
    """The body of a response over a connection in memory."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.pieces()

    async def aclose(self) -> None:
        self._exchange.connection.close()
