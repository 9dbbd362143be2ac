"""The face of the extension module: what Rust offers to Python.

Everything here that is called once per request is called by Rust itself; Python composes these
classes at start-up (``app.py``, ``server.py``, ``hosts/``) and touches a request only through
:class:`Request` and :class:`Response`.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from os import PathLike
from pathlib import Path
from types import GenericAlias
from typing import (
    IO,
    Any,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    final,
    overload,
    type_check_only,
)

from typing_extensions import Buffer, disjoint_base

from citius.go import Selected
from citius.pg import Pool
from citius.redis import Redis
from citius.web.binding.forms import FormData, FormLimits
from citius.web.binding.headers import Headers, MutableHeaders, QueryParams
from citius.web.realtime.websockets import SerialWebSocket
from citius.web.realtime.webtransport import WebTransportSession
from citius.web.routing.static import Mount

_T = TypeVar("_T")

__version__: str

FAST_PATHS: bool
"""Whether requests reuse what earlier ones have left; false in builds with the feature ``slow-paths``."""

METRICS: dict[str, Any]
"""Names of what is counted: ``tallies``, ``gauges``, ``faults``, and ``buckets_us`` of histograms."""

LIMITS: dict[str, int]
"""Names and defaults of all limits (``citius-http/src/limits.rs``)."""

@type_check_only
class _BodyStream(Protocol):
    """The pieces of a body, on the loop or in a blocking handler."""

    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[bytes]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@final
class Request:
    """One request. Every attribute is made when it is first asked for."""

    @property
    def id(self) -> str | None:
        """The request's id, as in access log and response; ``None`` without ``--request-id``."""
    def _message(self, what: str) -> str:
        """A message about it: ``GET /``, ``what``, and the route, the handler and the request's id."""
    @property
    def method(self) -> str:
        """The method, in capitals as sent."""
    @property
    def path(self) -> str:
        """The path, percent-decoded (invalid UTF-8 becomes U+FFFD)."""
    @property
    def raw_path(self) -> bytes:
        """The path as sent."""
    @property
    def raw_query(self) -> bytes:
        """The query as sent, without its ``?``."""
    @property
    def target(self) -> bytes:
        """The request target as sent (RFC 9112 §3.2)."""
    @property
    def http_version(self) -> str:
        """``"1.0"``, ``"1.1"`` or ``"2"``."""
    @property
    def scheme(self) -> str:
        """``http`` or ``https``, as the client sees it if a trusted proxy says so."""
    @property
    def tls(self) -> TlsInfo | None:
        """The encryption of the connection; ``None`` in clear text, also where a proxy has ended TLS."""
    @property
    def client(self) -> tuple[str, int] | None:
        """Address and port of the client, port 0 if a proxy did not say it; ``None`` if it is unknown,
        on a Unix socket or in memory."""
    @property
    def host(self) -> str:
        """Host and, if it was said, port that the client asked; empty if it named none."""
    @property
    def root_path(self) -> str:
        """What a trusted proxy has taken off the front of ``path`` (``X-Forwarded-Prefix``)."""
    @property
    def path_params(self) -> dict[str, Any]:
        """What the route's pattern took from the path, converted, by name."""
    @property
    def query(self) -> QueryParams:
        """The query's parameters, decoded."""
    @property
    def headers(self) -> Headers:
        """The header section; names are case-insensitive."""
    @property
    def trailers(self) -> Headers:
        """The trailer section (RFC 9110 §6.5) of a chunked body or of HTTP/2; empty until it is complete."""
    @property
    def cookies(self) -> dict[str, str]:
        """Values of the field ``Cookie``, by name."""
    @property
    def state(self) -> Any:
        """A namespace for middleware and handlers of this request."""
    @property
    def app(self) -> Any:
        """The application that the route belongs to; in middleware, the one that the middleware belongs to.

        They differ below a prefix at which an application is mounted.
        """
    @property
    def _served_app(self) -> Any:
        """The outermost application."""
    def _deferred_in_turn(
        self, event_loop: AbstractEventLoop, of: object
    ) -> list[tuple[Any, Request]] | None:
        """The list of calls that are made for ``of`` when the turn of ``event_loop``, this thread's, ends.

        ``None`` if no turn runs there, or a context variable has another value than where requests begin.
        """
    def _hold_deferred(
        self,
        of: HeldCalls,
        function: Callable[[], object],
        event_loop: AbstractEventLoop | None,
        count_max: int,
    ) -> bool | None:
        """Hold a call until the handler has ended; ``of`` has it made then, unless the handler has failed.

        ``False`` if the handler has ended already, ``None`` if ``of`` holds ``count_max`` calls.
        """
    def _own(self, value: object) -> Response:
        """``value`` as a response of this request alone.

        A copy if it is a response that has not gone through here for this request: the application may keep
        it, and return it for others. One with this body if it is anything else.
        """
    def _forget_deferred(self) -> None:
        """Forget what is held: the handler has failed, and something else responds in its place."""
    def _detach_deferred(self) -> None:
        """Hold calls beyond a cancellation of the handler, until `_end_detached`."""
    def _end_detached(self, is_failed: bool) -> None:
        """Have held calls made, or forget them: a handler that went on without its client has ended."""
    def _set_app(self, app: object) -> None:
        """Make ``app`` another application: at the border of a mounted one."""
    @overload
    def header(self, name: str, default: None = None) -> str | None:
        """The first value of a field; ``default`` without it."""
    @overload
    def header(self, name: str, default: _T) -> str | _T: ...
    def header_items(self) -> list[tuple[str, str]]:
        """Names in lower case and values (latin-1), in the order sent."""
    def body(self) -> bytes:
        """The whole body. Handlers are called when it is complete, unless ``stream=True``.

        Raises:
            RuntimeError: The body has not arrived; use ``await request.read()``.
        """
    def read(self) -> Awaitable[bytes]:
        """The whole body, awaited; works in every ``async def`` handler."""
    def stream(self) -> _BodyStream:
        """The body in pieces as they come: ``async for`` on the loop, ``for`` in a blocking handler."""
    @overload
    def json(self, type: None = None) -> Any:
        """The body decoded from JSON, whatever its ``Content-Type`` is.

        Args:
            type: What msgspec decodes it to; objects as ``dict`` and the like without it.

        Raises:
            HTTPError: 400 for what is not JSON, 422 for what is not of this type.
            RuntimeError: The body has not arrived; use ``await request.read()``.
        """
    @overload
    def json(self, type: type[_T]) -> _T: ...
    @overload
    def msgpack(self, type: None = None) -> Any:
        """The body decoded from MessagePack, as ``json`` does it from JSON."""
    @overload
    def msgpack(self, type: type[_T]) -> _T: ...
    def form(self) -> FormData:
        """The form in the body, URL-encoded or multipart.

        Raises:
            HTTPError: There is no form, or a broken one, or it has too much.
        """
    def _form_parts(
        self, otherwise: FormLimits
    ) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
        """Texts and files of the form in the body; files as ``citius.web.binding.forms`` takes them.

        Args:
            otherwise: What it may have, if the route does not say.

        Raises:
            HTTPError: There is no form, or a broken one, or it has too much.
            OSError: A temporary file could not be written.
        """
    def _next_chunk(self) -> bytes | None:
        """Body bytes that have arrived; ``b""`` at the end, ``None`` if none are there yet.

        Raises:
            ClientDisconnected: The rest will never come.
        """
    def _json_body(self) -> bytes | None:
        """Return the body, if its ``Content-Type`` is ``application/json`` to the letter."""
    def _inform(self, status: int, headers: Mapping[str, str]) -> None:
        """Send an informational response (1xx) before the response."""
    def _set_body(self, whole: bytes) -> None:
        """Keep a body that was read piece by piece for ``body``, ``json`` and the like."""
    def _on_body(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, on the reactor's thread, when ``_next_chunk`` has something new."""
    def _set_task(self, task: object) -> None:
        """Call ``task.cancel()`` if the client disconnects before the response is complete."""
    def _is_open(self) -> bool:
        """Whether the client still waits for the response."""
    def _respond(self, value: object) -> None:
        """Respond from any thread with what a handler may return."""
    def _fail(self, error: BaseException) -> None:
        """Respond from any thread with what the exception handlers return for ``error``."""

@disjoint_base
class HeldCalls:
    """The deferred calls of one application that wait for handlers: counted, for there is a limit."""
    def __new__(cls, *_args: object) -> Self: ...
    @property
    def held(self) -> int:
        """How many they are."""

@final
class Response:
    """A response with status code, headers and body."""

    status_code: int
    """The status code, 100 to 999."""
    body: object
    """The content, as given."""
    content_type: str | None
    """The media type; ``None``: by the class of the body."""
    def __new__(
        cls,
        body: object = None,
        status_code: int = 200,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        content_type: str | None = None,
        trailers: Mapping[str, str]
        | Iterable[tuple[str, str]]
        | Callable[[], Mapping[str, str] | Iterable[tuple[str, str]]]
        | None = None,
        background: Callable[[], object] | Sequence[Callable[[], object]] | None = None,
    ) -> Self:
        """
        Args:
            body: What a handler may return: bytes, str, ``None``, an (async) iterator of bytes
                and str, or an object to be encoded.
            trailers: The trailer section (RFC 9110 §6.5) of a body that is streamed, or text or bytes; or a
                function that makes it when the body is complete. Sent where the framing can carry one
                (chunked, HTTP/2), so that the length of the body is not said before.
            background: What is called after the response, as ``citius.defer`` does it.
        """
    trailers: (
        Mapping[str, str]
        | Iterable[tuple[str, str]]
        | Callable[[], Mapping[str, str] | Iterable[tuple[str, str]]]
        | None
    )
    background: Callable[[], object] | Sequence[Callable[[], object]] | None
    """What is called after the response."""
    _encoded: tuple[object, Callable[[object], bytes]] | None
    @property
    def headers(self) -> MutableHeaders:
        """The header section, to be changed until the response is sent."""
    def _add_checked(self, *lines: tuple[str, str]) -> None: ...
    def _with_body(self, body: object) -> Response: ...
    def _with_envelope(self, message: bytes) -> Response: ...

@final
class RpcUnary:
    """Reads calls of a unary method of connectrpc; for ``web/interop/connectrpc/unary.py``."""

    def __new__(cls, ways: Sequence[Any], bytes_max: int | None) -> Self:
        """
        Args:
            ways: Objects with the attributes of ``connectrpc.unary.Way``.
            bytes_max: Bytes of the longest message.
        """
    def take(self, request: Request) -> tuple[Any, bytes, str | None] | None:
        """What calls of the media type get, the message, and the field that limits the time."""

@final
class Stream:
    """The output of one streamed response; made by the server, driven by ``web/responses/streaming.py``."""

    def send(self, chunk: bytes | str) -> bool:
        """Queue a piece; ``False`` means: wait for room before the next.

        Raises:
            ClientDisconnected: The client has disconnected.
        """
    def send_event(self, event: object) -> bool:
        """Queue a server-sent event, or the data of one; otherwise as ``send``."""
    def send_events(self, iterator: Iterator[object]) -> bool:
        """Queue the events of an iterator in one piece; ``False``: there may be more, but no room for them.

        Raises:
            ClientDisconnected: The client has disconnected.
        """
    def is_offered(self) -> bool:
        """Whether the client has been offered what has filled the queue: a later turn has written."""
    def idle_ms(self) -> int:
        """Milliseconds since the last call of ``send_event``, by a clock with a tick of some."""
    def on_writable(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, on the reactor's thread, when more can be written or the client is gone."""
    def end(self) -> None: ...
    def abort(self) -> None: ...
    def _message(self, what: str) -> str:
        """A message about its request: ``GET /``, ``what``, the route, the handler, the request's id."""

@final
class RpcMessages:
    """Messages of one connection of MessagePack-RPC, as a client hears them."""

    def __new__(cls, bytes_max: int) -> Self:
        """
        Args:
            bytes_max: Bytes of the longest message that is taken.
        """
    def feed(self, data: bytes) -> list[tuple[int | None, bytes | None, bytes]]:
        """The messages that ``data`` completes.

        Responses are ``(msgid, error, result)``, both encoded, ``error`` ``None`` where there is none;
        notifications ``(None, method, params)``.

        Raises:
            ValueError: What comes is not MessagePack-RPC, or too long; nothing more can be understood.
        """

@final
class WebSocket:
    """One WebSocket. The first send or receive accepts it, unless it was accepted before.

    Methods do what they say when they are called; awaiting them waits for room to go on.
    """

    def accept(
        self,
        subprotocol: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> Awaitable[None]:
        """Grant the client its WebSocket.

        Args:
            subprotocol: One of ``subprotocols``.
            headers: Fields of the response.

        Raises:
            ConnectionClosed: The client is gone.
        """
    def send(self, message: str | Buffer) -> Awaitable[None]:
        """Send a message: a ``str`` as text, anything else as binary.

        Raises:
            ConnectionClosed: It is over.
        """
    def send_json(self, value: object) -> Awaitable[None]:
        """Send an object as JSON, in a text message."""
    def receive(self) -> Awaitable[str | bytes]:
        """The next message.

        Raises:
            ConnectionClosed: It is over, and all that came before has been received.
        """
    def __aiter__(self) -> Self:
        """Messages, until it is over."""
    def __anext__(self) -> Awaitable[str | bytes]: ...
    def close(self, code: int = 1000, reason: str = "") -> Awaitable[None]:
        """Close it; nothing can be sent any more.

        Args:
            code: 1000 to 1003, 1007 to 1014, or 3000 to 4999.
            reason: At most 123 bytes in UTF-8.
        """
    @property
    def request(self) -> Request:
        """The request that it was made of."""
    @property
    def path(self) -> str:
        """As ``Request.path``."""
    @property
    def path_params(self) -> dict[str, Any]:
        """As ``Request.path_params``."""
    @property
    def query(self) -> QueryParams:
        """As ``Request.query``."""
    @property
    def headers(self) -> Headers:
        """As ``Request.headers``, of the request that asked for it."""
    @property
    def cookies(self) -> dict[str, str]:
        """As ``Request.cookies``."""
    @property
    def client(self) -> tuple[str, int] | None:
        """As ``Request.client``."""
    @property
    def state(self) -> Any:
        """A namespace for the handler."""
    @property
    def app(self) -> Any:
        """As ``Request.app``."""
    @property
    def subprotocols(self) -> list[str]:
        """What the client has offered, best first."""
    @property
    def subprotocol(self) -> str | None:
        """What was agreed on."""
    @property
    def is_open(self) -> bool:
        """Whether messages can be sent: it is accepted, and no side has begun to close it."""
    @property
    def close_code(self) -> int | None:
        """The code it was closed with: 1005 without one, 1006 if the client was lost; ``None`` before."""
    @property
    def close_reason(self) -> str | None:
        """The reason of the close frame, empty without one; ``None`` before."""
    def _take(self) -> str | bytes | None:
        """The next message, ``None`` if there is none yet.

        Raises:
            ConnectionClosed: It is over.
        """
    def _send(self, message: str | Buffer) -> bool:
        """Queue a message; ``False``: wait for room before the next."""
    def _is_full(self) -> bool: ...
    def _on_message(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, on the reactor's thread, when ``_take`` has something new."""
    def _on_writable(self, callback: Callable[[], object]) -> None: ...
    def _set_task(self, task: object) -> None:
        """Call ``task.cancel()`` if the client is lost while no call waits for it."""
    def _is_open(self) -> bool:
        """Whether the client is connected."""
    def _respond(self, value: object) -> None:
        """The handler has returned this, in any thread."""
    def _fail(self, error: BaseException) -> None:
        """The handler has raised this, in any thread."""

@final
class _WebTransport:
    """One WebTransport session, as the extension knows it; the object that is attached is told what comes."""

    def attach(self, listener: object) -> None: ...
    def accept(self, headers: Iterable[tuple[str, str]] | None = None) -> None: ...
    def open(self, number: int, is_bidirectional: bool) -> bool: ...
    def send(self, stream: int, data: Buffer, fin: bool) -> int:
        """How many bytes that were."""
    def await_room(self, stream: int) -> None: ...
    def want(self, stream: int, bytes: int) -> None: ...
    def reset(self, stream: int, code: int) -> None: ...
    def stop(self, stream: int, code: int) -> None: ...
    def send_datagram(self, data: Buffer) -> None: ...
    def ping(self) -> None: ...
    def count_dropped(self) -> None:
        """Count a datagram that was dropped."""
    def begin_call(self, stream: int, name: str, class_: int, /) -> None:
        """Note that a procedure is called on a stream."""
    def end_call(self, stream: int, status: int, bytes: int, is_cancelled: bool) -> None:
        """Note that the call of a stream is over."""
    def close(self, code: int = 0, reason: str = "") -> None: ...
    def limit(self, name: str) -> int: ...
    @property
    def request(self) -> Request: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def close_code(self) -> int | None: ...
    @property
    def close_reason(self) -> str | None: ...
    @property
    def datagram_bytes_max(self) -> int: ...

@final
class Room:
    """WebSockets and WebTransport sessions that get the same messages; a session gets each on a stream.

    Sending does not wait: a member whose write queue is full misses the message or is closed. A WebSocket
    leaves automatically when it is closed. Callable from any thread.
    """

    def __new__(cls, *, slow: Literal["close", "drop"] = "close", slow_code: int = 1013) -> Self:
        """
        Args:
            slow: What becomes of a member that does not keep up: it is closed, or misses messages.
            slow_code: The code it is closed with.
        """
    def join(self, socket: WebSocket | SerialWebSocket | WebTransportSession) -> bool:
        """Let ``socket`` in; ``False`` if it was in already.

        Raises:
            ConnectionClosed: It is over.
        """
    def leave(self, socket: WebSocket | SerialWebSocket | WebTransportSession) -> bool:
        """Let ``socket`` go; ``False`` if it was not in."""
    def send(
        self,
        message: str | Buffer,
        *,
        exclude: WebSocket | SerialWebSocket | WebTransportSession | None = None,
    ) -> int:
        """Send to all members, ``exclude`` excepted; returns how many there are in this process."""
    def send_json(
        self,
        value: object,
        *,
        exclude: WebSocket | SerialWebSocket | WebTransportSession | None = None,
    ) -> int:
        """Send an object as JSON, in a text message."""
    @property
    def missed(self) -> int:
        """Messages lost: one for each member here that was too slow, and each other worker that was."""
    def __len__(self) -> int:
        """Members in this process."""
    def __bool__(self) -> Literal[True]: ...
    def __contains__(
        self, socket: WebSocket | SerialWebSocket | WebTransportSession, /
    ) -> bool: ...
    def _deliver(
        self,
        is_text: bool,
        payload: bytes,
        exclude: WebSocket | SerialWebSocket | WebTransportSession | None = None,
    ) -> None:
        """Send what another process has sent to the room of this name."""
    def _deliver_to(
        self,
        socket: WebSocket | SerialWebSocket | WebTransportSession,
        is_text: bool,
        payload: bytes,
    ) -> None:
        """Send a message to one socket only, in the order of the room's messages."""
    @staticmethod
    def _undelivered_bytes() -> int:
        """Bytes of such messages, of all rooms, that the reactors here have not taken yet."""
    def _set_relay(self, relay: Callable[..., int] | None, is_ordered: bool = False) -> None:
        """Call ``relay(is_text, payload)``, which returns how many workers do not get the message.

        One that ``is_ordered`` is called with the excluded socket too, and delivers to the members here
        itself.
        """

@final
class Native:
    """The native gateway: routes and how their handlers are called."""

    def __new__(
        cls,
        *,
        app: object,
        on_error: Callable[[Request, BaseException], Any],
        submit: Callable[..., bool] | None = None,
        compiled_threads: int = 1,
        compiled_queue_max: int = 0,
    ) -> Self:
        """
        Args:
            on_error: Makes a response of an exception (returns what a handler may return).
            submit: ``submit(request, handler, args) -> bool`` hands a blocking handler to the thread
                pool, which calls ``request._respond`` or ``request._fail``; ``False``: queue full, 503.
            compiled_threads: Threads for handlers of the kind ``pooled``, at most.
            compiled_queue_max: Requests that wait for one of them, at most; 503 beyond.
        """
    def add(
        self,
        method: str,
        pattern: str,
        handler: Callable[..., Any],
        *,
        kind: Literal[
            "def", "async", "blocking", "compiled", "pooled", "goroutine", "pooled_goroutine"
        ],
        name: str = "",
        args: tuple[str | None, ...] = ...,
        stream: bool = False,
        body_bytes_max: int | None = None,
        compress: Sequence[tuple[str, int]] | None = None,
        form: FormLimits | None = None,
        declared: DeclaredResponse | None = None,
        app: object = None,
        forwards: bool = False,
        direct: DirectForward | None = None,
    ) -> None:
        """Add a route.

        Args:
            name: What messages call the handler.
            pattern: ``/items/{id:int}``; converters ``str`` (default), ``int``, ``float``, ``uuid``,
                ``path`` (the rest, slashes included, may be empty).
            args: Positional arguments of ``handler``: ``None`` is the request, a string the path
                parameter of that name.
            stream: Call the handler when the head is complete, not when the body is.
            body_bytes_max: Bytes that a body may have; ``None``: what the limits say.
            compress: Levels at which responses are compressed, none: not at all; ``None``: the reactor's.
            form: The handler reads a form, which may have so much; a multipart body is parsed as it comes.
            declared: What is made of the handler's values.
            kind: How ``handler`` is called; ``compiled`` and ``pooled`` take a ``CompiledHandler``.

        Raises:
            ValueError: The pattern is malformed or contradicts an earlier one.
        """
    def class_of_procedure(self, name: str) -> int:
        """What calls of a procedure are counted under, on whatever they come."""
    def mark_procedure(self, pattern: str) -> None:
        """Count calls of the route with this pattern by their codes (``connectrpc/status.py``)."""
    def redirect_slashes(self) -> None:
        """Redirect paths that exist with a slash at their end, or without theirs, there (308)."""
    def add_procedure(
        self,
        name: str,
        handler: Callable[..., object],
        *,
        kind: Literal["def", "async", "blocking"],
        takes_nothing: bool,
        decoders: object,
        call_ms: int | None = None,
        handler_name: str = "",
    ) -> None:
        """Let ``handler`` be called as ``name``.

        Args:
            name: What callers call it.
            handler: Called itself where no parameters are given and it ``takes_nothing``.
            kind: As for ``add``.
            takes_nothing: It has no parameter without a default.
            decoders: Has ``msgpack_array``, ``msgpack_map``, ``json_array`` and ``json_object``:
                functions that take encoded parameters of that form, call ``handler`` and return what
                it returns.
            call_ms: Milliseconds that a call may take; the limit ``rpc_call_ms`` without it.
        """
    def add_websocket(
        self,
        pattern: str,
        handler: Callable[..., Any],
        *,
        kind: Literal["async", "blocking"],
        name: str = "",
        args: tuple[str | None, ...] = ...,
        app: object = None,
    ) -> None:
        """Add a path of WebSockets.

        Args:
            name: What messages call the handler.
            args: Positional arguments of ``handler``: ``None`` is the WebSocket, a string the path
                parameter of that name.

        Raises:
            ValueError: The pattern is malformed or contradicts an earlier one.
        """
    def add_webtransport(
        self, pattern: str, handler: Callable[..., Any], *, name: str = "", app: object = None
    ) -> None:
        """Add a path of WebTransport sessions; ``handler`` gets the session and returns a coroutine.

        Raises:
            ValueError: The pattern is malformed or contradicts an earlier one.
        """
    def offer_rpc(self, path: str) -> None:
        """Make connections of QUIC without HTTP/3 sessions of ``path``."""
    def set_unmatched(
        self,
        handler: Callable[..., Any],
        *,
        kind: Literal[
            "def", "async", "blocking", "compiled", "pooled", "goroutine", "pooled_goroutine"
        ],
    ) -> None:
        """Call ``handler(request, status, allow)`` for 404 and 405 in place of the plain responses."""

@final
class CompiledHandler:
    """Native code that handles requests (``citius.h``). Called from Python it runs without the GIL."""

    def __new__(
        cls,
        address: int,
        *,
        name: str,
        arguments: Sequence[tuple[str, str, str, Any]] = ...,
        content_type: str | None = None,
        keep: object = None,
    ) -> Self:
        """
        Args:
            address: Of a function with the signature that the header says. It is believed.
            name: What the log calls it.
            arguments: Name, source, type and default of a typed function's parameters
                (``citius.web.execution.compiled_handlers.Argument``).
            content_type: The media type of responses that do not set it.
            keep: What the code belongs to; kept for good.

        Raises:
            ValueError: A content type, an address or an argument that is none.
        """
    def __call__(self, request: Request) -> Response: ...
    def start(self, request: Request, pooled: bool) -> CompiledCall:
        """Call it in a goroutine: of the threads if ``pooled``, otherwise of this thread's reactor.

        Raises:
            RuntimeError: There are as many goroutines as ``--goroutines-max`` permits.
        """

@final
class CompiledCall:
    """A call of native code in a goroutine."""

    @property
    def result(self) -> Chan[Response | BaseException]:
        """Receives what has come of it."""
    def cancel(self) -> None:
        """End its waits: nothing wants its response any more."""

_C_API: object
"""The table of ``citius.h`` as of version 1, as a capsule."""

_C_API_2: object
"""The table of ``citius.h``, as a capsule."""

C_API_ADDRESS: int
"""Where the table is."""

C_ABI_VERSION: int

C_ABI_VERSIONS: list[int]
"""Versions of handlers that are served."""

C_SYMBOLS: dict[str, int]
"""Names and addresses of what functions compiled by numba call."""

@final
class DeclaredResponse:
    """What a route declares of its responses: how a handler's value is sent."""

    def __new__(
        cls,
        respond: Callable[[Any], Any],
        *,
        status: int,
        passes_responses: bool,
        node: tuple[Any, ...] | None,
    ) -> Self:
        """
        Args:
            respond: Makes of a value what is sent, in all the ways there are.
            status: That of the response to a value.
            passes_responses: Send any ``Response`` as it is, not only those whose body is bytes or text.
            node: The type of values that are encoded without ``respond``
                (``web/responses/declared/field_copies.py``).
        """
    def encode(self, value: object) -> bytes | None:
        """The value as JSON; ``None`` for one that takes the way through ``respond``."""

@final
class RecordDecoder(Generic[_T]):
    """Makes the instances of a msgspec Struct; see ``citius.msgpack``."""

    def __new__(
        cls,
        kind: type[_T],
        fields: Sequence[tuple[str, str, Sequence[str]]],
        decode: Callable[[bytes], _T],
    ) -> Self:
        """
        Args:
            kind: A Struct whose instances take nothing but the filling of their slots.
            fields: Name, key in messages and types (``int``, ``float``, ``str``, ``bytes``, ``bool``,
                ``None``) of each, in their order.
            decode: Decodes one message; asked about all that is not plain.

        Raises:
            ValueError: A field is no slot.
        """
    def decode_many(self, messages: list[bytes]) -> list[_T]:
        """One instance per message; what ``decode`` raises about one of them."""

@final
class Asgi:
    """The ASGI gateway to one application."""

    def __new__(
        cls,
        app: Callable[..., Any],
        *,
        root_path: str = "",
        state: dict[str, Any],
        debug: bool = False,
        webtransport: bool = False,
    ) -> Self:
        """
        Args:
            app: ``app(scope, receive, send)`` returns an awaitable.
            state: Copied into the scope of each request.
            webtransport: Clients of HTTP/3 may ask for sessions.
            debug: Offer ``http.response.debug``.
        """

@final
class Wsgi:
    """The WSGI gateway of one application."""

    def __new__(
        cls,
        app: Callable[..., Iterable[bytes]],
        environ: dict[str, Any],
        *,
        spool: Callable[[], IO[bytes]],
        root_path: str = "",
        queue_max: int | None = None,
        spawn: Callable[[WsgiJob], object] | None = None,
        wait: Callable[[WsgiJob], object] | None = None,
    ) -> Self:
        """
        Args:
            environ: What every environ says besides what the gateway knows.
            spool: Makes a file for a long body, where the application is called on the reactor's thread.
            queue_max: Requests that may wait for a thread in ``work``; more get a 503.
                ``None``: the application is called on the reactor's thread.
            spawn: ``spawn(job)`` calls ``job.run(kill)`` in a greenlet, at once.
            wait: ``wait(job)`` blocks a greenlet until ``job`` has changed.
        """
    def work(self) -> None:
        """Call the application for queued requests, in this thread, until ``close``."""
    def close(self) -> None:
        """Make ``work`` return when the queue has run dry."""
    @property
    def queued(self) -> int:
        """Requests that wait for a thread."""

@final
class WsgiJob:
    """A WSGI call on its way to a greenlet."""

    def run(self, kill: Callable[[], object] | None = None) -> None:
        """Call the application and send its response.

        Args:
            kill: Ends the caller; called when the client is gone before the end of a streamed response.
        """
    def on_change(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, on the reactor's thread, when there is something new to look at."""

@final
class WsgiInput:
    """``wsgi.input``: the body of one request."""

    def read(self, size: int | None = None, /) -> bytes: ...
    def readline(self, size: int | None = None, /) -> bytes: ...
    def readlines(self, hint: int | None = None, /) -> list[bytes]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@final
class FileWrapper:
    """``wsgi.file_wrapper``: a file as a response, sent by the kernel if it has a descriptor."""

    @property
    def filelike(self) -> Any: ...
    @property
    def blksize(self) -> int: ...
    def __new__(cls, filelike: object, blksize: int = 8192) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def close(self) -> None: ...

_Gateway: TypeAlias = Native | Asgi | Wsgi
"""How a reactor calls its application: one class for each interface."""

@final
class FileBody:
    """A file as the body of a response; it may be sent many times."""

    def __new__(cls, path: str | PathLike[str], root: str | PathLike[str] | None = None) -> Self:
        """Open it; its conditions and ranges are looked at when the response is sent.

        Args:
            root: A directory that ``path``, which may come from a client, must not leave.

        Raises:
            OSError: It cannot be opened; ``FileNotFoundError`` for whatever is wrong with it below ``root``.
        """

@final
class StaticDirectory:
    """A static mount whose responses pass middleware."""

    def __new__(cls, mount: Mount) -> Self:
        """
        Raises:
            ValueError: It cannot be served; the message says why.
        """
    def find(self, request: Request) -> FileBody | bool | None:
        """The file of a request; ``None`` if there is none, ``True`` for a directory without its slash."""

@final
class TokenBuckets:
    """The buckets of one rate limit, shared by all processes that share the memory."""

    def __new__(
        cls, buffer: Buffer, name: bytes, interval_ns: int, burst: int, label: str = ...
    ) -> Self:
        """
        Args:
            buffer: Writable memory such as a shared ``mmap``, with a secret in its first 16 bytes; never
                released.
            name: The same in all processes.
            interval_ns: Nanoseconds until there is one more token.
            burst: Tokens of a full bucket.
            label: What responses call the limit.

        Raises:
            ValueError: An argument that is none.
            MemoryError: Too many names share the memory.
        """
    def take(self, key: bytes, count: int, now_ns: int) -> tuple[bool, int, int, int]:
        """Take tokens of the bucket of ``key``, or none.

        Returns:
            Whether they were there, how many are left, nanoseconds until there are enough and until there
            are all.
        """
    def take_text(self, key: str, now_ns: int) -> str | int:
        """Take one token of the bucket of ``key``.

        Returns:
            What the field ``RateLimit`` says; nanoseconds until there is a token if there was none.
        """
    def take_for_client(self, request: Request) -> str | int:
        """Take one token for the client of ``request``: ``take_text`` with the key of ``by_client``, now."""

@final
class GuardedCall:
    """A handler, or a middleware, as a part of a chain without a coroutine."""

    def __new__(
        cls,
        function: Callable[..., object],
        respond_with: Callable[[Request, Any], Response],
        respond_to: Callable[[Request, Exception], Response],
        takes_request: bool = True,
        next: Callable[[Request], Response] | None = None,
    ) -> Self:
        """
        Args:
            function: Called with the request and ``next``, with the request, or with nothing.
            respond_with: Makes the response of a result that is neither a ``str`` nor a ``Response``.
            respond_to: Makes the response of an exception, of ``function`` or of ``respond_with``.
            takes_request: Whether a handler wants the request.
            next: The chain inside a middleware; ``None`` for a handler.
        """

    def respond(self, request: Request) -> Response:
        """Call the function, and return a response of this request alone."""

@final
class LimitedChain:
    """A limit by client around a chain without a coroutine."""

    def __new__(
        cls,
        buckets: TokenBuckets,
        inner: Callable[[Request], Response],
        refuse: Callable[[Request, int], Response],
        policy: tuple[str, str],
    ) -> Self:
        """
        Args:
            buckets: Where tokens are taken.
            inner: The chain; its response is of the request alone.
            refuse: Responds if there is no token for so many nanoseconds.
            policy: The line beside ``RateLimit``.
        """
    def respond(self, request: Request) -> Response:
        """Take a token; the response of the chain then, with what is left."""

@final
class SharedMetrics:
    """Slots of counters in memory that a supervisor and its workers share."""

    SLOT_BYTES: int

    def __new__(cls, buffer: Buffer) -> Self:
        """
        Args:
            buffer: Writable memory for any number of slots, such as a shared ``mmap``; never released.
        """
    def __len__(self) -> int: ...
    def read(self, slot: int) -> dict[str, Any]:
        """What a worker has counted (``citius/observability/metrics.py`` knows the parts)."""
    def clear(self, slot: int) -> None:
        """Zero a slot for the next worker."""

@final
class Observer:
    """Sees every request of one reactor: counters, access lines, ids and trace context."""

    def __new__(
        cls,
        *,
        metrics: SharedMetrics | None = None,
        slot: int = 0,
        access_log: str | None = None,
        access_log_fd: int | None = None,
        access_log_sample: float = 1.0,
        request_id: str | None = None,
        trace: bool = False,
        trace_sample: float = 1.0,
        spans: bool = False,
        path_patterns: Sequence[str] = ...,
        health: str | None = None,
    ) -> Self:
        """
        Args:
            metrics: Where it counts, on ``slot``; in memory of its own without one.
            access_log: The format of access lines (see docs/guides/observability.md); ``None``: none.
            access_log_fd: Where they go; standard output without it.
            access_log_sample: The share of responses below 400 that get a line.
            request_id: The header that carries a request's id.
            trace: Continue or begin W3C traces.
            spans: Keep finished requests for ``take_spans``.
            path_patterns: Count requests by these, where the gateway knows no routes.
            health: Serve ``/live`` and ``/ready`` below this path.

        Raises:
            ValueError: A format, name or pattern that is none.
        """
    def heartbeat(
        self,
        *,
        now_ms: int,
        lag_us: int,
        queue_length: int = 0,
        queue_age_us: int = 0,
        utc_offset_s: int = 0,
    ) -> None:
        """The loop turns."""
    def set_state(self, state: int, pid: int) -> None:
        """0 starting, 1 ready, 2 draining."""
    def set_checks(self, passed: bool, text: str) -> None:
        """What the readiness checks found."""
    def add_exception(self) -> None:
        """Count an unhandled exception."""
    def read(self) -> dict[str, Any]:
        """Its counters, as ``SharedMetrics.read``."""
    def log_failure(self) -> tuple[int, str | None]:
        """Access lines lost so far, and what went wrong since the last call."""
    def close(self, patience_s: float) -> bool:
        """Write what is left of the access log; ``False`` if there was no time."""
    def take_spans(self) -> list[dict[str, Any]]:
        """Sampled requests that have ended since the last call."""
    def take_client_spans(self) -> list[dict[str, Any]]:
        """Operations of clients of databases that have ended since the last call."""
    def client(
        self, kind: str, label: str, parent: Callable[[], tuple[int, int] | None] | None
    ) -> tuple[int, ClientMetrics] | None:
        """The number of a client of a database and its counters; ``None`` for one too many.

        Args:
            kind: ``pg`` or ``redis``.
            label: Its name; a client of the same kind and name is the same one.
            parent: Returns the identities of the current trace and span, if it is sampled.
        """
    @property
    def spans_dropped(self) -> int: ...

@final
class PgCall:
    """A statement on its way; it starts when it is awaited."""

    def __await__(self) -> Generator[Any, Any, Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: object) -> Any: ...
    def throw(self, error: BaseException, *_rest: object) -> Any: ...
    def close(self) -> None: ...
    def start(self) -> None:
        """Send it without waiting for its result."""
    def _send_started(self) -> None:
        """Send one that compiled code waits for."""

@final
class ClientOperation:
    """An operation that is under way."""

    def end(self, text: str, *, batch: int = 1, error: str | None = None) -> None:
        """It has succeeded, or failed; ``cancelled``: its caller has left. The first call counts.

        Args:
            text: What was executed, without its parameters.
            batch: How many executions it was.
            error: A word for what went wrong.
        """

@final
class ClientMetrics:
    """The counters of one client of a database."""

    def begin(self) -> ClientOperation:
        """An operation begins, in its caller's context."""
    @property
    def is_tracing(self) -> bool:
        """Whether operations are spans of a trace too."""
    def count(self, counter: str) -> None:
        """Count one: ``opened``, ``lost``, ``connect_failed``, ``refused``."""
    def set(self, used: int, idle: int, queued: int) -> None:
        """Set the gauges: connections in use, idle ones, and what waits for one."""

@final
class PgTypes:
    """The types of one database, and the codecs of an application."""

    def __new__(cls) -> Self: ...
    def learn(
        self,
        asked: list[int],
        described: list[tuple[int, str, int, str, int, int, list[str], list[int]]],
    ) -> None:
        """Learn what types are; those that were asked for and are not among ``described`` are text.

        Args:
            asked: Identities of types.
            described: Of each its identity, ``typtype``, the type of its elements or 0, what separates them,
                the type below a domain or 0, the type of the bounds of a range or 0, and the names and types
                of its fields.
        """
    def set_codec(
        self,
        type_oid: int,
        decode: Callable[[Any], object] | None,
        encode: Callable[[Any], object] | None,
        as_text: bool,
    ) -> None:
        """Set how values of a type are converted."""
    def forget(self) -> None:
        """Forget what composite types are: one may have been changed."""

def pg_reset_of(sql: str) -> tuple[str | None, bool]:
    """What undoes what the statements of a text leave of a session, and whether prepared statements end.

    ``None``: they leave nothing; empty: no command undoes it.
    """

@final
class PgPool:
    """Sessions that share calls among them; the first of ``arguments`` is the statement."""

    def __new__(
        cls,
        event_loop: AbstractEventLoop,
        listener: Callable[[str, object], None],
        queue_max: int,
        depth: int,
        has_names: bool,
        types: PgTypes,
        metrics: ClientMetrics | None = None,
        resets: bool = False,
    ) -> Self: ...
    def set_pooled(self) -> None:
        """Refuse what would change a session in blocks, too: behind a pooler it is out of reach then."""
    def fetch(
        self, *arguments: object, as_: object = None, session: PgConnection | PgBlock | None = None
    ) -> PgCall: ...
    def look_up(self, sql: str, types: list[int], session: PgConnection) -> PgCall:
        """Rows that say what types are, for statements of the session that wait for that."""
    def fetch_described(
        self, sql: str, arguments: tuple[object, ...], session: PgConnection
    ) -> PgCall:
        """The description of the columns (as PEP 249 has it, or ``None``), the rows, and the count."""
    def fetch_many(
        self,
        sql: str,
        rows: Iterable[tuple[object, ...] | list[object]],
        /,
        as_: object = None,
        session: PgConnection | PgBlock | None = None,
    ) -> PgCall: ...
    def execute_each(
        self,
        sql: str,
        rows: Iterable[tuple[object, ...] | list[object]],
        session: PgConnection | PgBlock,
    ) -> PgCall:
        """Executes a statement with each of these parameters, in one request: the number of rows changed."""
    def fetch_one(
        self, *arguments: object, as_: object = None, session: PgConnection | PgBlock | None = None
    ) -> PgCall: ...
    def fetch_value(
        self, *arguments: object, session: PgConnection | PgBlock | None = None
    ) -> PgCall: ...
    def execute(
        self, *arguments: object, session: PgConnection | PgBlock | None = None
    ) -> PgCall: ...
    def fetch_json(
        self,
        *arguments: object,
        items: str | None = None,
        session: PgConnection | PgBlock | None = None,
    ) -> PgCall: ...
    def fetch_json_one(
        self, *arguments: object, session: PgConnection | PgBlock | None = None
    ) -> PgCall: ...
    def script(self, sql: str, session: PgConnection | None) -> PgCall:
        """Statements without parameters, by the simple protocol."""
    def copy(self, sql: str, session: PgConnection, sink: Callable[[bytes | None], None]) -> PgCall:
        """A COPY; ``sink`` gets its data, or ``None`` when the server wants some."""
    def share(self, session: PgConnection) -> None:
        """Let a session take calls."""
    def serve_waiting(self, session: PgConnection) -> None:
        """Hand calls that wait to a session that does not share."""
    def unshare(self, session: PgConnection | PgBlock | None = None) -> PgConnection | None:
        """Take a session from those that share; the least busy one without an argument."""
    @property
    def queued(self) -> int:
        """Calls that wait for a session."""
    def expire(self, wait_ms: int, error: Callable[[], BaseException]) -> None:
        """Fail the calls that have waited for so long."""
    def stop_queueing(self) -> None:
        """Let no more calls wait."""

@final
class PgBlock:
    """A transaction, or a savepoint, that has a session: its calls are refused when it has ended."""

    def __new__(cls, session: PgConnection) -> Self: ...
    def end(self) -> None:
        """Have calls that come later refused."""

@final
class PgConnection:
    """A session with a server."""

    def __new__(
        cls,
        pool: PgPool,
        login: tuple[str, str | None, str, list[tuple[str, str]], str],
        listener: Callable[[str, object], None],
        wake: Callable[[], None],
        tls: tuple[ClientTls, str] | None = None,
    ) -> Self: ...
    def receive(self, data: bytes) -> None:
        """Bytes have come, on the event loop's own thread and within no task's step."""
    def end(self, why: str) -> None:
        """The connection has ended."""
    def take_output(self) -> bytes:
        """What is to be sent."""
    def terminate(self) -> None:
        """Say goodbye to the server."""
    def copy_data(self, call: PgCall, data: bytes) -> None:
        """Send data of a COPY; nothing if it is not the one that is under way."""
    def end_copy(self, call: PgCall, why: str | None = None) -> None:
        """End the data of a COPY if it is the one that is under way; with a reason the server refuses it."""
    def attach(self, reactor: Carrier, fd: int) -> None:
        """Have a reactor carry the bytes."""
    def detach(self, reactor: Carrier, wake: Callable[[], None]) -> None:
        """Have Python carry them again: ``wake`` is called when there is something to send."""
    def know_types(self) -> None:
        """What can be found out of unknown types is known: send what has waited for it."""
    def fail_types(self, error: BaseException) -> None:
        """It could not be found out: what has waited for it fails."""
    def forget_statements(self) -> None:
        """Have statements prepared anew when they come again: what they are about has been changed."""
    def cancel_request(self) -> bytes | None:
        """What another connection sends to cancel what this session does."""
    def set_changed(self) -> None:
        """Have it reset before another block has it, whatever this one does."""
    def take_changes(self) -> str | None:
        """What is to be executed before another block has it; empty: nothing undoes what is left."""
    def is_blocked(self) -> bool:
        """Whether the server works for a call that no code waits for any more."""
    def has_abandoned(self) -> bool:
        """Whether there is such a call anywhere in the pipeline."""
    def set_cancelling(self, is_cancelling: bool, is_held: bool) -> None:
        """Say whether a cancel request is under way to this session."""
    @property
    def load(self) -> int:
        """Requests under way."""
    @property
    def status(self) -> int:
        """0: in no transaction, 1: in one, 2: in one that has failed."""
    @property
    def heard(self) -> int:
        """A number that changes whenever something comes."""
    @property
    def process(self) -> int | None:
        """The identifier of the session's server process."""

@final
class PgPortal:
    """Rows in portions, of a session in a transaction."""

    def __new__(
        cls,
        pool: PgPool,
        session: PgConnection,
        rows_max: int,
        as_: object = None,
        is_described: bool = False,
    ) -> Self: ...
    def open(self, *arguments: object) -> PgCall:
        """The first rows of a statement."""
    def next(self) -> PgCall:
        """The next rows."""
    @property
    def is_done(self) -> bool:
        """Whether the last row has come."""
    def close(self) -> None:
        """Close it, with the next request of the session."""

@final
class RpcQuic:
    """A connection of RPC over QUIC without HTTP/3, client side: messages and datagrams in and out."""

    def __new__(
        cls, tls: ClientTls, server_name: str, remote: str, message_bytes_max: int
    ) -> Self: ...
    def send(self, data: bytes) -> None:
        """Take whole messages of MessagePack-RPC, one after another."""
    def receive(self, datagram: bytes) -> None:
        """Take a datagram of the server's."""
    def datagrams(self) -> list[bytes]:
        """The datagrams that are to be sent now."""
    def take(self) -> bytes:
        """Messages that have come: responses, and ``$/goodbye`` when the server takes leave."""
    @property
    def has_come(self) -> bool:
        """Whether ``take`` has something, or the connection is over."""
    @property
    def due_s(self) -> float | None:
        """Seconds until ``datagrams`` is to be called again; ``None``: not before something comes."""
    @property
    def is_connected(self) -> bool:
        """Whether the handshake is over."""
    @property
    def reason(self) -> str | None:
        """Why the connection is over, if it is."""
    @property
    def is_in_vain(self) -> bool:
        """Whether TLS is why it is over, so that another attempt would end likewise."""
    @property
    def queued_bytes(self) -> int:
        """Bytes of messages that have to wait."""
    @property
    def is_delivered(self) -> bool:
        """Whether the server has acknowledged everything."""
    def close(self) -> None:
        """End the connection; ``datagrams`` has what tells the server."""

@final
class ClientTls:
    """The rules that connections to servers are secured by."""

    def __new__(
        cls,
        verification: str,
        *,
        authorities: Sequence[str | PathLike[str]] = ...,
        identity: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        password: str | None = None,
        version_min: str = "tls1.2",
        protocols: Sequence[str] = ...,
        pins: Sequence[bytes] = ...,
    ) -> Self: ...
    def stream(self, server_name: str) -> ClientTlsStream:
        """A connection to the server of this name or address whose bytes the caller carries."""

@final
class ClientTlsStream:
    """TLS of one connection: bytes in, bytes out."""

    def receive(self, data: bytes) -> bytes:
        """Take what has come; the plaintext of it."""
    def transmit(self, data: bytes) -> bytes:
        """Take plaintext to send; what is to be sent now."""
    @property
    def is_handshaking(self) -> bool: ...

@final
class RedisCall:
    """A command on its way; it starts when it is awaited or waited for."""

    def __await__(self) -> Generator[Any, Any, Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: object) -> Any: ...
    def throw(self, error: BaseException, *_rest: object) -> Any: ...
    def close(self) -> None: ...
    def wait(self) -> Any:
        """Wait for the result in this thread or greenlet."""
    def hold(self) -> None:
        """Make it a command of a transaction, which is not sent by itself."""
    def fail(self, error: BaseException) -> None:
        """Have a command of a transaction that will not be sent fail."""
    def start(self) -> None:
        """Send it without waiting for its result."""

@final
class RedisClient:
    """Connections to one Redis, or to all nodes of a cluster, that share calls among them."""

    def __new__(
        cls,
        listener: Callable[[str, Any], None],
        *,
        event_loop: AbstractEventLoop | None = None,
        is_text: bool = False,
        queue_max: int,
        timeout_ms: int | None,
        reply_bytes_max: int,
        cache: tuple[int, int, int, list[bytes], bool] | None = None,
        metrics: ClientMetrics | None = None,
    ) -> Self:
        """
        Args:
            listener: Told what happens, on any thread: ``(kind, value)``.
            cache: Entries, bytes, age in milliseconds, prefixes of keys, and whether fields of hashes may
                have times to live of their own.
        """
    def execute(
        self,
        *words: object,
        as_: object = None,
        then: Callable[[Any], object] | None = None,
        blocks_ms: int | None = None,
        connection: RedisConnection | None = None,
        node: int | None = None,
    ) -> RedisCall:
        """A command: its words; what strings of its reply become, and what becomes of its value.

        Raises:
            ValueError: It changes the state of a connection that others use too.
        """
    def get(self, key: object, as_: object = None) -> RedisCall: ...
    def get_msgpack(self, key: object, as_: object = None) -> RedisCall: ...
    def get_json(self, key: object, as_: object = None) -> RedisCall: ...
    def script(
        self,
        source: str,
        hash: str,
        arguments: tuple[object, ...],
        *,
        is_read_only: bool = False,
        as_: object = None,
        connection: RedisConnection | None = None,
    ) -> RedisCall:
        """A script: by its hash, or in full when the server does not know it."""
    def transaction(
        self, calls: list[RedisCall], connection: RedisConnection | None = None
    ) -> RedisCall:
        """Commands that were held, between ``MULTI`` and ``EXEC``; each gets its own result."""
    def acquire(self, key: str | bytes | None = None) -> RedisCall:
        """A connection for the caller alone; of a cluster to the node that has this key."""
    def acquire_instead(self, call: RedisCall, node: int, error: str) -> RedisCall | None:
        """The call for another connection than ``call`` has led to, where ``error`` came from that node.

        ``None``: the error leads nowhere.

        Raises:
            NotReady: The time of the first call is up.
        """
    def masters(self) -> list[int]:
        """The servers that have slots of a cluster."""
    def is_connected(self, node: int) -> bool:
        """Whether a server has connections that calls share."""
    def forget(self) -> None:
        """Keep no reply that is kept now."""
    def give_back(self, connection: RedisConnection, is_kept: bool) -> None:
        """Take back such a connection; without ``is_kept`` it is to be closed."""
    def share(self, connection: RedisConnection, is_blocking: bool) -> None:
        """Let a connection take calls: any, or one at a time that the server may keep waiting."""
    def unshare(self, connection: RedisConnection) -> None:
        """Take a connection from those that take calls."""
    def node(self, address: str) -> int:
        """The number of the server at ``host:port``."""
    def address(self, node: int) -> str | None:
        """The address of a server."""
    def node_of(self, key: str | bytes) -> int:
        """The number of the server that has a key."""
    def any_node(self) -> int:
        """The number of a server that has connections."""
    def set_slots(self, ranges: list[tuple[int, int, int]]) -> None:
        """Have slots belong to servers: the first one, the last one, and the server's number."""
    def route_again(self, node: int) -> None:
        """Send calls that wait for a server to where their keys are now."""
    def send_parked(self) -> None:
        """Send calls again that a node could not serve a moment ago."""
    def waiting(self, node: int, is_blocking: bool) -> int:
        """Calls that wait for a connection of a server."""
    @property
    def queued(self) -> int:
        """Calls that wait for a connection."""
    def expire(
        self, error: Callable[[], BaseException], *, all: bool = False, ago_ms: int = 0
    ) -> bool:
        """Fail what had waited for too long so many milliseconds ago; whether anything waits still."""
    def stop(self) -> None:
        """Let no more calls wait."""
    def kept(self) -> tuple[int, int, int, int]:
        """Replies that are kept, their bytes, hits and misses."""

@final
class RedisConnection:
    """A connection to a server."""

    def __new__(
        cls,
        client: RedisClient,
        node: int,
        login: tuple[str | None, str | None, str, int],
        listener: Callable[[str, object], None],
        wake: Callable[[], None],
        *,
        tls: tuple[ClientTls, str] | None = None,
        is_tracking: bool = False,
        subscribes: bool = False,
    ) -> Self:
        """
        Args:
            login: User, password, name and number of the database.
            wake: Called when there is something to send, on any thread.
            is_tracking: Changes of keys that are kept are told here.
            subscribes: Commands follow whose only replies are errors.
        """
    def receive(self, data: bytes) -> None:
        """Bytes have come, on the carrier's own thread and within no task's step."""
    def end(self, why: str) -> None:
        """The connection has ended."""
    def take_output(self) -> bytes:
        """What is to be sent."""
    def send(self, *words: object) -> None:
        """Send a command that has no reply, such as one that subscribes."""
    def attach(self, reactor: Carrier, fd: int) -> None:
        """Have a reactor carry the bytes."""
    def detach(self, reactor: Carrier, wake: Callable[[], None]) -> None:
        """Have Python carry them again."""
    def watch(self) -> None:
        """Refuse commands that change anything but the keys that are watched."""
    @property
    def node(self) -> int:
        """The number of its server."""
    @property
    def is_lent(self) -> bool:
        """Whether a caller has it for itself."""
    @property
    def silent_ms(self) -> int:
        """Since when nothing has come."""
    @property
    def load(self) -> int:
        """Calls under way."""
    @property
    def id(self) -> int:
        """Its number at the server."""

@final
class TlsTickets:
    """The secret of TLS session tickets, for workers that are forked after it was made."""

    def __new__(cls) -> Self: ...
    def advance(self) -> None:
        """Forget what belongs to times that no ticket is good for any more."""

@final
class HttpOrigin:
    """Scheme, host and port, and the way there; equal ones share connections."""

    def __new__(
        cls,
        scheme: str,
        host: str,
        port: int,
        *,
        sni: str | None = None,
        proxy: str | None = None,
        unix: str | None = None,
    ) -> Self: ...
    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def server_name(self) -> str:
        """The name that the certificate must have."""
    @property
    def proxy(self) -> str | None: ...
    @property
    def unix(self) -> str | None: ...
    @property
    def authority(self) -> str:
        """The value of ``Host``."""

@final
class HttpReply:
    """A response: whole, or with content that is read from it."""

    @property
    def status(self) -> int: ...
    @property
    def http_version(self) -> str: ...
    @property
    def reason(self) -> bytes: ...
    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """Names and values as sent, in their order."""
    def field(self, name: bytes) -> bytes | None:
        """The first value of a field, whatever the case of its name."""
    @property
    def body(self) -> bytes:
        """The content; empty if it is streamed."""
    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """Fields behind the content; of a streamed one when it has ended."""
    @property
    def informational(self) -> list[tuple[int, list[tuple[bytes, bytes]]]]:
        """Responses before this one: status and fields."""
    @property
    def connection_reused(self) -> bool: ...
    @property
    def remote(self) -> str:
        """The address of the server."""
    @property
    def times(self) -> tuple[float, float]:
        """Seconds that the request waited for a connection, and from then to the response."""
    def read(self) -> HttpRead:
        """The next of the content; empty at its end."""
    def close(self) -> None:
        """Read no more: a connection whose response is not complete is closed."""
    def forwarded_fields(self, via: str) -> list[tuple[str, str]]:
        """Its fields for the client of a gateway that is called ``via``."""
    @property
    def is_tunnel(self) -> bool:
        """Whether its connection has become a tunnel."""
    def on_end(self, callback: Callable[[], object]) -> None:
        """Have ``callback()`` called when the content has been passed on, or is not read any more."""

@final
class Relay:
    """The content of a response of another server, as the body of a ``Response``."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def close(self) -> None:
        """Give the response up."""

def relay(reply: HttpReply) -> Relay:
    """The content of a reply as the body of a ``Response``."""

@final
class ForwardServer:
    """What is known of one of several servers."""

    def __new__(cls) -> Self: ...
    def begin(self) -> None:
        """Count a request that goes to it."""
    def end(self) -> None:
        """Count one that has ended."""
    def answered(self) -> None:
        """Note that it has responded."""
    def unanswered(self) -> int:
        """Note that it has not; how often in a row."""
    def leave_alone(self, ms: int) -> bool:
        """Give it no requests for so long; whether it got some before."""
    @property
    def requests(self) -> int:
        """Requests under way."""
    @property
    def is_usable(self) -> bool:
        """Whether nothing speaks against it."""
    is_up: bool
    """By its checks."""
    is_draining: bool

@final
class ForwardServers:
    """Several servers, and which one gets the next request."""

    def __new__(
        cls, servers: Sequence[ForwardServer], balance: str = "round_robin", *,
        names: Sequence[str] = ..., key: str | None = None,
    ) -> Self:  # fmt: skip
        """
        Args:
            servers: The servers.
            balance: ``round_robin``, ``least_requests`` or ``hash``.
            names: What is hashed of the servers.
            key: What is hashed of requests: a field, ``:path``, or what is given to ``choose_hashed``.
        """
    def choose(self, without: Sequence[int] = ..., request: Request | None = None) -> int | None:
        """The place of the server for a request that is at none of ``without``."""
    def choose_hashed(self, key: bytes, without: Sequence[int]) -> int | None:
        """The same for a request that has this key."""

@final
class ForwardLimit:
    """How many requests of a declaration are passed on at a time."""

    def __new__(cls, requests_max: int | None = None) -> Self: ...
    def begin(self) -> None:
        """One more is under way."""
    def end(self) -> None:
        """One has ended."""
    @property
    def requests(self) -> int:
        """How many are under way."""
    @property
    def is_reached(self) -> bool:
        """Whether there are as many as there may be."""

@final
class OriginSlots:
    """How many requests one origin gets at once."""

    def __new__(cls, count: int) -> Self: ...
    def take(self) -> bool:
        """Take a slot, if one is free and nobody waits."""
    def take_or_wait(self) -> bool:
        """The same; without one there is one more that waits."""
    def waits_no_more(self) -> None:
        """One waits no more: it gets a slot that was not given back, or has given up."""
    def give(self) -> bool:
        """Give a slot back; ``False`` if somebody waits, who is to get it."""

@final
class CircuitGate:
    """What has to be known of a circuit breaker before each request, and after most."""

    def __new__(cls) -> Self: ...
    def set(self, is_open: bool, is_failing: bool, changes: int) -> None:
        """``is_open``: not every request may be sent. ``is_failing``: the request before has failed.

        ``changes``: how often it has opened or closed.
        """

@final
class OriginLimits:
    """What limits requests to one origin."""

    def __new__(
        cls,
        slots: tuple[OriginSlots, Callable[[], None]] | None = None,
        breaker: tuple[
            CircuitGate,
            Callable[[bool, int | None, BaseException | None, int], None],
            Sequence[int],
        ]
        | None = None,
    ) -> Self:
        """
        Args:
            slots: The slots, and what hands one over to who waits.
            breaker: What is known of the circuit breaker, what is told the outcome of a request, and the
                statuses that are failures.
        """

@final
class ForwardSlot:
    """A slot of an origin, until it is given back or gone."""

    def release(self) -> None:
        """Give it back."""

@final
class DirectForward:
    """What passes the requests of a route on without Python."""

    def learn(
        self, server: int, pool: HttpPool, origin: HttpOrigin, metrics: ClientMetrics | None = None,
        limits: OriginLimits | None = None,
    ) -> None:  # fmt: skip
        """Have requests to the server at this place go by this pool and to this origin."""

def direct_forward(
    rules: ForwardRules,
    servers: ForwardServers,
    own: Sequence[tuple[bytes, bytes]],
    deadlines: tuple[float | None, float | None, float | None, float | None, float | None],
    limit: ForwardLimit,
    to_python: Callable[
        [Request, int, Any, ClientOperation | None, ForwardSlot | None, int],
        Coroutine[Any, Any, Response],
    ],
) -> DirectForward:
    """What passes requests on, once it has learnt by what.

    Args:
        rules: How heads are made.
        servers: The servers.
        own: Fields that are set.
        deadlines: Seconds for connecting, reading, writing, waiting for a connection, and in all.
        limit: How many are passed on at a time.
        to_python: Goes on with a request, by an error or a reply of the server at a place; counts the call
            by its operation, and gives back the slot that it has. The last argument: how often the circuit
            breaker had opened or closed when it was sent.
    """

@final
class ForwardRules:
    """How heads of requests are made for other servers."""

    def __new__(
        cls,
        *,
        via: str,
        path: Sequence[str | int] | None = None,
        x_forwarded: bool = True,
        forwarded: bool = False,
        keeps_host: bool = False,
    ) -> Self:
        """
        Args:
            via: What this gateway is called.
            path: Texts, and places of path parameters; the path of the request without it.
            x_forwarded: ``X-Forwarded-For`` and its like are set.
            forwarded: ``Forwarded`` is set.
            keeps_host: ``Host`` is passed on.
        """
    def head(self, request: Request) -> tuple[str, list[tuple[bytes, bytes]]]:
        """Target and fields of a request for another server.

        Raises:
            HTTPError: It is not to be passed on.
        """
    @staticmethod
    def has_body(request: Request) -> bool:
        """Whether a request has content, or is to have."""

@final
class HttpCall:
    """A request on its way; it starts when it is awaited or waited for."""

    def __await__(self) -> Generator[Any, Any, HttpReply]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: object) -> Any: ...
    def throw(self, error: BaseException, *_rest: object) -> Any: ...
    def close(self) -> None: ...
    def start(self) -> None:
        """Send it without waiting for its response."""
    def wait(self) -> HttpReply:
        """Wait for the response in this thread or greenlet."""

@final
class HttpRead:
    """The next piece of a response's content."""

    def __await__(self) -> Generator[Any, Any, bytes]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: object) -> Any: ...
    def throw(self, error: BaseException, *_rest: object) -> Any: ...
    def close(self) -> None: ...
    def wait(self) -> bytes: ...

@final
class HttpSending:
    """Room for the next piece of a request's content."""

    def __await__(self) -> Generator[Any, Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, _value: object) -> Any: ...
    def throw(self, error: BaseException, *_rest: object) -> Any: ...
    def close(self) -> None: ...
    def wait(self) -> None: ...

@final
class HttpUpload:
    """Content of a request that is sent while it is made."""

    def send(self, data: bytes) -> HttpSending:
        """Send a piece; awaited, it waits until there is room for the next."""
    def end(self, trailers: Iterable[tuple[str | bytes, str | bytes]] | None = None) -> HttpSending:
        """There is no more; these fields follow it."""
    def abort(self) -> None:
        """Give it up: the request fails."""
    @property
    def is_closed(self) -> bool:
        """Whether what is given is dropped, because the exchange is over."""

@final
class HttpPool:
    """Connections to any number of servers."""

    def __new__(
        cls,
        listener: Callable[[str, Any], None],
        *,
        event_loop: AbstractEventLoop | None = None,
        connections_max: int = 1000,
        connections_per_origin_max: int = 100,
        queue_max: int = 10_000,
        keepalive_s: float = 60.0,
        body_bytes_max: int = ...,
        offers_h2: bool = False,
        speaks_h2: bool = False,
        limits: dict[str, int] | None = None,
    ) -> Self:
        """
        Args:
            listener: Told what is to be done, on any thread: ``(kind, value)``.
        """
    def send(
        self,
        origin: HttpOrigin,
        method: str,
        target: str,
        fields: list[tuple[str | bytes, str | bytes]],
        body: bytes | HttpUpload | None = None,
        stream: bool = False,
        deadlines: tuple[float | None, float | None, float | None, float | None, float | None]
        | None = None,
    ) -> HttpCall:
        """A request.

        Args:
            deadlines: Seconds for connecting, reading, writing, waiting for a connection, and in all.
        """
    def forward(
        self,
        origin: HttpOrigin,
        method: str,
        target: str,
        fields: list[tuple[bytes, bytes]],
        request: Request,
        deadlines: tuple[float | None, float | None, float | None, float | None, float | None]
        | None = None,
    ) -> HttpCall:
        """A request that passes on that of a client: its content goes there, informational responses back."""
    def upload(self, length: int | None = None) -> HttpUpload:
        """Content of a length that is known, or in chunks."""
    def not_opened(
        self, lane: int, class_: str, message: str, reason: str | None = None, /
    ) -> None:
        """A connection that was being made is not to be had."""
    def look(self, ago_ms: int = 0) -> int | None:
        """Fail what takes too long; in how many milliseconds to look again."""
    def stop(self) -> None:
        """Take no more calls, and close all connections."""
    def counts(self) -> tuple[int, int, int, int]:
        """Connections that are open, idle and being made, and calls that wait."""
    @property
    def is_of_process(self) -> bool: ...

@final
class HttpConnection:
    """A connection to a server."""

    def __new__(
        cls,
        pool: HttpPool,
        origin: HttpOrigin,
        lane: int,
        listener: Callable[[str, object], None],
        wake: Callable[[], None],
        *,
        remote: str,
        tls: tuple[ClientTls, str] | None = None,
    ) -> Self: ...
    def open(self, is_shared: bool = False) -> None: ...
    def receive(self, data: bytes) -> None: ...
    def end(self, why: str) -> None: ...
    def fail(self, class_: str, message: str, /) -> None: ...
    def take_output(self) -> bytes: ...
    @property
    def looks_first(self) -> bool: ...
    @property
    def wants_input(self) -> bool: ...
    @property
    def has_sent_all(self) -> bool: ...
    def finish(self) -> bool: ...
    def attach(self, reactor: Carrier, fd: int) -> None: ...
    def detach(self, reactor: Carrier, wake: Callable[[], None]) -> None: ...

@final
class Tls:
    """Certificates, keys and rules of TLS, loaded from their files."""

    def __new__(
        cls,
        identities: Sequence[tuple[str | PathLike[str], str | PathLike[str]]],
        *,
        password: str | None = None,
        version_min: str = "tls1.2",
        ciphers: str | None = None,
        client_auth: str = "none",
        client_ca: str | PathLike[str] | None = None,
        crls: Sequence[str | PathLike[str]] = ...,
        protocols: Sequence[str] = ...,
        handshake_bytes_max: int = ...,
        tickets: TlsTickets | None = None,
        opened: Mapping[str, str] = ...,
        challenges: tuple[str, Sequence[str]] | None = None,
    ) -> Self:
        """
        Args:
            identities: Files of certificates and their keys; the first is for clients that name no server.
            version_min: ``tls1.2`` or ``tls1.3``.
            ciphers: As OpenSSL writes them.
            client_auth: ``none``, ``optional`` or ``required``.
            protocols: What is spoken above TLS, the best first.
            challenges: A directory with answers to challenges of ACME by TLS, and the names that have some.

        Raises:
            ValueError: Something is missing or does not fit; the message says what to do.
        """
    @property
    def warnings(self) -> list[str]:
        """What can be used but should be looked at."""

@final
class TlsInfo:
    """The encryption of a request's connection."""

    @property
    def version(self) -> str:
        """``"TLSv1.2"`` or ``"TLSv1.3"``."""
    @property
    def cipher(self) -> str:
        """The cipher suite, as OpenSSL calls it."""
    @property
    def server_name(self) -> str | None:
        """The name the client asked for (SNI)."""
    @property
    def client_name(self) -> str | None:
        """The subject of the client's certificate (RFC 4514); ``None`` if it has shown none."""
    @property
    def client_chain(self) -> list[str]:
        """The client's certificates as PEM, its own first. They have been verified."""
    @property
    def is_resumed(self) -> bool:
        """Whether an earlier session was taken up."""

def parse_urlencoded(raw: bytes) -> list[tuple[str, str]]:
    """The pairs of an ``application/x-www-form-urlencoded`` string (WHATWG URL §5.1), in their order.

    Percent-decoded; bytes that are not UTF-8 become U+FFFD.
    """

@final
class TemporaryFile:
    """A temporary file without a name; closed in a thread, for giving back a large one takes long."""

    def fileno(self) -> int:
        """
        Raises:
            ValueError: It is closed.
        """
    def close(self) -> None: ...

def parse_form(
    content_type: str, body: bytes, settings: FormLimits
) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """Texts and files of a form that is there as a whole.

    Raises:
        HTTPError: It is none, or a broken one, or it has too much.
    """

def json_is_deeper(data: bytes | bytearray, depth_max: int) -> bool:
    """Whether arrays and objects of a JSON text are nested deeper than ``depth_max``."""

def read_integer(text: str) -> int | None:
    """The whole number that a parameter's text stands for; ``None`` if it is none that fits 64 bits."""

def read_real(text: str) -> float | None:
    """The number that a parameter's text stands for; ``None`` if it is none."""

def prefers_msgpack(accept: str) -> bool:
    """Whether a client whose ``Accept`` is this prefers MessagePack to JSON."""

def parse_parameters(value: str) -> tuple[str, dict[str, str]]:
    """Split ``form-data; name="a"`` at its first ``;`` into head and parameters (RFC 9110 §5.6.6).

    The head and the names are in lower case; of several parameters with one name the first counts. Takes
    time in proportion to the length of ``value``.
    """

def confine(
    *, readable: list[str], writable: list[str], ports: list[int], words: set[str]
) -> list[str]:
    """Give up for good, in all threads, what is not named: files, connections, programs, other processes.

    Args:
        readable: Files, and directories with all that they hold, that may be read.
        writable: Those that may also be written, made and removed.
        ports: TCP ports to which the process may connect.
        words: What else is allowed, of `udp`, `unix`, `listen` and `metadata`.

    Returns:
        What this kernel cannot restrict.

    Raises:
        OSError: It can enforce none of it, or not enough, or a thread is not confined.
    """

def refuse_rings() -> None:
    """Let the kernel seem to have no ``io_uring``, before an event loop makes a ring.

    Raises:
        OSError: The kernel has no filter of system calls.
    """

def adopt_orphans() -> None:
    """Let descendants whose parents have ended become children of this process.

    Raises:
        OSError: The kernel refuses it.
    """

def keep_from_children(sockets: list[int]) -> None:
    """Have every process that is forked from now on, by Python or by code in C, close these sockets.

    With all their copies. Linux only. Processes that run another program close what is not inheritable.

    Raises:
        OSError: A number stands for no socket.
    """

def end_behind(fd: int, within_ms: int, told: Callable[[], object]) -> None:
    """End this process some time after a pipe has ended, whatever the application does. Linux only.

    Args:
        fd: The pipe's reading end.
        within_ms: How long after its end.
        told: Called at its end, in a thread, as soon as the interpreter lets one run.
    """

def steering_program(secret: bytes, *, is_ipv6: bool, sockets: int) -> bytes:
    """The packet filter that gives datagrams to the sockets which their connection ids name.

    Args:
        secret: What the keys of connection ids are derived from.
        is_ipv6: The family of the sockets.
        sockets: Among how many of them new clients are spread, the first ones of the group.
    """

def development_certificate(directory: str) -> tuple[Path, Path, str, bool]:
    """The certificate of ``--ssl-dev`` kept in a directory, made if there is none that is good for a week.

    Returns:
        Its file, its key's, its SHA-256 fingerprint, and whether it was made now.

    Raises:
        ValueError: It can be neither read nor written.
    """

def self_signed_certificate(name: str, digest: bytes | None = None) -> str:
    """A certificate for a name that it has signed itself, and its key, in PEM.

    Args:
        name: Of a host.
        digest: Of a key authorization, whose challenge it then answers (RFC 8737).

    Raises:
        ValueError: It is no name of a host.
    """

class _TurnScheduler(Protocol):
    """What an event loop does for a reactor that it turns."""

    def wake(self) -> None:
        """Turn it soon; called from any thread."""
    def turn_later(self, seconds: float) -> None:
        """Turn it in so many seconds, instead of at the time that was given before."""

@final
class Balancer:
    """What has a new connection served by the reactor with the fewest."""

    def __new__(cls) -> Self:
        """
        Raises:
            OSError: The kernel refuses a timer.
        """

@disjoint_base
class Carrier:
    """A reactor, as connections to other servers know what carries their bytes."""

@final
class Reactor(Carrier):
    """One thread's poller, its connections and its gateway."""

    def __new__(
        cls,
        gateway: _Gateway,
        *,
        limits: Mapping[str, int] | None = None,
        server_header: str | None = ...,
        date_header: bool = True,
        headers: Sequence[tuple[str, str]] = ...,
        loop: Any = None,
        make_loop: Callable[[], object] | None = None,
        observer: Observer | None = None,
        log: Callable[[int, str], object] | None = None,
        mounts: Sequence[Mount] = ...,
        compress: Sequence[tuple[str, int | None]] = ...,
        compress_types: Sequence[str] = ...,
        trusted: Sequence[str] = ...,
        forwarded: Sequence[str] = ...,
        http: Literal["auto", "1", "2"] = "auto",
        h2c_upgrade: bool = True,
        tls: Tls | None = None,
        makes_room: bool = False,
        on_memory: Callable[[], object] | None = None,
        host: _TurnScheduler | None = None,
        balancer: Balancer | None = None,
    ) -> Self:
        """
        Args:
            limits: Overrides of ``LIMITS``; unknown names are refused with ``ValueError``.
            headers: Fields of every response that does not have them.
            loop: The asyncio loop that steps suspended coroutines; ``None`` without one.
            make_loop: Called, on the thread that made the reactor, when something first needs a loop that is
                not there; it calls ``loop_made``.
            observer: Is told about every request; for one reactor only.
            log: ``log(level, message)`` for what is no handler's exception.
            mounts: Directories whose files are served without the gateway.
            compress: Codings for compressible responses (``br``, ``zstd``, ``gzip``), and their levels.
            compress_types: Media types that are, besides texts.
            trusted: Peers (addresses, networks, ``unix``, ``*``) that speak for their clients.
            forwarded: The headers that they are believed, ``x-forwarded-for`` and the like.
            http: Versions that are spoken.
            h2c_upgrade: Whether ``Upgrade: h2c`` is granted.
            tls: What connections are secured with; taken over, for one reactor only.
            on_memory: Called when ``memory_news`` has something; then ``memory_turn`` is the turn, and bytes
                that are not taken of a connection in memory hold its writer up.
            host: The event loop that turns it; then there is no descriptor, and sockets are the loop's.
            balancer: What shares new connections among the reactors that have it; all of them listen at the
                same sockets, in one order.

        Raises:
            ValueError: A limit, a mount, a peer or a header that cannot be; the message says why.
        """
    def listen(
        self,
        fd: int,
        *,
        rpc: bool = False,
        tls: bool | None = None,
        http: str | None = None,
        proxied: bool = False,
        redirect_port: int = 0,
    ) -> None:
        """Accept connections from the listening socket ``fd`` (duplicated; the caller keeps his).

        Args:
            fd: The socket.
            rpc: Procedures are called there; HTTP otherwise.
            tls: TLS is spoken there. ``None``: for HTTP if the reactor has certificates, not for procedures.
            http: The versions of HTTP; those of the reactor if ``None``.
            proxied: Connections begin with a header of the PROXY protocol, version 1 or 2, of a trusted peer;
                others are closed.
            redirect_port: Requests are redirected to HTTPS on this port; 0: they are served.
        """
    def listen_datagrams(
        self,
        fd: int,
        *,
        secret: bytes,
        slot: int,
        generation: int,
        receive_bytes: int,
        qlog_dir: str | None = None,
    ) -> int:
        """Serve HTTP/3 at the bound UDP socket ``fd`` (duplicated; the caller keeps his).

        Args:
            fd: The socket.
            secret: 32 bytes, from which all workers derive the same keys.
            slot: The place of the socket in its group, which connection ids name.
            generation: How many workers had that place before, modulo 256.
            receive_bytes: Datagrams that should wait in the kernel.
            qlog_dir: Where the events of each connection are written.

        Returns:
            How many bytes the kernel allows.
        """
    def join_workers(
        self, *, own: int, back: tuple[int, int], older: list[tuple[int, int, int]]
    ) -> None:
        """Hand datagrams on to workers that had the UDP sockets before, and take them over from those.

        Args:
            own: Where a later worker hands on datagrams for this one.
            back: Where an older worker hands on what is not its own: to take, and to give.
            older: Slot and generation of older workers, and where datagrams for them are handed on.
        """
    def fileno(self) -> int:
        """The epoll descriptor: readable when ``turn`` has something to do.

        Raises:
            RuntimeError: It has a ``host``.
        """
    def turn(self) -> None:
        """Serve what is ready. Never blocks, never raises; safe to call from inside itself."""
    def run(
        self, on_heartbeat: Callable[[], object] | None = None, interval_s: float = 1.0
    ) -> None:
        """Block and serve until ``stop`` or ``leave``; the host of apps without an event loop.

        ``on_heartbeat`` is called between turns, every ``interval_s``.
        """
    def loop_made(self, event_loop: Any) -> None:
        """Have coroutines run on this loop from now on; ``run`` returns after its current turn."""
    def leave(self) -> None:
        """Make ``run`` return after its current turn, because a loop will turn the reactor."""
    def stop(self) -> None:
        """Make ``run`` return after its current turn; callable from signal handlers and threads."""
    def drain(self, on_drained: Callable[[], object] | None = None) -> None:
        """Stop accepting, let open requests finish, close idle connections.

        ``on_drained`` is called once, when the last connection is gone.
        """
    def close(self) -> None:
        """Cut all connections and cancel their handlers."""
    @property
    def connections(self) -> int: ...
    @property
    def requests_open(self) -> int: ...
    @property
    def requests_total(self) -> int: ...
    @property
    def routes_open(self) -> str:
        """The routes of open requests, as far as they are watched, in a form to be read."""
    def memory_turn(self) -> None:
        """The turn of a reactor with ``on_memory``."""
    def memory_open(
        self,
        client: tuple[str, int] | None = None,
        scheme: str | None = None,
        root_path: str | None = None,
    ) -> int:
        """Open a connection that lives in memory and return its number.

        With a ``scheme`` its requests come from ``client`` whatever their fields say, and ``root_path``
        (percent-encoded) has been taken off their paths.
        """
    def memory_feed(self, connection: int, data: bytes) -> int:
        """Bytes from the peer; returns how many have not been read yet."""
    def memory_news(self) -> list[int]:
        """The connections in memory that have bytes to take, have read all they were fed, or are closed."""
    def memory_of(self, request: Request) -> int | None:
        """The connection that a request has come by; ``None`` if it is another reactor's."""
    def memory_eof(self, connection: int) -> None:
        """The peer closes."""
    def memory_take(self, connection: int) -> tuple[bytes, bool]:
        """Bytes for the peer since the last call, and whether the connection is closed."""
    def listen_remote(
        self,
        *,
        rpc: bool = False,
        tls: bool | None = None,
        http: str | None = None,
        proxied: bool = False,
        redirect_port: int = 0,
    ) -> int:
        """A listening socket of the ``host``; returns its number. The arguments are those of ``listen``."""
    def remote_accept(
        self, listener: int, peer: tuple[str, int] | None, local: tuple[str, int] | None
    ) -> int | None:
        """Take up a connection that the ``host`` has accepted, and return its number.

        ``None``: too many are open, or the reactor drains; it has to be closed. The addresses of a Unix
        socket are ``None``. ``on_memory`` may be called before the number is returned.
        """
    def remote_feed(self, connection: int, data: bytes) -> int:
        """Bytes of the client, or its end if there are none; returns how many have not been read yet."""
    def remote_lose(self, connection: int) -> None:
        """The connection is broken, or closed: nothing comes and goes any more."""
    def remote_news(self) -> list[tuple[int, bool]]:
        """The connections about which there is something new, and whether they have ended."""
    def remote_take(self, connection: int) -> tuple[bytes, int, int]:
        """Bytes for the client, what follows them, and how many of the client's have not been read yet.

        What follows: 0 nothing, 1 no more bytes, 2 the connection is closed, 3 it is reset.
        """

class _Received(tuple[_T, bool], Awaitable[tuple[_T, bool]]):
    """``(value, ok)`` where a receive blocks, to be awaited where a loop runs."""

    def __await__(self) -> Generator[Any, Any, tuple[_T, bool]]: ...

@final
class Chan(Generic[_T]):
    """A channel, as in Go: for threads, greenlets and coroutines, and between them.

    On the thread of a running asyncio loop ``send`` and ``recv`` have to be awaited, and ``for`` is
    ``async for``; elsewhere they block the greenlet or the thread (without the GIL).
    """

    def __new__(cls, capacity: int = 0, type_: Any = None) -> Self:
        """
        Args:
            capacity: Values that the channel holds while no receiver waits.
            type_: What they are; see ``citius.go.chan``.

        Raises:
            ValueError: The capacity is negative.
            TypeError: There is no such type.
        """
    def send(self, value: _T) -> Awaitable[None]:
        """Send; waits for room, or for a receiver. Returns ``None`` where it blocks.

        Raises:
            ChannelClosed: The channel is closed, or is closed meanwhile.
            Deadlock: No goroutine or thread is left that could receive.
        """
    def recv(self) -> _Received[_T]:
        """Receive ``(value, True)``; ``(None, False)`` from a channel that is closed and empty.

        A receiver that is cancelled or killed loses no value: the next one gets it.

        Raises:
            Deadlock: No goroutine or thread is left that could send or close.
        """
    def close(self) -> None:
        """Say that nothing will be sent any more; what is in the channel can still be received.

        Raises:
            ChannelClosed: It is closed.
        """
    @property
    def closed(self) -> bool: ...
    @property
    def cap(self) -> int:
        """Values that the channel holds while no receiver waits."""
    def __len__(self) -> int:
        """Values that have been sent and not been received (those given back by cancelled receivers too)."""
    def __bool__(self) -> Literal[True]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[_T]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None:
        """Close it, unless it is closed."""
    @classmethod
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    @property
    def _element(
        self,
    ) -> tuple[Literal["object", "bytes", "array", "none", "int", "float", "bool", "struct"], Any]:
        """What its values are, and their bytes or the dtype of arrays."""
    def _recv_within(self, timeout_s: float | None) -> tuple[_T, bool] | None:
        """A receive for plain threads that gives up after a time."""

@final
class WaitGroup:
    """Waits until as many things are done as were added."""

    def __new__(cls) -> Self: ...
    def add(self, n: int = 1) -> None:
        """
        Raises:
            ValueError: The count would be negative.
        """
    def done(self) -> None:
        """One less."""
    def wait(self) -> Awaitable[None]:
        """Wait until the count is zero; awaited where a loop runs."""
    @property
    def count(self) -> int: ...

@overload
def select(
    *cases: Chan[Any] | tuple[Chan[Any] | None, Any] | None, default: Literal[False] = False
) -> Selected:
    """Do one of several operations, whichever can be done, chosen evenly if several can.

    Args:
        cases: A channel to receive from, ``(channel, value)`` to send, or ``None`` in place of a channel,
            which is never chosen.
        default: Return at once (``case`` is ``None``) if nothing can be done; then nothing is to be awaited.

    Raises:
        ChannelClosed: The chosen case is a send on a closed channel.
        Deadlock: No goroutine or thread is left that could make a case possible.
        TypeError: Something else in place of a case.
    """

@overload
def select(*cases: Chan[Any] | tuple[Chan[Any] | None, Any] | None, default: bool) -> Selected: ...
def share(name: str, shared: Chan[Any] | Redis[Any] | Pool | None) -> None:
    """Give a name by which compiled code finds a channel (``citius_chan_find``), a client of Redis
    (``citius_redis_find``) or a pool of PostgreSQL (``citius_pg_find``); ``None`` takes it away.

    Raises:
        ChannelMisuse: The channel was made before a fork.
    """

def _set_serial(is_serial: bool) -> None:
    """Say whether this thread is within the greenlet of a serial handler."""

def _whereabouts() -> Literal["serial", "loop", "hub", "thread"]:
    """How a blocking operation would wait here."""
