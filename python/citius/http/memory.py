"""``Client(app=app)``: requests to an application in this process, without a socket.

A native application is called through its parser, limits and gateway, as the test clients do it; ASGI and
WSGI applications by their interfaces. The first request starts the application, with its start-up hooks or
its lifespan; ``close`` stops it. Exceptions of handlers are what a client would see: a response with 500.
Tests: ``tests/http/test_applications.py``.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import sys
from typing import TYPE_CHECKING, Any, cast

from citius.http.errors import (
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    TooLarge,
    TotalTimeout,
    WriteError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, MutableMapping, Sequence

    from citius.http.base import Fields, RawFields
    from citius.http.options import Deadlines
    from citius.http.urls import URL
    from citius.web.application.app import App
    from citius.web.interop.inmemory.memory import MemoryConnection, MemoryServer

    Message = MutableMapping[str, Any]
    Start = Callable[[int, RawFields], None]

_CLIENT = ("127.0.0.1", 123)


class MemoryReply:
    """A response of an application."""

    http_version = "HTTP/1.1"
    connection_reused = False
    remote = "memory"

    def __init__(
        self,
        status: int,
        fields: RawFields,
        pieces: AsyncIterator[bytes],
        close: Callable[[], None],
    ) -> None:
        self.status, self.fields = status, fields
        self.body = b""
        self.trailers: RawFields = []
        self.informational: Sequence[tuple[int, RawFields]] = ()
        self._pieces, self._close = pieces, close
        self.read_s: float | None = None

    def field(self, name: bytes) -> bytes | None:
        """The first value of a name in lower case."""
        return next((value for key, value in self.fields if key.lower() == name), None)

    async def read(self) -> bytes:
        """The next piece; ``b""`` at the end."""
        try:
            async with asyncio.timeout(self.read_s):
                return await anext(self._pieces, b"")
        except TimeoutError:
            raise ReadTimeout(f"the application has sent nothing for {self.read_s:g} s") from None

    async def collect(self, limit: int | None = None) -> None:
        """Read the whole content."""
        pieces: list[bytes] = []
        total = 0
        while piece := await self.read():
            pieces.append(piece)
            total += len(piece)
            if limit is not None and total > limit:
                raise TooLarge(f"the content has more than {limit} bytes (Limits.body_bytes_max)")
        self.body = b"".join(pieces)

    def close(self) -> None:
        """Give it up."""
        self._close()


class MemoryUpload:
    """A body that is sent piece by piece; one piece waits at a time."""

    def __init__(self, length: int | None) -> None:
        self.length = length
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.is_aborted = False

    async def send(self, data: bytes) -> None:
        """Send a piece."""
        if self.is_aborted:
            raise WriteError("the application does not read the rest of the request")
        memoryview(data)  # before it waits beside a request that nothing would end
        await self._queue.put(data)

    async def end(self, trailers: Iterable[tuple[bytes | str, bytes | str]] = ()) -> None:
        """The body is complete."""
        if list(trailers):
            raise TypeError("an application in memory gets no trailers")
        await self._queue.put(None)

    def abort(self) -> None:
        """The body will not be complete."""
        self.is_aborted = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """What was sent."""
        while (piece := await self._queue.get()) is not None:
            yield piece
        if self.is_aborted:
            raise ReadError("the request was given up")


class AppTransport:
    """Calls an application.

    Args:
        app: A native application, or one of ASGI or WSGI.
        body_bytes_max: Bytes of a response that is not streamed.
    """

    def __init__(self, app: object, *, body_bytes_max: int | None = None) -> None:
        self._app, self._body_bytes_max = app, body_bytes_max
        self._caller: _Native | _ASGI | _WSGI = _caller_of(app)
        self._starting: asyncio.Future[None] | None = None

    def origin(self, url: URL, proxy: str | None) -> URL:
        """The URL itself."""
        return url

    def upload(self, length: int | None = None) -> MemoryUpload:
        """A body that is sent piece by piece."""
        return MemoryUpload(length)

    async def send(
        self,
        origin: URL,
        method: str,
        target: str,
        fields: Fields,
        body: bytes | Any | None = None,
        stream: bool = False,
        deadlines: Deadlines | None = None,
    ) -> MemoryReply:
        """Call the application."""
        _, read_s, _, _, total_s = deadlines or (None,) * 5
        sent = (
            [("host", origin.authority)] if not any(_text(n) == "host" for n, _ in fields) else []
        )
        raw = [
            (_text(n).encode("latin-1"), _text(v, lower=False).encode("latin-1"))
            for n, v in [*sent, *fields]
        ]
        reply: MemoryReply | None = None
        try:
            async with asyncio.timeout(total_s):
                await self._start()
                async with asyncio.timeout(read_s):
                    reply = await self._caller.send(origin, method, target, raw, body)
                reply.read_s = read_s
                if not stream:
                    await reply.collect(self._body_bytes_max)
        except TimeoutError as error:
            if reply is not None:
                reply.close()
            if isinstance(error, ReadTimeout):
                raise
            if total_s is not None and (read_s is None or total_s <= read_s):
                raise TotalTimeout(f"{origin.origin}: more than {total_s:g} s") from None
            raise ReadTimeout(f"{origin.origin}: no response within {read_s:g} s") from None
        except BaseException:
            if reply is not None:
                reply.close()
            raise
        return reply

    async def _start(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._caller.start())
        await asyncio.shield(self._starting)

    async def close(self) -> None:
        """Stop the application, if a request has started it."""
        starting, self._starting = self._starting, None
        if starting is not None:
            await asyncio.wait([starting])
            await self._caller.close()


def _text(given: bytes | str, *, lower: bool = True) -> str:
    text = given if isinstance(given, str) else given.decode("latin-1")
    return text.lower() if lower else text


def _caller_of(app: Any) -> _Native | _ASGI | _WSGI:
    from citius.web.application.app import App

    if isinstance(app, App):
        return _Native(app)
    if not callable(app):
        raise TypeError(f"app= is an application, got {type(app).__name__}")
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(type(app).__call__):
        return _ASGI(app)
    return _WSGI(app)


async def _body_of(body: bytes | MemoryUpload | None) -> AsyncIterator[bytes]:
    if isinstance(body, MemoryUpload):
        async for piece in body.pieces():
            yield piece
    elif body:
        yield body


def _framing(body: bytes | MemoryUpload | None, method: str) -> tuple[bytes, bytes] | None:
    length = body.length if isinstance(body, MemoryUpload) else len(body or b"")
    if length is None:
        return b"transfer-encoding", b"chunked"
    return (
        (b"content-length", b"%d" % length)
        if body is not None or method in ("POST", "PUT", "PATCH")
        else None
    )


class _Native:
    """A native application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._server: MemoryServer | None = None

    async def start(self) -> None:
        from citius.settings.config import Config
        from citius.web.interop.inmemory.memory import MemoryServer

        self._server = MemoryServer(self._app, Config())
        await self._server.start()

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def send(
        self,
        url: URL,
        method: str,
        target: str,
        fields: RawFields,
        body: bytes | MemoryUpload | None,
    ) -> MemoryReply:
        from citius.web.interop.inmemory.exchange import Exchange
        from citius.web.interop.inmemory.http1 import LAST_CHUNK, ProtocolError, chunk, request_head

        assert self._server is not None
        connection = self._server.connect(_CLIENT, url.scheme)
        exchange = Exchange(connection, method)
        framing = _framing(body, method)
        is_chunked = framing is not None and framing[1] == b"chunked"

        async def feed() -> None:
            async for piece in _body_of(body):
                await connection.send(chunk(piece) if is_chunked else piece)
            if is_chunked:
                await connection.send(LAST_CHUNK)

        feeder: asyncio.Future[None] | None = None

        def close() -> None:
            connection.close()
            if feeder is not None:
                feeder.cancel()

        try:
            connection.feed(
                request_head(method, target.encode(), [*fields, *([framing] if framing else [])])
            )
            feeder = asyncio.ensure_future(feed())
            feeder.add_done_callback(lambda fed: _fed(fed, connection))
            status = await exchange.read_head()
        except ProtocolError as error:
            close()
            raise RemoteProtocolError(str(error)) from None
        except BaseException:
            close()
            raise

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in exchange.pieces():
                    yield piece
            except ProtocolError as error:
                raise ReadError(str(error)) from None
            finally:
                close()
            reply.trailers = _raw(exchange.reader.trailers)

        reply = MemoryReply(status, _raw(exchange.reader.fields), pieces(), close)
        return reply


def _fed(feeding: asyncio.Future[None], connection: MemoryConnection) -> None:
    if not feeding.cancelled() and feeding.exception() is not None:
        connection.close()  # the rest of the request will not come


def _raw(fields: list[tuple[str, str]]) -> RawFields:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


class _ASGI:
    """An ASGI application."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self._app = app
        self._state: dict[str, Any] = {}
        self._lifespan: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def start(self) -> None:
        started: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        kinds = iter(("lifespan.startup",))

        async def receive() -> Message:
            if (kind := next(kinds, None)) is None:
                await self._stop.wait()
            return {"type": kind or "lifespan.shutdown"}

        async def send(message: Message) -> None:
            if message["type"].startswith("lifespan.startup") and not started.done():
                is_failed = message["type"].endswith("failed")
                started.set_result(message.get("message", "") if is_failed else None)

        async def run() -> None:
            scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self._state}
            try:
                await self._app(scope, receive, send)
            except Exception:
                pass  # it has no lifespan
            finally:
                if not started.done():
                    started.set_result(None)

        self._lifespan = asyncio.ensure_future(run())
        failure = await started
        if failure is not None:
            raise RuntimeError(f"the application's start-up failed: {failure}")

    async def close(self) -> None:
        self._stop.set()
        if self._lifespan is not None:
            await asyncio.wait([self._lifespan])

    async def send(
        self,
        url: URL,
        method: str,
        target: str,
        fields: RawFields,
        body: bytes | MemoryUpload | None,
    ) -> MemoryReply:
        from urllib.parse import unquote

        framing = _framing(body, method)
        path, _, query = target.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
            "method": method, "scheme": url.scheme, "path": unquote(path), "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "client": _CLIENT,
            "headers": [*fields, *([framing] if framing else [])],
            "server": (url.host, url.port), "state": dict(self._state),
        }  # fmt: skip
        cycle = _Cycle(method, _body_of(body))
        task = asyncio.ensure_future(cycle.run(self._app, scope))
        task.add_done_callback(_seen)

        def close() -> None:
            cycle.left.set()
            if not cycle.is_whole:
                task.cancel()

        try:
            status, found = await cycle.head
        except BaseException:
            close()
            raise
        return MemoryReply(status, found, cycle.pieces(), close)


class _Cycle:
    """One request of an ASGI application and its response."""

    def __init__(self, method: str, content: AsyncIterator[bytes]) -> None:
        self._method, self._content = method, content
        self._is_read = False
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.head: asyncio.Future[tuple[int, RawFields]] = (
            asyncio.get_running_loop().create_future()
        )
        self.left = asyncio.Event()
        self.is_whole = False

    async def run(self, app: Callable[..., Any], scope: dict[str, Any]) -> None:
        """Call the application."""
        try:
            await app(scope, self.receive, self.send)
        finally:
            if not self.head.done():
                self.head.set_result((500, []))
                self.is_whole = True
                await self._out.put(None)
            elif not self.is_whole and not self.left.is_set():
                await self._out.put(None)
            self.left.set()

    async def receive(self) -> Message:
        """A piece of the request, or its end."""
        if not self._is_read:
            piece = await anext(self._content, None)
            self._is_read = piece is None
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """A part of the response."""
        if message["type"] == "http.response.start" and not self.head.done():
            fields = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
            self.head.set_result((message["status"], fields))
        elif (
            message["type"] == "http.response.body" and not self.is_whole and not self.left.is_set()
        ):
            if (piece := message.get("body", b"")) and self._method != "HEAD":
                await self._out.put(piece)
            if not message.get("more_body", False):
                self.is_whole = True
                await self._out.put(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The content of the response."""
        while (piece := await self._out.get()) is not None:
            yield piece
        self.left.set()
        if not self.is_whole:
            raise ReadError("the application ended in the middle of its response")


def _seen(task: asyncio.Task[None]) -> None:
    """An exception of the application is the response 500, and goes to the log."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        from citius.observability import logging

        logging.log_exception("the application raised", error)


class _WSGI:
    """A WSGI application, called in a thread."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self._app = app

    async def start(self) -> None:
        """Do nothing: WSGI has no hooks."""

    async def close(self) -> None:
        """Do nothing."""

    async def send(
        self,
        url: URL,
        method: str,
        target: str,
        fields: RawFields,
        body: bytes | MemoryUpload | None,
    ) -> MemoryReply:
        data = b"".join([piece async for piece in _body_of(body)])
        status, found, content = await asyncio.to_thread(
            self._call, url, method, target, fields, data
        )

        async def pieces() -> AsyncIterator[bytes]:
            if content:
                yield content

        return MemoryReply(status, found, pieces(), lambda: None)

    def _call(
        self, url: URL, method: str, target: str, fields: RawFields, data: bytes
    ) -> tuple[int, RawFields, bytes]:
        from urllib.parse import unquote_to_bytes

        path, _, query = target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "SCRIPT_NAME": "", "QUERY_STRING": query,
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"), "SERVER_NAME": url.host,
            "SERVER_PORT": str(url.port), "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": _CLIENT[0],
            "CONTENT_LENGTH": str(len(data)), "wsgi.version": (1, 0), "wsgi.url_scheme": url.scheme,
            "wsgi.input": io.BytesIO(data), "wsgi.errors": sys.stderr, "wsgi.multithread": True,
            "wsgi.multiprocess": False, "wsgi.run_once": False,
        }  # fmt: skip
        for name, value in fields:
            key = name.decode("latin-1").upper().replace("-", "_")
            key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]},{text}" if key in environ else text
        told: list[tuple[int, RawFields]] = []
        pieces: list[bytes] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            told.append((int(status[:3]), _raw(headers)))
            return pieces.append

        try:
            result = cast("Iterable[bytes]", self._app(environ, start_response))
            try:
                for piece in result:
                    pieces.append(piece)
            finally:
                close = getattr(result, "close", None)
                if close is not None:
                    close()
        except Exception as error:
            from citius.observability import logging

            logging.log_exception("the application raised", error)
            return 500, [], b""
        status, found = told[-1]
        return status, found, b"" if method == "HEAD" else b"".join(pieces)
