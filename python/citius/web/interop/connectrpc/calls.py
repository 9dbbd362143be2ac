"""A call of a service of connectrpc: what its header section says, the message in its body, and how it ends.

The protocol is chosen by the media type. Connect's unary calls have one message as their content, all others
envelopes. Until ``begin`` has returned, an error is a response without envelopes. Tests:
``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs

from citius._core import Response
from citius.errors import ClientDisconnected
from citius.observability.logging import log_exception
from citius.observability.rpc_codes import NUMBERS
from citius.web.binding.headers import OF_CONNECTION
from citius.web.interop.connectrpc.library import Library
from citius.web.responses.rpc_trailers import Trailers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from citius._core import Request

PREFIX_BYTES: Final = 5
"""Flags and length before each message in an envelope."""
VARY: Final = [("vary", "Accept-Encoding")]
"""Fields of a response with a message of Connect."""
_LIBRARY: Final = Library()
_ACCEPTED: Final = [("Accept-Post", "application/json, application/proto")]
DONE: Final = Trailers([("grpc-status", "0")], NUMBERS["ok"])
"""The trailer section of a call of gRPC that has gone well."""
_Headers: Any = _LIBRARY.headers

T = TypeVar("T")


class RequestFields(_Headers):
    """The header section of a request; what the library looks for in it is looked up in the request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        # What the library keeps fields in is made when service or interceptors want them.
        if name not in ("_store", "_extra"):
            raise AttributeError(name)
        items = [(key, _decoded(value)) for key, value in self._request.header_items()]
        _Headers.__init__(self, items)
        return self.__dict__[name]

    def get(self, key: str, default: Any = None) -> Any:
        """The first value of a field."""
        if "_store" in self.__dict__:
            return _Headers.get(self, key, default)
        return self._request.header(key, default)


class Method:
    """A method of a service, as its application serves it."""

    def __init__(self, app: Any, path: str, endpoint: Any) -> None:
        self.app = app
        self.info: Any = endpoint.method
        self.is_unary = isinstance(endpoint, _LIBRARY.unary)
        self._path = path
        self._resolved: Any = None
        self._function: Any = None

    def function(self) -> Any:
        """The function of the service, which the application has made or makes at its start."""
        if self._resolved is None or self._resolved is not self.app._resolved_endpoints:
            self._function = self.endpoint().function
            self._resolved = self.app._resolved_endpoints
        return self._function

    def endpoint(self) -> Any:
        """Its endpoint."""
        app: Any = self.app
        if app._resolved_endpoints is None:
            if inspect.isasyncgen(app._service):
                raise RuntimeError(
                    "a service that is made by an asynchronous generator needs the start of the application"
                )
            app._resolved_endpoints = app._resolve_endpoints(app._service)
        return app._resolved_endpoints[self._path]


class Call:
    """One call."""

    __slots__ = (
        "_codec", "_compression", "_fields", "_read_compression", "_writer", "ctx", "deadline", "method",
        "protocol", "query", "request", "run",
    )  # fmt: skip

    def __init__(self, method: Method, request: Request) -> None:
        self.method = method
        self.request = request
        self.ctx: Any = None
        self.protocol: Any = None
        self.deadline: float | None = None
        """When it has to be over, in seconds of the loop's clock."""
        self.run: Any = None
        """Interceptors that see the metadata only, which begin before the message is read."""
        self.query: dict[str, list[str]] | None = None
        """That of a `GET`, which has the message."""
        self._writer: Any = None

    def begin(self) -> None:
        """Read the header section.

        Raises:
            Exception: The call is refused.
        """
        request, method, app = self.request, self.method, self.method.app
        self._fields = fields = RequestFields(request)
        media_type = request.header("content-type", "")
        self.protocol = protocol = _LIBRARY.protocol_of(media_type)
        http_method, client = request.method, request.client
        ctx = protocol.create_request_context(
            method.info, http_method, request.scheme, fields, client and f"{client[0]}:{client[1]}"
        )
        self.continue_with(ctx)
        if http_method == "GET":
            self.query = query = parse_qs(request.raw_query.decode("utf-8"), keep_blank_values=True)
            name = query.get("encoding", ("",))[0]
        else:
            name = protocol.codec_name_from_content_type(media_type, stream=not method.is_unary)
        codec: Any = app._codecs.get(name)
        if codec is None:
            from http import HTTPStatus

            raise _LIBRARY.http_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _ACCEPTED)
        self._codec = codec
        if app._metadata_interceptors:
            self.run = _LIBRARY.interceptors_run(app._metadata_interceptors, ctx)
        known: Any = app._compressions
        if method.is_unary and isinstance(protocol, _LIBRARY.connect):
            accepted = request.header("accept-encoding", "")
            self._compression = _LIBRARY.compression_of(accepted, known)
        else:
            self._read_compression, self._compression = protocol.negotiate_stream_compression(
                fields, known
            )
            self._writer = protocol.create_envelope_writer(codec, self._compression)

    def continue_with(self, ctx: Any) -> None:
        """Take a context, and its deadline."""
        self.ctx = ctx
        left_ms = ctx.timeout_ms
        if left_ms is not None:
            self.deadline = asyncio.get_running_loop().time() + left_ms / 1000

    # --- messages of the client -----------------------------------------------------------------

    async def asked(self) -> Any:
        """The message in the query of a `GET`."""
        endpoint: Any = self.method.endpoint()
        return await self.method.app._read_get_request(endpoint, self._codec, self.query)

    def message(self) -> Any:
        """The one message of a call whose body is complete.

        Raises:
            Exception: It is none, or not one.
        """
        if self._writer is not None:
            return self._enveloped()
        app: Any = self.method.app
        body, most = self.request.body(), app._read_max_bytes
        if most is not None and len(body) > most:
            raise _LIBRARY.too_large(most)
        coding = self.request.header("content-encoding") or "identity"
        if coding != "identity":
            compression: Any = app._compressions.get(coding)
            if compression is None:
                raise _LIBRARY.unknown_compression(coding, app._compressions)
            body = body and _LIBRARY.decompress(compression, body, most)
        return self._decode(body)

    def _enveloped(self) -> Any:
        body, most = self.request.body(), self.method.app._read_max_bytes
        only = unwrapped(body) if self._read_compression is not None else None
        if only is not None and (most is None or len(only) <= most):
            return self._decode(only)  # nearly always
        found = None
        with self.reader() as reader:
            for message in reader.feed(body):
                if found is not None:
                    raise _error("UNIMPLEMENTED", "unary request has multiple messages")
                found = message
        if found is None:
            raise _error("UNIMPLEMENTED", "unary request has zero messages")
        return found

    def _decode(self, data: bytes) -> Any:
        return _LIBRARY.decode(self._codec, data, self.method.info.input)

    def reader(self) -> Any:
        """What reads envelopes.

        Raises:
            Exception: The client's compression is not known.
        """
        app: Any = self.method.app
        if self._read_compression is None:
            name = self._fields.get(self.protocol.compression_header_name(), "")
            raise _LIBRARY.unknown_compression(name, app._compressions)
        return _LIBRARY.reader(
            self.method.info.input, self._codec, self._read_compression, app._read_max_bytes
        )

    # --- its end --------------------------------------------------------------------------------

    def response(self, result: Any) -> Response:
        """The response with one message."""
        if self._writer is not None:
            return self.ended(self._writer.write(result), None)
        data: bytes = self._codec.encode(result)
        fields = VARY.copy()
        if not isinstance(self._compression, _LIBRARY.is_identity):
            data = self._compression.compress(data)
            fields.append(("content-encoding", self._compression.name()))
        fields += self._metadata()
        return Response(data, 200, fields, f"application/{self._codec.name()}")

    def writer(self) -> Callable[[Any], bytes]:
        """What makes an envelope of a message."""
        if not isinstance(self._compression, _LIBRARY.is_identity):
            return self._writer.write
        encode = self._codec.encode

        def plain(message: Any) -> bytes:
            data: bytes = encode(message)
            return len(data).to_bytes(PREFIX_BYTES, "big") + data

        return plain

    def end(self, error: Exception | None) -> tuple[bytes, Trailers]:
        """What ends a body of envelopes, and the trailer section."""
        self._log(error)
        trailers: Any = self.ctx._response_trailers
        if error is None and not trailers and type(self.protocol) is _LIBRARY.grpc:
            return b"", DONE
        wire: Any = None if error is None else _LIBRARY.wire_error.from_exception(error)
        end: Any = self._writer.end(self.ctx.response_trailers, wire)
        code = NUMBERS[wire.code.value] if wire else NUMBERS["ok"]
        if isinstance(end, bytes):
            return end, Trailers((), code)
        return b"", Trailers(_fields(end.allitems()), code)

    def ended(self, data: bytes, error: Exception | None) -> Response:
        """A whole response of envelopes."""
        end, trailers = self.end(error)
        return self.begun(data + end, trailers)

    def begun(self, body: object, trailers: Trailers | Callable[[], Trailers]) -> Response:
        """A response of envelopes."""
        fields: list[tuple[str, str]] = []
        if not isinstance(self._compression, _LIBRARY.is_identity):
            fields.append((self.protocol.compression_header_name(), self._compression.name()))
        if self.ctx._response_headers:
            fields += _fields(self.ctx.response_headers.allitems())
        return Response(
            body, 200, fields, self.protocol.content_type(self._codec), trailers=trailers
        )

    def failed(self, error: Exception) -> Response:
        """The response to a call that ends before it has a message."""
        if self._writer is not None:
            return self.ended(b"", error)
        self._log(error)
        if isinstance(error, _LIBRARY.http_error):
            status: Any = error
            fields = _fields(status.headers)
            return Response(b"", status.status.value, [*fields, *self._metadata()])
        wire: Any = _LIBRARY.wire_error.from_exception(error)
        code = NUMBERS[wire.code.value]
        if isinstance(self.protocol, _LIBRARY.grpc):
            said: Any = self.protocol.trailers_only_headers(self.ctx, error)
            media_type: str = said.pop("content-type")
            return Response(
                b"", 200, _fields(said.allitems()), media_type, trailers=Trailers((), code)
            )
        return Response(
            wire.to_json_bytes(), wire.to_http_status().code, self._metadata(), "application/json",
            trailers=Trailers((), code),
        )  # fmt: skip

    async def outcome(self, work: Callable[[Call], Coroutine[Any, Any, T]]) -> T | Exception:
        """What ``work`` returns, or the error that the call ends with."""
        timeout: asyncio.Timeout | None = None
        try:
            if self.run is None and self.deadline is None:
                return await work(self)
            async with asyncio.timeout_at(self.deadline) as timeout:
                if self.run is not None:
                    await self.run.start()
                return await work(self)
        except ClientDisconnected:
            await self._left_by(_error("CANCELED", "Client disconnected"))
            raise
        except (Exception, asyncio.CancelledError) as error:
            if timeout is not None and timeout.expired() and isinstance(error, TimeoutError):
                return await self._left_by(_error("DEADLINE_EXCEEDED", "Request timed out"))
            return await self._error_of(error)
        except (SystemExit, KeyboardInterrupt) as error:
            # A stream has a task, out of which these would end the event loop.
            failure = RuntimeError(f"a service raised {error!r}")
            failure.__cause__ = error
            return await self._left_by(failure)

    async def answered(self, work: Callable[[Call], Coroutine[Any, Any, Response]]) -> Response:
        """The response that ``work`` makes, or the one of its error."""
        outcome = await self.outcome(work)
        return self.failed(outcome) if isinstance(outcome, Exception) else outcome

    async def ended_by(self, error: Exception | asyncio.CancelledError) -> Response:
        """The response to a call whose service has raised ``error``.

        Raises:
            asyncio.CancelledError: The task of the call was cancelled.
        """
        return self.failed(await self._error_of(error))

    async def leave(self) -> None:
        """End its interceptors after a call that has gone well.

        Raises:
            Exception: One of them has raised it.
        """
        if self.run is not None and (error := await self.run.end(None)) is not None:
            raise error

    async def _left_by(self, error: Exception) -> Exception:
        """End its interceptors, which may replace the error."""
        return error if self.run is None else await self.run.end(error)

    async def _error_of(self, error: Exception | asyncio.CancelledError) -> Exception:
        """The error of a call that has been left by ``error``.

        Raises:
            asyncio.CancelledError: The task of the call was cancelled, and not only what a service waits for.
        """
        if isinstance(error, Exception):
            return await self._left_by(error)
        made = await self._left_by(_error("CANCELED", "Request was cancelled"))
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise error
        return made

    def _metadata(self) -> list[tuple[str, str]]:
        """What a service adds to a response without envelopes."""
        if self.ctx is None:
            return []
        headers, trailers = self.ctx._response_headers, self.ctx._response_trailers
        made = _fields(headers.allitems()) if headers else []
        if trailers:
            made += [(f"trailer-{name}", value) for name, value in _fields(trailers.allitems())]
        return made

    def _log(self, error: Exception | None) -> None:
        """Log what no service means to say."""
        if error is not None and not isinstance(error, (_LIBRARY.error, _LIBRARY.http_error)):
            message = self.request._message(f": {self.method.info.name} failed")  # pyright: ignore[reportPrivateUsage]
            log_exception(message, error)


def unwrapped(body: bytes) -> bytes | None:
    """The message of a body that is one envelope, without compression; ``None`` for every other body."""
    size = len(body) - PREFIX_BYTES
    if size >= 0 and body.startswith(size.to_bytes(PREFIX_BYTES, "big")):
        return body[PREFIX_BYTES:]
    return None


def _error(code: str, message: str) -> Exception:
    return _LIBRARY.error(_LIBRARY.code[code], message)


def _decoded(value: str) -> str:
    """A field's value as the library reads it."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _fields(items: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Fields that a service sets, in UTF-8, without those of the connection."""
    return [
        (name, value if value.isascii() else value.encode().decode("latin-1"))
        for name, value in items
        if name not in OF_CONNECTION and name != "content-length"
    ]
