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

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from citius.errors import BadRequest, ClientDisconnected, UnprocessableContent
from citius.headers import Headers, MutableHeaders, Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from citius._core import Request, Stream
    from citius.forms import Form

    encode_json: Callable[[object], bytes]
    encode_msgpack: Callable[[object], bytes]

# The constructors are the functions: no frame between the extension and the object.
headers = Headers
mutable_headers = MutableHeaders
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
    import msgspec

    decode = _decoders.get((format, type)) or _decoder(format, type)
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        raise UnprocessableContent(
            "the body is not of the expected shape", errors=[mistake(error, "body")]
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no valid {label}: {error}") from None


def _decoder(format: str, type: Any) -> Callable[[bytes], Any]:
    import msgspec

    wanted = Any if type is None else type
    decoder = msgspec.json.Decoder(wanted) if format == "json" else msgspec.msgpack.Decoder(wanted)
    _decoders[format, type] = decoder.decode
    return decoder.decode


_decoders: dict[tuple[str, Any], Callable[[bytes], Any]] = {}


def mistake(error: Exception, place: str) -> dict[str, str]:
    """What msgspec says about invalid data, split into where and what."""
    message, _, path = str(error).partition(" - at `")
    return {"in": place, "path": path.rstrip("`") or "$", "message": message}


def query(raw: bytes) -> Query:
    """The parameters of ``a=1&b=2``, percent-decoded; bytes that are not UTF-8 become U+FFFD."""
    return Query(parse_urlencoded(raw))


def parse_urlencoded(raw: bytes) -> list[tuple[str, str]]:
    """The pairs of an ``application/x-www-form-urlencoded`` string (WHATWG URL §5.1)."""
    pairs: list[tuple[str, str]] = []
    for part in raw.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((_unquote_plus(name), _unquote_plus(value)))
    return pairs


def _unquote_plus(raw: bytes) -> str:
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        first, *escapes = raw.split(b"%")
        parts = [first]
        for escape in escapes:
            byte = _HEX.get(escape[:2])
            parts += (b"%", escape) if byte is None else (byte, escape[2:])
        raw = b"".join(parts)
    return raw.decode("utf-8", "replace")


# Both cases of every digit: "%2f", "%2F", "%aB".
_HEX = {
    bytes((high, low)): bytes.fromhex(chr(high) + chr(low))
    for high in b"0123456789abcdefABCDEF"
    for low in b"0123456789abcdefABCDEF"
}


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
    from citius.forms import parse_form

    return parse_form(request.header("content-type") or "", request.body())


# --- bodies that come in pieces -----------------------------------------------------------------


class BodyStream:
    """A request body as it comes: ``async for`` on the loop, ``for`` in a blocking handler."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        self._request = request

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces_async()

    async def _pieces_async(self) -> AsyncIterator[bytes]:
        request = self._request
        while True:
            chunk = request._next_chunk()  # pyright: ignore[reportPrivateUsage]
            if chunk is None:
                await _called_back(request._on_body)  # pyright: ignore[reportPrivateUsage]
            elif chunk:
                yield chunk
            else:
                return

    def __iter__(self) -> Iterator[bytes]:
        request = self._request
        while True:
            chunk = request._next_chunk()  # pyright: ignore[reportPrivateUsage]
            if chunk is None:
                _wait_in_thread(request._on_body)  # pyright: ignore[reportPrivateUsage]
            elif chunk:
                yield chunk
            else:
                return


body_stream = BodyStream


async def read(request: Request) -> bytes:
    """The whole body, awaited."""
    try:
        return request.body()
    except RuntimeError:  # it is still on its way
        return b"".join([chunk async for chunk in BodyStream(request)])


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


def _wait_in_thread(register: Callable[[Callable[[], object]], None]) -> None:
    """Block this thread until the callback that is handed to ``register`` is called."""
    import _thread

    from citius.pool import in_pool

    if not in_pool():
        raise RuntimeError(
            "this handler would block the server's thread to wait for its client; "
            "make it `async def`, or add blocking=True to its route"
        )
    lock = _thread.allocate_lock()
    lock.acquire()
    register(lock.release)
    lock.acquire()


# --- answers that leave in pieces ---------------------------------------------------------------


async def pump_async(stream: Stream, iterator: AsyncIterator[bytes | str]) -> None:
    """Send what ``iterator`` yields; the extension runs this as a task and cancels it when nobody reads."""
    try:
        async for chunk in iterator:
            if not stream.send(chunk):
                await _called_back(stream.on_room)
        stream.end()
    except ClientDisconnected:
        pass
    except BaseException as error:
        stream.abort()
        if not isinstance(error, Exception):
            raise
        _log_broken_stream(error)
    finally:
        aclose = getattr(iterator, "aclose", None)
        if aclose is not None:
            await aclose()


def pump_blocking(stream: Stream, iterator: Iterator[bytes | str]) -> None:
    """Send what ``iterator`` yields, from the reactor's thread, without ever waiting there.

    Iterators of blocking handlers go back to the pool, where waiting is allowed.
    """
    from citius.pool import Threaded

    if isinstance(iterator, Threaded):
        iterator.drive(stream)
    else:
        _Pump(stream, iterator).send()


class _Pump:
    """A synchronous iterator between two turns: it goes on when there is room again."""

    __slots__ = ("_iterator", "_stream")

    def __init__(self, stream: Stream, iterator: Iterator[bytes | str]) -> None:
        self._stream = stream
        self._iterator = iterator

    def send(self) -> None:
        try:
            for chunk in self._iterator:
                if not self._stream.send(chunk):
                    self._stream.on_room(self.send)
                    return
            self._stream.end()
        except ClientDisconnected:
            pass
        except Exception as error:
            self._stream.abort()
            _log_broken_stream(error)
        close(self._iterator)


def drive_in_thread(stream: Stream, iterator: Iterator[bytes | str]) -> None:
    """Send what ``iterator`` yields from a thread of the pool, which waits for room."""
    try:
        for chunk in iterator:
            if not stream.send(chunk):
                _wait_in_thread(stream.on_room)
        stream.end()
    except ClientDisconnected:
        pass
    except Exception as error:
        stream.abort()
        _log_broken_stream(error)
    close(iterator)


def close(iterator: object) -> None:
    """Let a generator run its ``finally`` blocks now, not when the collector comes by."""
    method = getattr(iterator, "close", None)
    if method is not None:
        try:
            method()
        except Exception as error:
            _log_broken_stream(error)


def _log_broken_stream(error: Exception) -> None:
    from citius.logging import log_exception

    log_exception("a streamed answer broke off", error)
