"""The short way of a call with one message each way, without compression and interceptors.

It gives the response that the long way gives (rpc_native.py), to which it leaves every call that wants more,
whose message is none, that fails, that waits with a deadline, or whose service sets fields. Tests:
``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, Final

from citius._core import Request, Response
from citius.web.interop.rpc_calls import DONE, PREFIX_BYTES, VARY, Call, unwrapped
from citius.web.interop.rpc_library import Library

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping

    from citius.web.interop.rpc_calls import Method

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]
    Fields = tuple[tuple[str, frozenset[str]], ...]
    Timeout = tuple[str, Callable[[str], float]]
    Way = tuple[bool, Fields, Timeout, Callable[..., Any], Callable[[Any], bytes], str]

_LIBRARY: Final = Library()
_Context: Any = _LIBRARY.context

_IDENTITY: Final = frozenset({"identity"})
# What clients that know compressions and want none accept, such as gRPC's own for C++ and Python.
_ACCEPTED: Final = ("identity", "identity, deflate, gzip", "identity,deflate,gzip")


class ShortContext(_Context):
    """The context of a call: what the library keeps in it is made when service or library look for it."""

    _response_headers = _response_trailers = _end_time = None

    def __init__(self, method: Method, request: Request) -> None:
        self.call = method, request

    def end_in(self, seconds: float) -> None:
        """Begin the time that the call has."""
        self._end_time = monotonic() + seconds

    def has_fields(self) -> bool:
        """Whether the service may have set some."""
        return self._response_headers is not None or self._response_trailers is not None

    def __getattr__(self, name: str) -> Any:
        if "_method" in self.__dict__:
            raise AttributeError(name)
        made = Call(*self.call)
        made.begin()
        # What a service has set stays.
        self.__dict__.update({**made.ctx.__dict__, **self.__dict__})
        return getattr(self, name)


def short_way(method: Method, usual: Handler) -> Handler:
    """The handler of a method; ``usual`` takes what the short way leaves."""
    app: Any = method.app
    if app._metadata_interceptors:
        return usual
    ways, message_class = _ways(app), method.info.input
    bytes_max: float = float("inf") if app._read_max_bytes is None else app._read_max_bytes

    async def unary(request: Request) -> Response:
        header = request.header
        way = ways.get(header("content-type"))
        if way is None or request.method != "POST":
            return await usual(request)
        is_enveloped, fields, timeout, decode, encode, media_type = way
        message, seconds = None, None
        try:
            seconds = _seconds(header, fields, timeout)
            data = unwrapped(request.body()) if is_enveloped else request.body()
            if data is not None and len(data) <= bytes_max:
                message = decode(data, message_class)
        except Exception:
            message = None  # the long way says what is wrong, or does what more is asked for
        if message is None:
            return await usual(request)
        ctx, waiting = ShortContext(method, request), None
        try:
            if seconds is None:
                result = await method.function()(message, ctx)
            else:
                # A deadline matters to a service that waits: a timer for every call costs more than the call.
                ctx.end_in(seconds)
                waiting, result = _stepped(method.function()(message, ctx))
            data = encode(result) if waiting is None else b""
        except (Exception, asyncio.CancelledError) as error:
            return await _began(ctx).ended_by(error)
        if waiting is not None:
            return await _waited(ctx, waiting)
        if ctx.has_fields():
            return _began(ctx).response(result)
        if not is_enveloped:
            return Response(data, 200, VARY, media_type)
        return Response(len(data).to_bytes(PREFIX_BYTES, "big") + data, 200, None, media_type, DONE)

    return unary


def _began(ctx: ShortContext) -> Call:
    """The call on the long way, with what the service has set."""
    call = Call(*ctx.call)
    call.begin()
    call.continue_with(ctx)
    return call


async def _waited(ctx: ShortContext, work: Awaitable[Any]) -> Response:
    """The response of a service that waits until its deadline."""

    async def answer(call: Call) -> Response:
        return call.response(await work)

    return await _began(ctx).answered(answer)


def _seconds(header: Callable[[str], str | None], fields: Fields, timeout: Timeout) -> float | None:
    """What a call has of time.

    Raises:
        Exception: Its fields ask for more, or say what they must not.
    """
    for name, values in fields:
        value = header(name)
        if value is not None and value not in values:
            raise ValueError(value)
    value = header(timeout[0])
    return None if value is None else timeout[1](value)


def _stepped(work: Any) -> tuple[Awaitable[Any] | None, Any]:
    """What is left of ``work`` after its first step, if something is, and its result."""
    cls: object = work.__class__
    if cls is not CoroutineType:
        return work, None
    try:
        awaited = work.send(None)
    except StopIteration as ended:
        return None, ended.value
    return _resumed(work, awaited), None


@coroutine
def _resumed(work: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """What is left of a coroutine that has been stepped once, and waits for ``awaited``."""
    while True:
        try:
            yield awaited
        except BaseException as error:
            try:
                awaited = work.throw(error)
            except StopIteration as ended:
                result: Any = ended.value
                return result
        else:
            return (yield from work.__await__())


def _seconds_of_connect(value: str) -> float:
    if len(value) > 10 or not (value.isascii() and value.isdigit()):
        raise ValueError(value)
    return int(value) / 1000


def _seconds_of_grpc(value: str) -> float:
    return _LIBRARY.grpc_timeout_ns(value) / 1_000_000_000


_OF_CONNECT: Final = "connect-timeout-ms", _seconds_of_connect
_OF_GRPC: Final = "grpc-timeout", _seconds_of_grpc


def _ways(app: Any) -> Mapping[str | None, Way]:
    """By media types: whether there are envelopes, fields that ask for nothing, the timeout, the codec."""
    accepted = frozenset(
        one for one in _ACCEPTED
        if isinstance(_LIBRARY.compression_of(one, app._compressions), _LIBRARY.is_identity)
    )  # fmt: skip
    of_connect = (
        ("accept-encoding", accepted),
        ("connect-protocol-version", frozenset({"1"})),
        ("content-encoding", _IDENTITY),
    )
    of_grpc = (
        ("grpc-accept-encoding", accepted),
        ("grpc-encoding", _IDENTITY),
    )
    found: dict[str | None, Way] = {}
    for name, codec in app._codecs.items():
        media_type = f"application/{name}"
        found[media_type] = (False, of_connect, _OF_CONNECT, codec.decode, codec.encode, media_type)
        media_type = f"application/grpc+{name}"
        found[media_type] = (True, of_grpc, _OF_GRPC, codec.decode, codec.encode, media_type)
    if "proto" in app._codecs:
        found["application/grpc"] = found["application/grpc+proto"]
    return found
