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
from typing import TYPE_CHECKING, Any, TypeVar, overload

from citius._core import Reactor
from citius.testing.websocket import Socket, WebSocketRefused
from citius.web.headers import Headers
from citius.web.interop.http1 import ProtocolError, ResponseReader
from citius.web.pool import BlockingPool

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from types import TracebackType

    from citius._core import Request
    from citius.web.app import App

_T = TypeVar("_T")


class TestResponse:
    """The response to a request of the test client."""

    __test__ = False  # for pytest, which takes a class of such a name for tests

    def __init__(self, status_code: int, headers: Headers, content: bytes = b"") -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.content.decode()

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, type: type[_T]) -> _T: ...
    def json(self, type: Any = None) -> Any:
        """The body as JSON; of that type, if one is given."""
        import msgspec

        return msgspec.json.decode(self.content, type=Any if type is None else type)

    @overload
    def msgpack(self) -> Any: ...
    @overload
    def msgpack(self, type: type[_T]) -> _T: ...
    def msgpack(self, type: Any = None) -> Any:
        """The body as MessagePack; of that type, if one is given."""
        import msgspec

        return msgspec.msgpack.decode(self.content, type=Any if type is None else type)

    def __repr__(self) -> str:
        return f"<TestResponse {self.status_code} {len(self.content)} bytes>"


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
    ) -> None:
        self.cookies: dict[str, str] = {}
        """Cookies that responses have set; sent with every request."""
        self._app = app
        self._raise_errors = raise_errors
        self._headers = dict(headers or {})
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
        self._reactor = Reactor(native, limits=limits, loop=self._loop, mounts=app.static_mounts)
        self._loop.add_reader(self._reactor.fileno(), self._reactor.turn)
        self._started = False
        self._closed = False

    def __enter__(self) -> Client:
        self._started = True
        self._run(self._app.start())
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
        self._loop.remove_reader(self._reactor.fileno())
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
        if not getattr(self, "_closed", True) and not self._loop.is_running():
            self.close()

    # --- requests -------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        params: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        content: bytes | str | Iterable[bytes] | None = None,
        json: object = None,
        msgpack: object = None,
        form: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
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
            form: A body to be URL-encoded.
        """
        with self.stream(
            method, path, headers=headers, params=params, content=content, json=json,
            msgpack=msgpack, form=form,
        ) as streamed:  # fmt: skip
            return TestResponse(streamed.status_code, streamed.headers, streamed.read())

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        params: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        content: bytes | str | Iterable[bytes] | None = None,
        json: object = None,
        msgpack: object = None,
        form: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> Generator[StreamedTestResponse]:
        """Send a request and read the response in pieces; leaving the block disconnects."""
        body, content_type = _encode_body(content, json, msgpack, form)
        fields = dict(self._headers)
        fields.update({k.lower(): v for k, v in _pairs(headers)})
        if content_type is not None:
            fields.setdefault("content-type", content_type)
        if self.cookies:
            fields.setdefault("cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items()))
        if params is not None:
            path += ("&" if "?" in path else "?") + _urlencode(params)
        connection = _Connection(self._reactor.memory_open(), method)
        self._connections[connection.number] = connection
        try:
            self._send(connection, method, path, fields, body)
            self._wait(lambda: connection.status is not None)
            assert connection.status is not None, "just waited for"
            response_headers = Headers(connection.fields)
            self._keep_cookies(response_headers)
            yield StreamedTestResponse(
                connection.status, response_headers, lambda: self._pieces(connection)
            )
        finally:
            del self._connections[connection.number]
            self._in_loop(lambda: self._reactor.memory_eof(connection.number))

    def get(self, path: str, **options: Any) -> TestResponse:
        """``request`` with GET."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Any) -> TestResponse:
        """``request`` with HEAD."""
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Any) -> TestResponse:
        """``request`` with POST."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> TestResponse:
        """``request`` with PUT."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> TestResponse:
        """``request`` with PATCH."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> TestResponse:
        """``request`` with DELETE."""
        return self.request("DELETE", path, **options)

    def options(self, path: str, **options: Any) -> TestResponse:
        """``request`` with OPTIONS."""
        return self.request("OPTIONS", path, **options)

    @contextmanager
    def websocket(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        subprotocols: Iterable[str] = (),
    ) -> Generator[Socket]:
        """Open a WebSocket; leaving the block closes it and waits for the application's close frame.

        Raises:
            WebSocketRefused: The application responded with something else.
        """
        fields = {
            "connection": "upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            **self._headers,
            **{k.lower(): v for k, v in _pairs(headers)},
        }
        if offered := ", ".join(subprotocols):
            fields["sec-websocket-protocol"] = offered
        if self.cookies:
            fields.setdefault("cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items()))
        connection = _Connection(self._reactor.memory_open(), "GET")
        self._connections[connection.number] = connection
        try:
            self._send(connection, "GET", path, fields, None)
            self._wait(lambda: connection.status is not None)
            assert connection.status is not None, "just waited for"
            response_headers = Headers(connection.fields)
            self._keep_cookies(response_headers)
            if connection.status != 101:
                content = b"".join(self._pieces(connection))
                raise WebSocketRefused(TestResponse(connection.status, response_headers, content))
            socket = Socket(self, connection, response_headers)
            try:
                yield socket
            finally:
                socket.close()
        finally:
            del self._connections[connection.number]
            self._in_loop(lambda: self._reactor.memory_eof(connection.number))

    # --- inside ---------------------------------------------------------------------------------

    def _send(
        self,
        connection: _Connection,
        method: str,
        path: str,
        fields: dict[str, str],
        body: bytes | Iterable[bytes] | None,
    ) -> None:
        fields.setdefault("host", "testserver")
        if isinstance(body, bytes):
            fields.setdefault("content-length", str(len(body)))
        elif body is not None:
            fields.setdefault("transfer-encoding", "chunked")
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items()), "", ""]
        self._feed(connection, "\r\n".join(lines).encode("latin-1"))
        if isinstance(body, bytes):
            self._feed(connection, body)
        elif body is not None:
            for piece in body:
                if piece:
                    self._feed(connection, b"%x\r\n%b\r\n" % (len(piece), piece))
                    self._run(asyncio.sleep(0))
            self._feed(connection, b"0\r\n\r\n")

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
            piece = bytes(connection.body)
            connection.body.clear()
            if piece:
                yield piece
            elif connection.complete:
                return

    def _run(self, coroutine: Any) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._loop.run_until_complete(coroutine)
        else:
            coroutine.close()
            raise RuntimeError("citius.testing.Client is for `def` tests: a loop is running here")

    def _report(self, request: Request, error: BaseException) -> None:
        self._error = error

    def _make_pool(self) -> BlockingPool:
        self._pool = BlockingPool(threads_max=4, queue_max=64)
        return self._pool

    def _keep_cookies(self, headers: Headers) -> None:
        for line in headers.getlist("set-cookie"):
            pair, _, attributes = line.partition(";")
            name, _, value = pair.partition("=")
            if "max-age=0" in attributes.lower().replace(" ", ""):
                self.cookies.pop(name.strip(), None)
            else:
                self.cookies[name.strip()] = value.strip()

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


def _encode_body(
    content: bytes | str | Iterable[bytes] | None, json: object, msgpack: object, form: Any
) -> tuple[bytes | Iterable[bytes] | None, str | None]:
    """The body and its media type."""
    if sum(given is not None for given in (content, json, msgpack, form)) > 1:
        raise TypeError("a request has one body: give one of content, json, msgpack, form")
    if json is not None:
        from citius.web.codecs import encode_json

        return encode_json(json), "application/json"
    if msgpack is not None:
        from citius.web.codecs import encode_msgpack

        return encode_msgpack(msgpack), "application/msgpack"
    if form is not None:
        return _urlencode(form).encode(), "application/x-www-form-urlencoded"
    if isinstance(content, str):
        return content.encode(), "text/plain; charset=utf-8"
    return content, None


def _urlencode(pairs: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    from urllib.parse import urlencode

    return urlencode(_pairs(pairs))


def _pairs(
    fields: Mapping[str, str] | Iterable[tuple[str, str]] | None,
) -> list[tuple[str, str]]:
    if fields is None:
        return []
    keys = getattr(fields, "keys", None)
    return list(fields.items()) if keys is not None else list(fields)  # pyright: ignore
