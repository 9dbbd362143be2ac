"""A test client that needs no socket: requests go into the reactor's memory, responses come out of it.

Everything between is the real thing: parser, limits, gateway, middleware, streams.

    with Client(app) as client:
        assert client.get("/").text == "Hello"

Synchronous on the outside; inside it runs an event loop of its own, so ``async def`` handlers, timers
and blocking handlers work. ``with`` runs the start-up and shutdown hooks; without it there are none.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from citius._core import Reactor
from citius.errors import ConfigError
from citius.process.turns import TurnScheduler, is_hosted
from citius.testing.bodies import encode_body
from citius.testing.events import EventReader, EventSource, EventStreamRefused
from citius.testing.requests import (
    Redirects,
    RequestMaker,
    TestResponse,
    with_query,
    with_subprotocols,
)
from citius.testing.websocket import Socket, WebSocketRefused
from citius.threads import Thread
from citius.unknown_options import caller, known_options
from citius.web.execution.thread_pool import BlockingPool
from citius.web.interop.inmemory.frames import HANDSHAKE
from citius.web.interop.inmemory.http1 import LAST_CHUNK, ProtocolError, ResponseReader, chunk
from citius.web.routing.static import is_there

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Coroutine,
        Generator,
        Iterable,
        Iterator,
        Mapping,
    )
    from types import TracebackType

    from citius._core import Request
    from citius.testing.bodies import Files, Pairs
    from citius.testing.cookies import Cookies
    from citius.testing.requests import EventOptions, Fields, RequestOptions
    from citius.web.application.app import App
    from citius.web.binding.headers import Headers

_ResultT = TypeVar("_ResultT")


class StreamedTestResponse(TestResponse):
    """A response whose content is still being received."""

    def __init__(
        self, status_code: int, headers: Headers, pieces: Callable[[], Iterator[bytes]]
    ) -> None:
        super().__init__(status_code, headers)
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        """The pieces as they come.

        Raises:
            ProtocolError: The response was truncated.
        """
        return self._pieces()

    def read(self) -> bytes:
        """All that is still to come."""
        return b"".join(self)


@known_options
class Client:
    """Requests to ``app``, one after the other.

    Args:
        app: The application; it can have several clients, one after the other or at once.
        raise_errors: Raise in the test what a handler raised unexpectedly, instead of showing
            its 500.
        limits: Overrides of the server's limits.
        headers: Fields of every request.
        timeout_s: Seconds until a request without a response raises ``TimeoutError``.
        interpret_compiled: Call functions with ``compiled=True`` as plain Python, without numba.
        follow_redirects: Ask again where a redirect points to, unless a request says otherwise.
        scheme: What the application takes for the scheme of the requests.
    """

    def __init__(
        self,
        app: App,
        *,
        raise_errors: bool = True,
        limits: Mapping[str, int] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        interpret_compiled: bool = False,
        follow_redirects: bool = False,
        scheme: Literal["http", "https"] = "http",
    ) -> None:
        if not callable(getattr(app, "freeze", None)):
            raise ConfigError(f"Client ({caller()}) takes an App of citius, got {app!r}")
        self._requests = RequestMaker(headers, scheme)
        self._app = app
        self._raise_errors = raise_errors
        self._follow_redirects = follow_redirects
        self._timeout_s = timeout_s
        self._error: BaseException | None = None
        self._pool: BlockingPool | None = None
        self._connections: dict[int, _Connection] = {}
        # Weak, for the gateway keeps it: a client that is dropped is to take its reactor's descriptors along.
        this = weakref.ref(self)

        def report(request: Request, error: BaseException) -> None:
            client = this()
            if client is not None:
                client._report(request, error)

        native = app.freeze(
            self._make_pool,
            report if raise_errors else None,
            interpret_compiled=interpret_compiled,
        )
        self._loop = asyncio.new_event_loop()
        self._host = TurnScheduler(self._loop, hosted=is_hosted("auto"))
        self._reactor = Reactor(
            native,
            limits=limits,
            loop=self._loop,
            mounts=[one for one in app.static_mounts if not one.optional or is_there(one)],
            host=self._host.host,
        )
        self._host.start(self._reactor, self._reactor.turn)
        self._started = False
        self._closed = False

    def __enter__(self) -> Client:
        try:
            self._run(self._app.start())
        except BaseException:
            self.close()  # without the shutdown hooks: what had begun has been undone
            raise
        self._started = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cut what is open and run the shutdown hooks, if the start-up hooks ran."""
        if self._closed:
            return
        self._closed = True
        self._host.stop()
        self._in_loop(self._reactor.close)
        if self._pool is not None:
            self._pool.close(self._timeout_s)
        try:
            if self._started:
                self._run(self._app.stop())
            self._run(self._end_tasks())
        finally:
            self._loop.close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._loop.is_running():
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.close()
        else:  # the collector came while another loop runs, beside which this one cannot
            thread = Thread(target=self.close)
            thread.start()
            thread.join()

    def run(self, awaitable: Awaitable[_ResultT]) -> _ResultT:
        """Await something on the loop of the application: a statement of its pool, for instance.

        Raises:
            TimeoutError: It took longer than ``timeout_s``.
        """

        async def wait() -> _ResultT:
            async with asyncio.timeout(self._timeout_s):
                return await awaitable

        return self._run(wait())

    # --- requests -------------------------------------------------------------------------------

    @property
    def cookies(self) -> Cookies:
        """Cookies that responses have set, and that tests set: ``client.cookies["name"] = "value"``."""
        return self._requests.cookies

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Pairs | None = None,
        params: Pairs | None = None,
        content: bytes | str | Iterable[bytes] | None = None,
        json: object = None,
        msgpack: object = None,
        form: Pairs | None = None,
        files: Files | None = None,
        auth: tuple[str, str] | None = None,
        follow_redirects: bool | None = None,
    ) -> TestResponse:
        """Send a request and wait for its response.

        Args:
            method: In capitals.
            path: The target, query included if there is one.
            headers: Fields; ``host`` and the length of the body are filled in.
            params: A query to append.
            content: The body; an iterable is sent in chunks, one turn each.
            json: A body to be encoded.
            msgpack: A body to be encoded.
            form: A body to be URL-encoded; with ``files``, its fields beside them.
            files: A multipart body: content, ``(name, content)`` or ``(name, content, media type)``.
            auth: User and password for basic authentication.
            follow_redirects: Ask again where a redirect points to; as the client was made, if ``None``.
        """
        body, content_type = encode_body(content, json, msgpack, form, files)
        fields = self._requests.fields(headers, content_type, auth)
        follows = self._follow_redirects if follow_redirects is None else follow_redirects
        asked = Redirects(method, with_query(path, params), fields, body, follows=follows)
        while True:
            with self.exchange(asked.method, asked.path, asked.fields, asked.body) as streamed:
                response = TestResponse(streamed.status_code, streamed.headers, streamed.read())
            if asked.is_last(response):
                return response

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        headers: Pairs | None = None,
        params: Pairs | None = None,
        content: bytes | str | Iterable[bytes] | None = None,
        json: object = None,
        msgpack: object = None,
        form: Pairs | None = None,
        files: Files | None = None,
        auth: tuple[str, str] | None = None,
    ) -> Generator[StreamedTestResponse]:
        """Send a request and read the response in pieces; leaving the block disconnects."""
        body, content_type = encode_body(content, json, msgpack, form, files)
        fields = self._requests.fields(headers, content_type, auth)
        with self.exchange(method, with_query(path, params), fields, body) as streamed:
            yield streamed

    @contextmanager
    def exchange(
        self,
        method: str,
        path: str,
        fields: Fields,
        body: bytes | Iterable[bytes] | None,
    ) -> Generator[StreamedTestResponse]:
        """``stream`` with the fields, in lower case, and the body as they are sent."""
        with self._opened(method, path, fields, body) as (connection, headers):
            assert connection.status is not None, "just waited for"
            yield StreamedTestResponse(connection.status, headers, lambda: self._pieces(connection))

    def get(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with GET."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with HEAD."""
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with POST."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with PUT."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with PATCH."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with DELETE."""
        return self.request("DELETE", path, **options)

    def options(self, path: str, **options: Unpack[RequestOptions]) -> TestResponse:
        """``request`` with OPTIONS."""
        return self.request("OPTIONS", path, **options)

    @contextmanager
    def websocket(
        self,
        path: str,
        *,
        headers: Pairs | None = None,
        subprotocols: Iterable[str] = (),
    ) -> Generator[Socket]:
        """Open a WebSocket; leaving the block closes it and waits for the application's close frame.

        Raises:
            WebSocketRefused: The application responded with something else.
        """
        own = self._requests.fields(headers, None, None)
        fields = with_subprotocols([*HANDSHAKE, *own], subprotocols)
        with self._opened("GET", path, fields, None) as (connection, response_headers):
            assert connection.status is not None, "just waited for"
            if connection.status != 101:
                content = b"".join(self._pieces(connection))
                raise WebSocketRefused(TestResponse(connection.status, response_headers, content))
            socket = Socket(self, connection, response_headers)
            try:
                yield socket
            finally:
                socket.close()

    @contextmanager
    def events(
        self,
        path: str,
        *,
        method: str = "GET",
        last_event_id: str | None = None,
        **options: Unpack[EventOptions],
    ) -> Generator[EventSource]:
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
        with self.stream(method, path, **options) as response:
            if not reader.accepts(response):
                raise EventStreamRefused(
                    TestResponse(response.status_code, response.headers, response.read())
                )
            yield EventSource(response, reader, iter(response))

    # --- inside ---------------------------------------------------------------------------------

    @contextmanager
    def _opened(
        self,
        method: str,
        path: str,
        fields: Fields,
        body: bytes | Iterable[bytes] | None,
    ) -> Generator[tuple[_Connection, Headers]]:
        """A connection on which the head of the response has come; leaving the block disconnects."""
        connection = _Connection(self._connect(), method)
        self._connections[connection.number] = connection
        try:
            self._send(connection, method, path, fields, body)
            yield connection, self._wait_for_head(connection, path, fields)
        finally:
            del self._connections[connection.number]
            self._in_loop(lambda: self._reactor.memory_eof(connection.number))

    def _connect(self) -> int:
        if self._requests.scheme == "http":
            return self._reactor.memory_open()
        return self._reactor.memory_open(None, self._requests.scheme)

    def _send(
        self,
        connection: _Connection,
        method: str,
        path: str,
        fields: Fields,
        body: bytes | Iterable[bytes] | None,
    ) -> None:
        self._feed(connection, self._requests.head(method, path, fields, body))
        if isinstance(body, bytes):
            self._feed(connection, body)
        elif body is not None:
            for piece in body:
                if piece:
                    self._feed(connection, chunk(piece))
                    self._run(asyncio.sleep(0))
            self._feed(connection, LAST_CHUNK)

    def _feed(self, connection: _Connection, data: bytes) -> None:
        self._in_loop(lambda: self._reactor.memory_feed(connection.number, data))

    def _in_loop(self, function: Callable[[], object]) -> None:
        """Call ``function`` where handlers find a running loop and no task but their own."""

        async def wait() -> None:
            self._loop.call_soon(function)
            await asyncio.sleep(0)

        self._run(wait())

    def _take(self) -> None:
        """Hand every connection what there is for its peer."""
        for connection in self._connections.values():
            data, closed = self._reactor.memory_take(connection.number)
            try:
                connection.receive(data, closed)
            except ProtocolError as error:
                self._error = self._error or error

    def _wait(self, done: Callable[[], bool]) -> None:
        """Turn until ``done``; raises what a handler raised."""

        async def wait() -> None:
            # Late responses reach the memory without the descriptor becoming readable, so this polls:
            # at once as long as something may be under way, then every half millisecond.
            async with asyncio.timeout(self._timeout_s):
                for round_index in itertools.count():
                    self._take()
                    if done() or self._error is not None:
                        return
                    await asyncio.sleep(0 if round_index < 20 else 0.0005)

        self._run(wait())
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _pieces(self, connection: _Connection) -> Iterator[bytes]:
        while True:
            self._wait(lambda: bool(connection.body) or connection.complete)
            piece = connection.take_body()
            if piece:
                yield piece
            elif connection.complete:
                return

    def _run(self, coroutine: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            is_free = True
        else:
            is_free = False
        if is_free:
            return self._loop.run_until_complete(coroutine)
        coroutine.close()
        raise RuntimeError(
            "citius.testing.Client is for `def` tests, and a loop is running here: use AsyncClient"
        )

    def _report(self, request: Request, error: BaseException) -> None:
        self._error = error

    def _make_pool(self) -> BlockingPool:
        self._pool = BlockingPool(threads_max=4, queue_max=64)
        return self._pool

    def _wait_for_head(self, connection: _Connection, path: str, fields: Fields) -> Headers:
        """The fields of the response, whose cookies are kept."""
        self._wait(lambda: connection.status is not None)
        return self._requests.received(connection.fields, path, fields)

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class _Connection(ResponseReader):
    """One request's connection, seen from the client."""

    def __init__(self, number: int, method: str) -> None:
        super().__init__(method)
        self.number = number
