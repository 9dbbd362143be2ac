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
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from citius._core import Reactor
from citius.testing.bodies import encode_body, pairs, urlencode
from citius.testing.cookies import Cookies
from citius.testing.websocket import Socket, WebSocketRefused
from citius.web.headers import Headers
from citius.web.interop.frames import HANDSHAKE
from citius.web.interop.http1 import LAST_CHUNK, ProtocolError, ResponseReader, chunk
from citius.web.pool import BlockingPool

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from types import TracebackType

    from citius._core import Request
    from citius.testing.bodies import Files, Pairs
    from citius.web.app import App

_T = TypeVar("_T")

HOST: Final = "testserver"
"""The host of requests that name none."""

REDIRECTS_MAX: Final = 20
"""Redirects that are followed for one request."""


class TooManyRedirects(Exception):
    """A response redirects again after ``REDIRECTS_MAX`` redirects."""


class TestResponse:
    """The response to a request of the test client."""

    __test__ = False  # for pytest, which takes a class of such a name for tests

    def __init__(self, status_code: int, headers: Headers, content: bytes = b"") -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content
        self.history: list[TestResponse] = []
        """The redirects that led to it."""

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
        self.cookies = Cookies()
        """Cookies that responses have set, and that tests set: ``client.cookies["name"] = "value"``."""
        self._app = app
        self._raise_errors = raise_errors
        self._headers = [(name.lower(), value) for name, value in (headers or {}).items()]
        self._follow_redirects = follow_redirects
        self._scheme = scheme
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
        if getattr(self, "_closed", True) or self._loop.is_running():
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.close()
        else:  # the collector came while another loop runs, beside which this one cannot
            thread = threading.Thread(target=self.close)
            thread.start()
            thread.join()

    # --- requests -------------------------------------------------------------------------------

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
        fields = self._fields(headers, content_type, auth)
        path = _with_query(path, params)
        follows = self._follow_redirects if follow_redirects is None else follow_redirects
        history: list[TestResponse] = []
        while True:
            with self.exchange(method, path, fields, body) as streamed:
                response = TestResponse(streamed.status_code, streamed.headers, streamed.read())
            response.history = history
            location = response.headers.get("location")
            if not follows or response.status_code not in _REDIRECTS or location is None:
                return response
            if len(history) >= REDIRECTS_MAX:
                raise TooManyRedirects(f"{REDIRECTS_MAX} redirects, the last one to {location}")
            history = [*history, response]
            if _becomes_get(response.status_code, method):
                method, body = "GET", None
                fields = [one for one in fields if not one[0].startswith("content-")]
            path, fields = _redirected(path, location, fields)

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
        fields = self._fields(headers, content_type, auth)
        with self.exchange(method, _with_query(path, params), fields, body) as streamed:
            yield streamed

    @contextmanager
    def exchange(
        self,
        method: str,
        path: str,
        fields: list[tuple[str, str]],
        body: bytes | Iterable[bytes] | None,
    ) -> Generator[StreamedTestResponse]:
        """``stream`` with the fields, in lower case, and the body as they are sent."""
        with self._opened(method, path, fields, body) as (connection, headers):
            assert connection.status is not None, "just waited for"
            yield StreamedTestResponse(connection.status, headers, lambda: self._pieces(connection))

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
        headers: Pairs | None = None,
        subprotocols: Iterable[str] = (),
    ) -> Generator[Socket]:
        """Open a WebSocket; leaving the block closes it and waits for the application's close frame.

        Raises:
            WebSocketRefused: The application responded with something else.
        """
        fields = [
            *HANDSHAKE,
            *self._fields(headers, None, None),
        ]
        if offered := ", ".join(subprotocols):
            fields.append(("sec-websocket-protocol", offered))
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

    # --- inside ---------------------------------------------------------------------------------

    @contextmanager
    def _opened(
        self,
        method: str,
        path: str,
        fields: list[tuple[str, str]],
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
        if self._scheme == "http":
            return self._reactor.memory_open()
        return self._reactor.memory_open(None, self._scheme)

    def _fields(
        self, headers: Pairs | None, content_type: str | None, auth: tuple[str, str] | None
    ) -> list[tuple[str, str]]:
        """The fields of a request; those of the client that it does not have itself come first."""
        own = [(name.lower(), value) for name, value in pairs(headers)]
        if content_type is not None and all(name != "content-type" for name, _ in own):
            own.append(("content-type", content_type))
        if auth is not None:
            from base64 import b64encode

            own.append(("authorization", f"Basic {b64encode(':'.join(auth).encode()).decode()}"))
        names = {name for name, _ in own}
        return [one for one in self._headers if one[0] not in names] + own

    def _send(
        self,
        connection: _Connection,
        method: str,
        path: str,
        fields: list[tuple[str, str]],
        body: bytes | Iterable[bytes] | None,
    ) -> None:
        names = {name for name, _ in fields}
        fields = list(fields)
        if "host" not in names:
            fields.append(("host", HOST))
        if "cookie" not in names:
            host = _host_of(fields)
            cookies = self.cookies.header(host, path.partition("?")[0], self._scheme == "https")
            fields += [("cookie", cookies)] if cookies else []
        if isinstance(body, bytes) and "content-length" not in names:
            fields.append(("content-length", str(len(body))))
        elif body is not None and not isinstance(body, bytes) and "transfer-encoding" not in names:
            fields.append(("transfer-encoding", "chunked"))
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields), "", ""]
        self._feed(connection, "\r\n".join(lines).encode("latin-1"))
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

    def _wait_for_head(
        self, connection: _Connection, path: str, fields: list[tuple[str, str]]
    ) -> Headers:
        """The fields of the response, whose cookies are kept."""
        self._wait(lambda: connection.status is not None)
        headers = Headers(connection.fields)
        for line in headers.getlist("set-cookie"):
            self.cookies.receive(line, _host_of(fields), path)
        return headers

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


def _host_of(fields: list[tuple[str, str]]) -> str:
    """The host that a request is for, without its port."""
    host = next((value for name, value in fields if name == "host"), HOST)
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()


def _with_query(path: str, params: Pairs | None) -> str:
    if params is None:
        return path
    return path + ("&" if "?" in path else "?") + urlencode(params)


def _becomes_get(status: int, method: str) -> bool:
    """Whether the request is repeated without its body (RFC 9110 §15.4)."""
    return (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST")


def _redirected(
    path: str, location: str, fields: list[tuple[str, str]]
) -> tuple[str, list[tuple[str, str]]]:
    """Path and fields of the request that a redirect asks for."""
    from urllib.parse import urljoin, urlsplit

    before = _host_of(fields)
    target = urlsplit(urljoin(f"http://{before}{path}", location))
    if target.hostname != before:
        # What is for one host is not told to another.
        fields = [one for one in fields if one[0] not in ("host", "authorization", "cookie")]
        fields.append(("host", target.netloc))
    return (target.path or "/") + (f"?{target.query}" if target.query else ""), fields


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
