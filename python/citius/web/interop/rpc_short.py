"""The short way of a call with one message each way, and nothing else: no deadline, compression, interceptor.

It gives the response that the long way gives (rpc_native.py), to which it leaves every call that wants more,
whose message is none, that fails, or whose service sets fields. Tests: ``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from citius._core import Request, Response
from citius.web.interop.rpc_calls import DONE, PREFIX_BYTES, VARY, Call, unwrapped
from citius.web.interop.rpc_library import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from citius.web.interop.rpc_calls import Method

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]
    Fields = tuple[tuple[str, frozenset[str]], ...]
    Way = tuple[bool, Fields, Callable[..., Any], Callable[[Any], bytes], str]

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
        is_enveloped, fields, decode, encode, media_type = way
        for name, values in fields:
            value = header(name)
            if value is not None and value not in values:
                return await usual(request)
        data, message = request.body(), None
        try:
            data = unwrapped(data) if is_enveloped else data
            if data is not None and len(data) <= bytes_max:
                message = decode(data, message_class)
        except Exception:
            message = None  # the long way says what is wrong with it
        if message is None:
            return await usual(request)
        ctx = ShortContext(method, request)
        try:
            result = await method.function()(message, ctx)
            data = encode(result)
        except (Exception, asyncio.CancelledError) as error:
            return await _began(ctx).ended_by(error)
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
    call.ctx = ctx
    return call


def _ways(app: Any) -> Mapping[str | None, Way]:
    """By media types: whether there are envelopes, fields and values that ask for nothing, the codec."""
    accepted = frozenset(
        one for one in _ACCEPTED
        if isinstance(_LIBRARY.compression_of(one, app._compressions), _LIBRARY.is_identity)
    )  # fmt: skip
    of_connect = (
        ("connect-timeout-ms", frozenset[str]()),
        ("accept-encoding", accepted),
        ("connect-protocol-version", frozenset({"1"})),
        ("content-encoding", _IDENTITY),
    )
    of_grpc = (
        ("grpc-timeout", frozenset[str]()),
        ("grpc-accept-encoding", accepted),
        ("grpc-encoding", _IDENTITY),
    )
    found: dict[str | None, Way] = {}
    for name, codec in app._codecs.items():
        media_type = f"application/{name}"
        found[media_type] = (False, of_connect, codec.decode, codec.encode, media_type)
        media_type = f"application/grpc+{name}"
        found[media_type] = (True, of_grpc, codec.decode, codec.encode, media_type)
    if "proto" in app._codecs:
        found["application/grpc"] = found["application/grpc+proto"]
    return found
