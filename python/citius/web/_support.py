"""What the extension calls once per request but leaves to Python: bodies, forms, views, streams.

The extension fetches an attribute of this module when it first needs it. ``encode_json`` and its
kin are made at that moment (module ``__getattr__``), because a service that answers text never
needs msgspec and its worker should not pay for it.

Decoders raise ``HTTPError``: 400 for bytes that are no JSON or MessagePack, 422 for well-formed data
of the wrong shape, with the place. Streams: ``pump_async`` for asynchronous iterators,
``pump_blocking`` for the others. Both keep to the peer's pace, close the iterator whatever happens
and abort the answer when the iterator raises: half an answer must not look whole.
"""

from __future__ import annotations

from _thread import allocate_lock
from contextvars import copy_context
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from citius.errors import BadRequest, ClientDisconnected, HTTPError, UnprocessableContent
from citius.web.checks import refuse_status as refuse_status
from citius.web.headers import Headers, MutableHeaders, Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from citius._core import Request, Stream
    from citius.web.forms import Form

    encode_json: Callable[[object], bytes]
    encode_msgpack: Callable[[object], bytes]

# The constructors are the functions: no frame between the extension and the object.
headers = Headers
mutable_headers = MutableHeaders
query = Query
state = SimpleNamespace


def __getattr__(name: str) -> Any:
    """Make ``encode_json`` and ``encode_msgpack`` when somebody wants to encode."""
    if name == "encode_json":
        import msgspec

        value = msgspec.json.Encoder().encode
    elif name == "encode_msgpack":
        import msgspec

        value = msgspec.msgpack.Encoder().encode
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def decode_json(type: Any, data: bytes) -> Any:
    """``data`` as JSON; of that type, unless ``type`` is ``None``."""
    return _decode("json", "JSON", type, data)


def decode_msgpack(type: Any, data: bytes) -> Any:
    """``data`` as MessagePack; of that type, unless ``type`` is ``None``."""
    return _decode("msgpack", "MessagePack", type, data)


def _decode(format: str, label: str, type: Any, data: bytes) -> Any:
    try:
        return decoder(format, type)(data)
    except Exception as error:
        refusal = refusal_of(error, label)
        if refusal is None:
            raise
        raise refusal from None


def refusal_of(error: Exception, label: str) -> HTTPError | None:
    """What a client is told whose body msgspec did not decode; ``None`` if it was not the body's fault."""
    import msgspec

    if isinstance(error, msgspec.ValidationError):
        return UnprocessableContent(
            "the body is not of the expected shape", errors=[mistake(error, "body")]
        )
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError | RecursionError):
        return BadRequest(f"the body is no valid {label}: {error}")
    return None


def decoder(format: str, type: Any) -> Callable[[bytes], Any]:
    """What decodes bodies of that type; made when it is first needed, and kept."""
    if (kept := _decoders.get((format, type))) is not None:
        return kept
    import msgspec

    wanted = Any if type is None else type
    made = msgspec.json.Decoder(wanted) if format == "json" else msgspec.msgpack.Decoder(wanted)
    decode = _decoders[format, type] = made.decode
    return decode


_decoders: dict[tuple[str, Any], Callable[[bytes], Any]] = {}


def mistake(error: Exception, place: str) -> dict[str, str]:
    """What msgspec says about invalid data, split into where and what."""
    message, _, path = str(error).partition(" - at `")
    return {"in": place, "path": path.rstrip("`") or "$", "message": message}


def cookies(values: list[str]) -> dict[str, str]:
    """The cookies of all ``Cookie`` lines; of two with one name the first counts.

    RFC 6265 §5.4 sends the cookie with the longer path first.
    """
    found: dict[str, str] = {}
    for line in values:
        for part in line.split(";"):
            name, separator, value = part.partition("=")
            name = name.strip()
            if not separator or not name or name in found:
                continue
            value = value.strip()
            if len(value) >= 2 and value[0] == value[-1] == '"':
                value = value[1:-1]
            found[name] = value
    return found


def form(request: Request) -> Form:
    """The form in the body, URL-encoded or multipart."""
    from citius.web.forms import parse_form

    return parse_form(request.header("content-type") or "", request.body())


# --- bodies that come in pieces -----------------------------------------------------------------


class BodyStream:
    """A request body as it comes: ``async for`` on the loop, ``for`` in a blocking handler.

    A body that is there as a whole can be had as often as somebody asks. One that comes in pieces is
    given away once: the stream that got the first piece has a right to the others, and another stream
    or ``read`` raises ``RuntimeError`` instead of taking a part for the whole.
    """

    __slots__ = ("_request", "_right")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._right = object()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _AsyncPieces(self._request, self._right)

    def __iter__(self) -> Iterator[bytes]:
        pieces = _Pieces(self._request, self._right)
        while True:
            with pieces.intake:
                while (piece := pieces.take()) is None:
                    wait_in_thread(self._request._on_body)  # pyright: ignore[reportPrivateUsage]
            if not piece:
                return
            yield piece


body_stream = BodyStream


async def read(request: Request) -> bytes:
    """The whole body, awaited; afterwards ``request.body`` and its kin have it too.

    What has come when this is cancelled is kept for the next ``read`` or stream.
    """
    if request not in _intakes:
        try:
            return request.body()
        except RuntimeError:  # it is still on its way
            pass
    intake = _intake_of(request)
    with intake:
        if intake.owner is not None:
            raise RuntimeError(_TAKEN)
        if (whole := intake.whole(request)) is not None:
            return whole
        while (piece := request._next_chunk()) != b"":  # pyright: ignore[reportPrivateUsage]
            if piece is None:
                await _called_back(request._on_body)  # pyright: ignore[reportPrivateUsage]
            else:
                intake.kept.append(piece)
        return intake.complete(request)


class _Intake:
    """How far a body has been taken, and by whom. Whoever takes holds it (``with``)."""

    __slots__ = ("__weakref__", "_held", "ended", "has_begun", "kept", "owner")

    def __init__(self) -> None:
        self._held = allocate_lock()
        # From here on the request's own idea of its body may be a part of it.
        self.has_begun = False
        # Taken, and given to nobody yet.
        self.kept: list[bytes] = []
        # The right of the stream that was given a piece, and whether it has had the last one.
        self.owner: object | None = None
        self.ended = False

    def __enter__(self) -> None:
        # Two waiters would share one callback: the first would wait for ever.
        if not self._held.acquire(blocking=False):
            raise RuntimeError("the body of this request is being read by somebody else")

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def whole(self, request: Request) -> bytes | None:
        """The body, if nobody has to take it in pieces."""
        if not self.has_begun:
            try:
                return request.body()
            except RuntimeError:  # it is still on its way
                self.has_begun = True
        return None

    def complete(self, request: Request) -> bytes:
        """Make the pieces that were kept the request's body."""
        whole = b"".join(self.kept)
        self.kept.clear()
        request._set_body(whole)  # pyright: ignore[reportPrivateUsage]
        self.has_begun = False
        return whole


# Values must not refer to their keys, or neither would ever go.
_intakes: WeakKeyDictionary[Request, _Intake] = WeakKeyDictionary()

_TAKEN = (
    "the body of this request has been taken, or a part of it, by an earlier request.stream(), "
    "and is not kept; take it once, or call `await request.read()` first"
)


def _intake_of(request: Request) -> _Intake:
    return _intakes.get(request) or _intakes.setdefault(request, _Intake())


class _Pieces:
    """One iteration over a body."""

    __slots__ = ("_is_over", "_request", "_right", "intake")

    def __init__(self, request: Request, right: object) -> None:
        self._request = request
        self._right = right
        self._is_over = False
        self.intake = _intake_of(request)

    def take(self) -> bytes | None:
        """The next piece; ``b""`` at the end, ``None`` if it has to be waited for."""
        if self._is_over:
            return b""
        intake = self.intake
        if intake.owner is None:
            if (whole := intake.whole(self._request)) is not None:
                self._is_over = True
                return whole
        elif intake.owner is not self._right or intake.ended:
            raise RuntimeError(_TAKEN)
        piece = b"".join(intake.kept) or self._request._next_chunk()  # pyright: ignore[reportPrivateUsage]
        intake.kept.clear()
        if piece:
            intake.owner = self._right
        elif piece is not None:
            self._is_over = intake.ended = True
        return piece


class _AsyncPieces:
    """The same on the loop. No generator, which a cancelled wait would end: that looks like the end."""

    __slots__ = ("_pieces", "_request")

    def __init__(self, request: Request, right: object) -> None:
        self._request = request
        self._pieces = _Pieces(request, right)

    def __aiter__(self) -> _AsyncPieces:
        return self

    async def __anext__(self) -> bytes:
        with self._pieces.intake:
            while (piece := self._pieces.take()) is None:
                await _called_back(self._request._on_body)  # pyright: ignore[reportPrivateUsage]
        if not piece:
            raise StopAsyncIteration
        return piece


async def _called_back(register: Callable[[Callable[[], object]], None]) -> None:
    """Suspend until the callback that is handed to ``register`` is called."""
    import asyncio

    future = asyncio.get_running_loop().create_future()

    def arrived() -> None:
        # The waiting task may have been cancelled in the meantime.
        if not future.done():
            future.set_result(None)

    register(arrived)
    await future


# How a host with other means than threads waits; it returns whether it could.
wait_here: Callable[[Callable[[Callable[[], object]], None]], bool] | None = None


def wait_in_thread(register: Callable[[Callable[[], object]], None]) -> None:
    """Block this thread until the callback that is handed to ``register`` is called."""
    from citius.web.pool import in_pool

    if wait_here is not None and wait_here(register):
        return
    if not in_pool():
        raise RuntimeError(
            "this handler would block the server's thread to wait for its client; "
            "make it `async def`, or add blocking=True to its route"
        )
    lock = allocate_lock()
    lock.acquire()
    register(lock.release)
    lock.acquire()


# --- answers that leave in pieces ---------------------------------------------------------------


async def pump_async(stream: Stream, iterator: AsyncIterator[bytes | str]) -> None:
    """Send what ``iterator`` yields; the extension runs this as a task and cancels it when nobody reads."""
    try:
        async for chunk in iterator:
            if not stream.send(chunk):
                await _called_back(stream.on_writable)
        stream.end()
    except ClientDisconnected:
        stream.abort()
    except BaseException as error:
        from asyncio import CancelledError

        is_told_to_end = isinstance(error, CancelledError | GeneratorExit)
        # Cancelled with nobody there to read is how most streams of events end.
        is_surprise = not (is_told_to_end and _is_gone(stream))
        stream.abort()
        if is_surprise:
            _log_broken_stream(stream, error)
        if is_told_to_end:
            raise
    finally:
        aclose = getattr(iterator, "aclose", None)
        if aclose is not None:
            await aclose()


def pump_blocking(stream: Stream, iterator: Iterator[bytes | str]) -> None:
    """Send what ``iterator`` yields, from the reactor's thread, without ever waiting there.

    Iterators of blocking handlers go back to the pool, where waiting is allowed.
    """
    from citius.web.pool import Threaded

    if isinstance(iterator, Threaded):
        iterator.drive(stream)
    else:
        _Pump(stream, iterator).send()


def rpc_error(error: BaseException, is_json: bool, message: str) -> tuple[int, bytes]:
    """What the caller of a procedure sees of an exception; see ``procedures.error_of``."""
    from citius.web.procedures import error_of

    return error_of(error, is_json, message)


class _Pump:
    """A synchronous iterator between two turns: it goes on when there is room again.

    In one context from its first step to its last: what a generator sets in between it finds again.
    """

    __slots__ = ("_context", "_iterator", "_stream")

    def __init__(self, stream: Stream, iterator: Iterator[bytes | str]) -> None:
        self._stream = stream
        self._iterator = iterator
        self._context = copy_context()

    def send(self) -> None:
        self._context.run(self._send)

    def _send(self) -> None:
        try:
            for chunk in self._iterator:
                if not self._stream.send(chunk):
                    self._stream.on_writable(self.send)
                    return
            self._stream.end()
        except ClientDisconnected:
            self._stream.abort()
        except BaseException as error:
            # What ends a process or a task elsewhere came from a generator that has neither.
            self._stream.abort()
            _log_broken_stream(self._stream, error)
        close(self._stream, self._iterator)


def drive_in_thread(
    stream: Stream,
    iterator: Iterator[bytes | str],
    wait: Callable[[Callable[[Callable[[], object]], None]], object] = wait_in_thread,
) -> None:
    """Send what ``iterator`` yields from a thread of the pool, which waits for room."""
    from citius.web.pool import release_slot

    try:
        for chunk in iterator:
            if not stream.send(chunk):
                wait(stream.on_writable)
        release_slot()
        stream.end()
    except ClientDisconnected:
        stream.abort()
    except BaseException as error:
        stream.abort()
        _log_broken_stream(stream, error)
    close(stream, iterator)


def close(stream: Stream, iterator: object) -> None:
    """Let a generator run its ``finally`` blocks now, not when the collector comes by."""
    method = getattr(iterator, "close", None)
    if method is not None:
        try:
            method()
        except BaseException as error:
            _log_broken_stream(stream, error)


def _is_gone(stream: Stream) -> bool:
    try:
        stream.send(b"")
    except ClientDisconnected:
        return True
    return False


def describe(handler: object) -> str:
    """A handler as a message calls it: name, file and line."""
    from citius.web.checks import describe

    return describe(handler)


def describe_application(app: object) -> str:
    """An application as a message calls it: module, name, file and line."""
    from citius.checks import describe_application

    return describe_application(app)


def log_exception(message: str, error: BaseException) -> None:
    """Log and count an exception that the application has not handled."""
    from citius.observability.logging import log_exception

    log_exception(message, error)


def log_failure(message: str) -> None:
    """Log and count what a handler did in place of raising an exception."""
    from citius.observability.logging import log_failure

    log_failure(message)


def _log_broken_stream(stream: Stream, error: BaseException) -> None:
    # The extension makes the message, because the streamed response may be all that is left of its request.
    message = stream._message(": its streamed response broke off")  # pyright: ignore[reportPrivateUsage]
    log_exception(message, error)
