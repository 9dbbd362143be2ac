"""The short way of a call with one message each way, without compression and interceptors.

It gives the response that the long way gives (native_handlers.py), to which it leaves every call that wants
more, whose message is none, that fails, that waits with a deadline, or whose service sets fields. Tests:
``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from citius._core import Request, Response, RpcUnary
from citius.web.interop.connectrpc.calls import DONE, VARY, Call
from citius.web.interop.connectrpc.library import Library

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from citius.web.interop.connectrpc.calls import Method

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]
    OfCall = tuple[
        Callable[[str], float],
        Callable[..., Any],
        Callable[[Any], bytes],
        Callable[[bytes], Response],
    ]

_LIBRARY: Final = Library()
_Context: Any = _LIBRARY.context

_IDENTITY: Final = ["identity"]
# What clients that know compressions and want none accept, such as gRPC's own for C++ and Python.
_ACCEPTED: Final = ("identity", "identity, deflate, gzip", "identity,deflate,gzip")


class Way(NamedTuple):
    """A media type, as ``RpcUnary`` reads it."""

    media_type: str
    is_enveloped: bool
    fields: list[tuple[str, list[str]]]
    """Fields with the values that ask for nothing."""
    timeout: str
    """The field that limits the time."""
    value: OfCall
    """What a call gets."""


class ShortContext(_Context):
    """The context of a call: what the library keeps in it is made when service or library look for it."""

    # Most calls need no dictionary.
    __slots__ = ("call",)

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
    take, message_class = RpcUnary(_ways(app), app._read_max_bytes).take, method.info.input

    async def unary(request: Request) -> Response:
        taken = take(request)
        if taken is None:
            return await usual(request)
        (timeout, decode, encode, respond), data, left = taken
        try:
            seconds = None if left is None else timeout(left)
            message = decode(data, message_class)
        except Exception:
            return await usual(request)  # the long way says what is wrong
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
        return respond(data)

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


def _ways(app: Any) -> list[Way]:
    """The media types of an application."""
    accepted = [
        one for one in _ACCEPTED
        if isinstance(_LIBRARY.compression_of(one, app._compressions), _LIBRARY.is_identity)
    ]  # fmt: skip
    of_connect = [
        ("accept-encoding", accepted),
        ("connect-protocol-version", ["1"]),
        ("content-encoding", _IDENTITY),
    ]
    of_grpc = [("grpc-accept-encoding", accepted), ("grpc-encoding", _IDENTITY)]
    ways: list[Way] = []
    for name, codec in app._codecs.items():
        media_type = f"application/{name}"
        respond = Response(b"", 200, VARY, media_type)._with_body
        of_call: OfCall = _seconds_of_connect, codec.decode, codec.encode, respond
        ways.append(Way(media_type, False, of_connect, "connect-timeout-ms", of_call))
        media_type = f"application/grpc+{name}"
        respond = Response(b"", 200, None, media_type, DONE)._with_envelope
        of_call = _seconds_of_grpc, codec.decode, codec.encode, respond
        ways.append(Way(media_type, True, of_grpc, "grpc-timeout", of_call))
        if name == "proto":
            ways.append(Way("application/grpc", True, of_grpc, "grpc-timeout", of_call))
    return ways
