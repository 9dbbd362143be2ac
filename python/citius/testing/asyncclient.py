"""The test client for ``async def`` tests: requests on the loop of the test, several at once.

    async with AsyncClient(app) as client:
        assert (await client.get("/")).text == "Hello"

Parser, limits, gateway, middleware and streams are those of ``citius serve``; ``client.py`` is its sibling
for ``def`` tests. Tests: ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, Unpack

from citius.settings.config import Config
from citius.testing.bodies import encode_body
from citius.testing.events import AsyncEventSource, EventReader, EventStreamRefused
from citius.testing.requests import (
    Redirects,
    RequestMaker,
    TestResponse,
    with_query,
    with_subprotocols,
)
from citius.testing.websocket import AsyncSocket, WebSocketRefused
from citius.unknown_options import known_options
from citius.web.interop.inmemory.exchange import Exchange
from citius.web.interop.inmemory.frames import HANDSHAKE
from citius.web.interop.inmemory.http1 import LAST_CHUNK, chunk
from citius.web.interop.inmemory.memory import MemoryServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
    from types import TracebackType
    from typing import TypeAlias

    from citius._core import Request
    from citius.testing.bodies import Files, Pairs
    from citius.testing.cookies import Cookies
    from citius.testing.requests import AsyncRequestOptions, EventOptions, Fields
    from citius.web.application.app import App
    from citius.web.binding.headers import Headers
    from citius.web.interop.inmemory.memory import MemoryConnection

    Pieces: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]


class AsyncStreamedTestResponse(TestResponse):
    """A response whose content is still being received."""

    def __init__(self, status_code: int, headers: Headers, pieces: AsyncIterator[bytes]) -> None:
        super().__init__(status_code, headers)
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces as they come.

        Raises:
            ProtocolError: The response was truncated.
        """
        return self._pieces

    async def read(self) -> bytes:
        """All that is still to come."""
        return b"".join([piece async for piece in self._pieces])


@known_options
class AsyncClient:
    """Requests to ``app`` from coroutines of one event loop, at once if they are.

    Args:
        app: The application; it can have several clients.
        raise_errors: Raise in the test what a handler raised unexpectedly, instead of showing its 500.
        limits: Overrides of the server's limits.
        headers: Fields of every request.
        timeout_s: Seconds until a wait for the application raises ``TimeoutError``.
        follow_redirects: Ask again where a redirect points to, unless a request says otherwise.
        scheme: What the application takes for the scheme of the requests.
        client: The address that requests come from.
    """

    def __init__(
        self,
        app: App,
        *,
        raise_errors: bool = True,
        limits: Mapping[str, int] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        follow_redirects: bool = False,
        scheme: Literal["http", "https"] = "http",
        client: tuple[str, int] | None = ("127.0.0.1", 123),
    ) -> None:
        self._app = app
        self._config = Config(limits=dict(limits or {}))
        self._requests = RequestMaker(headers, scheme)
        self._raise_errors = raise_errors
        self._timeout_s = timeout_s
        self._follow_redirects = follow_redirects
        self._client = client
        self._server: MemoryServer | None = None

    async def __aenter__(self) -> AsyncClient:
        await self._opened_server().start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cut what is open and run the shutdown hooks, if the start-up hooks ran."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    # --- requests -------------------------------------------------------------------------------

    @property
    def cookies(self) -> Cookies:
        """Cookies that responses have set, and that tests set: ``client.cookies["name"] = "value"``."""
        return self._requests.cookies

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: Pairs | None = None,
        params: Pairs | None = None,
        content: bytes | str | Pieces | None = None,
        json: object = None,
        msgpack: object = None,
        form: Pairs | None = None,
        files: Files | None = None,
        auth: tuple[str, str] | None = None,
        follow_redirects: bool | None = None,
    ) -> TestResponse:
        """Send a request and wait for its response; the arguments are those of ``Client.request``."""
        body, content_type = encode_body(content, json, msgpack, form, files)
        fields = self._requests.fields(headers, content_type, auth)
        follows = self._follow_redirects if follow_redirects is None else follow_redirects
        asked = Redirects(method, with_query(path, params), fields, body, follows=follows)
        while True:
            async with self._exchange(
                asked.method, asked.path, asked.fields, asked.body
            ) as streamed:
                content_bytes = await streamed.read()
            response = TestResponse(streamed.status_code, streamed.headers, content_bytes)
            if asked.is_last(response):
                return response

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        headers: Pairs | None = None,
        params: Pairs | None = None,
        content: bytes | str | Pieces | None = None,
        json: object = None,
        msgpack: object = None,
        form: Pairs | None = None,
        files: Files | None = None,
        auth: tuple[str, str] | None = None,
    ) -> AsyncGenerator[AsyncStreamedTestResponse]:
        """Send a request and read the response in pieces; leaving the block disconnects."""
        body, content_type = encode_body(content, json, msgpack, form, files)
        fields = self._requests.fields(headers, content_type, auth)
        async with self._exchange(method, with_query(path, params), fields, body) as streamed:
            yield streamed

    async def get(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with GET."""
        return await self.request("GET", path, **options)

    async def head(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with HEAD."""
        return await self.request("HEAD", path, **options)

    async def post(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with POST."""
        return await self.request("POST", path, **options)

    async def put(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with PUT."""
        return await self.request("PUT", path, **options)

    async def patch(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with PATCH."""
        return await self.request("PATCH", path, **options)

    async def delete(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with DELETE."""
        return await self.request("DELETE", path, **options)

    async def options(self, path: str, **options: Unpack[AsyncRequestOptions]) -> TestResponse:
        """``request`` with OPTIONS."""
        return await self.request("OPTIONS", path, **options)

    @asynccontextmanager
    async def events(
        self,
        path: str,
        *,
        method: str = "GET",
        last_event_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> AsyncGenerator[AsyncEventSource]:
        """Follow a stream of server-sent events; leaving the block disconnects.

        Args:
            path: The target, query included if there is one.
            method: In capitals.
            last_event_id: What a client that comes back sends.
            options: Those of ``stream``.

        Raises:
            EventStreamRefused: The response is something else.
        """
        reader = EventReader(last_event_id)
        options["headers"] = reader.request_fields(options.get("headers"))
        async with self.stream(method, path, **options) as response:
            if not reader.accepts(response):
                content = await response.read()
                raise EventStreamRefused(
                    TestResponse(response.status_code, response.headers, content)
                )
            yield AsyncEventSource(response, reader, aiter(response))

    @asynccontextmanager
    async def websocket(
        self,
        path: str,
        *,
        headers: Pairs | None = None,
        subprotocols: Iterable[str] = (),
    ) -> AsyncGenerator[AsyncSocket]:
        """Open a WebSocket; leaving the block closes it and waits for the application's close frame.

        Raises:
            WebSocketRefused: The application responded with something else.
        """
        own = self._requests.fields(headers, None, None)
        fields = with_subprotocols([*HANDSHAKE, *own], subprotocols)
        async with self._opened("GET", path, fields, None) as exchange:
            status = await exchange.read_head()
            response_headers = self._requests.received(exchange.reader.fields, path, fields)
            if status != 101:
                content = b"".join([piece async for piece in exchange.pieces()])
                raise WebSocketRefused(TestResponse(status, response_headers, content))
            socket = AsyncSocket(
                exchange.reader, response_headers, exchange.connection.feed, exchange.receive
            )
            try:
                yield socket
            finally:
                await socket.close()

    # --- inside ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, fields: Fields, body: bytes | Pieces | None
    ) -> AsyncGenerator[AsyncStreamedTestResponse]:
        async with self._opened(method, path, fields, body) as exchange:
            status = await exchange.read_head()
            headers = self._requests.received(exchange.reader.fields, path, fields)
            yield AsyncStreamedTestResponse(status, headers, exchange.pieces())

    @asynccontextmanager
    async def _opened(
        self, method: str, path: str, fields: Fields, body: bytes | Pieces | None
    ) -> AsyncGenerator[Exchange]:
        """A connection on which the request is being sent; leaving the block disconnects."""
        server = self._opened_server()
        connection = server.connect(self._client, self._requests.scheme)
        connection.feed(self._requests.head(method, path, fields, body))
        exchange = Exchange(connection, method, self._timeout_s)
        # Beside the response, because a handler may respond before it has read all.
        sending = None
        if isinstance(body, bytes):
            connection.feed(body)
        elif body is not None:
            sending = _send_body(connection, body)
        try:
            yield exchange
        finally:
            connection.close()
            if sending is not None:
                await _end(sending)

    def _opened_server(self) -> MemoryServer:
        if self._server is None:
            report = self._note if self._raise_errors else None
            self._server = MemoryServer(self._app, self._config, report)
        return self._server

    def _note(self, request: Request, error: BaseException) -> None:
        connection = None if self._server is None else self._server.connection_of(request)
        if connection is not None:
            connection.error = error


def _send_body(connection: MemoryConnection, body: Pieces) -> asyncio.Task[None]:
    """Begin to send a body; if its iterator raises, the exchange ends."""

    def sent(sending: asyncio.Task[None]) -> None:
        if not sending.cancelled() and sending.exception() is not None:
            connection.close()

    sending = asyncio.get_running_loop().create_task(_send_pieces(connection, body))
    sending.add_done_callback(sent)
    return sending


async def _send_pieces(connection: MemoryConnection, body: Pieces) -> None:
    """Send a body in chunks, as fast as the application reads it."""
    if isinstance(body, AsyncIterable):
        async for piece in body:
            await connection.send(chunk(piece))
    else:
        for piece in body:
            await connection.send(chunk(piece))
    connection.feed(LAST_CHUNK)


async def _end(sending: asyncio.Task[None]) -> None:
    """End the sending of a body; what its iterator raised is raised here."""
    if not sending.done():
        sending.cancel()
    try:
        await sending
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
