"""Procedures by Connect on the web port: JSON, one response or a stream of them, without a ``.proto``.

``App.connect`` makes a route for each procedure: ``POST PREFIX/SERVICE/METHOD``. The protocol is Connect's
(connectrpc.com/docs/protocol): a unary call is a request with ``application/json``, a stream has
``application/connect+json`` with each message behind five bytes. Members have the names of parameters; a
result that is no object is ``{"result": …}``; proto.py describes them. Tests: ``tests/rpc/test_connect.py``.
"""

from __future__ import annotations

import asyncio
import inspect
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from citius._core import Request, Response
from citius.errors import (
    ConfigError,
    HTTPError,
    RpcError,
)
from citius.observability.logging import log_exception
from citius.observability.rpc_codes import NUMBERS
from citius.waiting import check_cancelled
from citius.web.binding.bind import Wrapper
from citius.web.binding.signature import procedure_parameters
from citius.web.declarations.annotations import is_encoded
from citius.web.declarations.checks import as_dependencies, describe
from citius.web.declarations.codecs import encode_json
from citius.web.declarations.finite import checked
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.pydantic_types import read_foreign
from citius.web.declarations.type_kinds import deciding, has_record
from citius.web.declarations.type_kinds import kind_of as type_kind_of
from citius.web.responses.problems import detail_of
from citius.web.responses.results import filter_of_items, responder
from citius.web.responses.rpc_trailers import Trailers
from citius.web.routing.declared_routes import Operation, Route
from citius.web.routing.endpoint import (
    Endpoint,
    endpoint_of_procedure,
    result_of,
    without_awaits_in_threads,
)
from citius.web.routing.rpc.procedures import call_parameters, misfit_of, parameters_struct

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from citius.web.binding.depends.dependencies import Resolver
    from citius.web.binding.signature import Parameter
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.routing.rpc.procedures import Procedure

VERSION: Final = "1"
"""What ``Connect-Protocol-Version`` may be."""
TIMEOUT_DIGITS_MAX: Final = 10
"""Digits of ``Connect-Timeout-Ms``, by the protocol."""
MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of a message that was compressed, or that a stream begins with. Origin: gRPC's default. Exceeded:
resource_exhausted."""

_STREAM: Final = "application/connect+json"
_COMPRESSED: Final = 1
_END: Final = 2
_ENVELOPE: Final = struct.Struct(">BI")

CODES: Final = {
    "canceled": 499, "unknown": 500, "invalid_argument": 400, "deadline_exceeded": 504,
    "not_found": 404, "already_exists": 409, "permission_denied": 403, "resource_exhausted": 429,
    "failed_precondition": 400, "aborted": 409, "out_of_range": 400, "unimplemented": 501,
    "internal": 500, "unavailable": 503, "data_loss": 500, "unauthenticated": 401,
}  # fmt: skip
"""Connect's codes, and the status of HTTP of each."""

_BY_TYPE: Final = {
    "InvalidParams": "invalid_argument",
    "InvalidRequest": "invalid_argument",
    "ParseError": "invalid_argument",
    "MethodNotFound": "unimplemented",
    "InternalError": "internal",
    "Overloaded": "unavailable",
    "DeadlineExceeded": "deadline_exceeded",
    "MessageTooLong": "resource_exhausted",
    "Cancelled": "canceled",
}
_BY_STATUS: Final = {
    400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied", 404: "not_found",
    409: "aborted", 412: "failed_precondition", 413: "resource_exhausted", 415: "invalid_argument",
    422: "invalid_argument", 429: "resource_exhausted", 499: "canceled", 501: "unimplemented",
    503: "unavailable", 504: "deadline_exceeded",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Connect:
    """What ``App.connect`` has said."""

    prefix: str
    service: str
    dependencies: tuple[Depends, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A procedure as a method of a service."""

    service: str
    name: str
    endpoint: Endpoint
    is_stream: bool
    item: Any
    """The type of what a stream yields; ``MISSING`` without a stream."""


def is_stream(procedure: Procedure) -> bool:
    """Whether a procedure has many results, which only Connect can carry."""
    target = deciding(procedure.handler)
    return inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target)


def method_of(one: Procedure, service: str, resolver: Resolver) -> Method:
    """A procedure as Connect calls it.

    Raises:
        ConfigError: A call cannot bring a parameter, or its name is none of the protocol.
    """
    where, _, name = one.name.rpartition(".")
    if not all(part.isidentifier() and part.isascii() for part in one.name.split(".")):
        raise ConfigError(
            f"the procedure {one.name!r} of {describe(one.handler)}: expected a name such as users.get, "
            "which app.connect can be asked for"
        )
    if not is_stream(one):
        return Method(where or service, name, endpoint_of_procedure(one, resolver), False, MISSING)
    if one.kind == "blocking":
        raise ConfigError(
            f"the procedure {one.name} of {describe(one.handler)} is a stream and has blocking=True; make it "
            "`async def`"
        )
    handler = one.handler
    resolver = resolver.reading(lambda call, _: procedure_parameters(call))
    parameters, extra = resolver.resolve(
        handler, procedure_parameters(handler), one.dependencies, ""
    )
    result, _, _ = result_of(handler, Operation())
    item = MISSING if result is MISSING else type_kind_of(result).parts[0]
    endpoint = Endpoint(
        "rpc", "", one.name, handler, one.kind, parameters, extra, deadline_s=one.deadline_s
    )
    kept = next((each for each in endpoint.dependencies if each.is_generator), None)
    if kept is not None:
        raise ConfigError(
            f"the procedure {one.name} of {describe(one.handler)} is a stream and takes "
            f"{describe(kept.call)}, which would end before the stream; use `with` in the procedure"
        )
    return Method(where or service, name, without_awaits_in_threads(endpoint), True, item)


def named_parameters(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """What a call by Connect brings, as members of its body.

    Raises:
        ConfigError: One has no name.
    """
    parameters = call_parameters(endpoint) if endpoint.dependencies else endpoint.parameters
    for one in parameters:
        if one.is_variable:
            raise ConfigError(
                f"{endpoint.where} takes *{one.name}, and a call by Connect names its parameters"
            )
    return parameters


def connect_routes(
    connect: Connect, procedures: Sequence[Procedure], resolver: Resolver
) -> list[Route]:
    """The routes of all procedures.

    Raises:
        ConfigError: One cannot be called by Connect.
    """
    found: list[Route] = []
    for one in procedures:
        method = method_of(one, connect.service, resolver)
        handler: Any = _Stream(method).call if method.is_stream else _Unary(method).handler
        path = f"{connect.prefix}/{method.service}/{method.name}"
        blocking = method.endpoint.kind == "blocking" and not method.is_stream
        found.append(
            Route(
                "POST", path, _named(handler, one.handler), "blocking" if blocking else "async",
                dependencies=connect.dependencies, middleware=one.middleware,
                operation=Operation(
                    name=f"connect {one.name}", include_in_schema=False, is_procedure=True
                ),
            )
        )  # fmt: skip
    return found


def made_connect(
    prefix: str, service: str, dependencies: Sequence[Depends], known: Sequence[Connect]
) -> Connect:
    """What ``App.connect`` is called with.

    Raises:
        ConfigError: It cannot hold.
    """
    if not all(part.isidentifier() and part.isascii() for part in service.split(".")):
        raise ConfigError(f"app.connect: expected service='shop.Orders', got {service!r}")
    if any(one.prefix == prefix for one in known):
        raise ConfigError(f"app.connect({prefix!r}) is there twice")
    depends = as_dependencies(f"app.connect({prefix!r})", dependencies)
    return Connect(prefix, service, depends)


class _Call:
    """What unary calls and streams have in common: the arguments, and what callers see of errors."""

    def __init__(self, method: Method) -> None:
        endpoint = method.endpoint
        parameters = named_parameters(endpoint)
        parameters = tuple(map(_may_be_left_out, parameters))
        structure = parameters_struct(parameters, keywords=True)
        try:
            # Clients of protocol buffers write 64-bit integers as texts.
            read = msgspec.json.Decoder(structure, strict=False, dec_hook=read_foreign).decode
            decode = checked(read, structure, floats=True)
        except TypeError as error:
            raise ConfigError(
                f"msgspec cannot check the parameters of {endpoint.where}: {error}"
            ) from None
        self._misfit = misfit_of("json", parameters)
        keep = None if method.is_stream else responder(endpoint)
        opening = [
            "try:",
            "    values = decode(params)",
            "except Exception as error:",
            "    raise misfit(error, params) from None",
        ]
        names = {"decode": decode, "misfit": self._misfit}
        bound = Wrapper({}, first="params", opening=opening, names=names).bind(endpoint, keep)
        self._run: Callable[[bytes], Any] = bound.call
        self._is_async = bound.kind == "async"
        self._deadline_s = endpoint.deadline_s
        self._where = endpoint.where

    def _deadline(self, request: Request) -> float | None:
        """How long the call may take."""
        version = request.header("connect-protocol-version")
        if version is not None and version != VERSION:
            raise RpcError(f"expected Connect-Protocol-Version: {VERSION}", type="InvalidRequest")
        said = request.header("connect-timeout-ms")
        if said is None:
            return self._deadline_s
        if not (said.isascii() and said.isdigit() and len(said) <= TIMEOUT_DIGITS_MAX):
            raise RpcError(
                "expected Connect-Timeout-Ms of at most ten digits", type="InvalidRequest"
            )
        asked = int(said) / 1000
        return asked if self._deadline_s is None else min(asked, self._deadline_s)

    def _error(self, request: Request, error: BaseException) -> tuple[str, dict[str, Any]]:
        """The code and the error that a caller gets."""
        if isinstance(error, TimeoutError):
            return "deadline_exceeded", _said("deadline_exceeded", "the call took too long")
        if isinstance(error, RpcError):
            code = _BY_TYPE.get(error.type, "failed_precondition")
            data: dict[str, Any] = {"type": error.type}
            if error.data is not None:
                data["data"] = error.data
            return code, _said(code, error.message, data)
        if isinstance(error, HTTPError):
            code = _BY_STATUS.get(error.status_code, "unknown")
            more = {"errors": [dict(one) for one in error.errors]} if error.errors else None
            return code, _said(code, detail_of(error), more)
        if isinstance(error, asyncio.CancelledError):
            return "canceled", _said("canceled", "the call was cancelled")
        message = request._message(f": {self._where} failed")  # pyright: ignore[reportPrivateUsage]
        log_exception(message, error)
        return "internal", _said("internal", "the procedure failed")


def _may_be_left_out(p: Parameter) -> Parameter:
    """A list or a mapping, which clients of protocol buffers do not send if it is empty."""
    if p.is_required and p.annotation is not MISSING:
        kind = type_kind_of(p.annotation).kind
        if kind in ("array", "mapping"):
            return replace(p, default=[] if kind == "array" else {})
    return p


def _said(code: str, message: str, data: object = None) -> dict[str, Any]:
    said: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        # The value is a message of protocol buffers, which these errors have none of.
        said["details"] = [{"type": "google.protobuf.Struct", "value": "", "debug": data}]
    return said


class _Unary(_Call):
    """Calls with one result."""

    def __init__(self, method: Method) -> None:
        super().__init__(method)
        self._is_object = is_object(method.endpoint.result)
        blocking = method.endpoint.kind == "blocking"
        self.handler = self.call_in_thread if blocking else self.call

    async def call(self, request: Request) -> Response:
        """The response to a call."""
        try:
            params = self._params(request)
            deadline_s = self._deadline(request)
            if not self._is_async:
                return self._response(self._run(params))
            async with asyncio.timeout(deadline_s):
                return self._response(await self._run(params))
        except (Exception, asyncio.CancelledError) as error:
            check_cancelled(error)
            return self._refusal(request, error)

    def call_in_thread(self, request: Request) -> Response:
        """The same, where it may wait."""
        try:
            self._deadline(request)
            return self._response(self._run(self._params(request)))
        except Exception as error:
            return self._refusal(request, error)

    def _params(self, request: Request) -> bytes:
        kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # Clients of other codecs and of streams look at the status.
            raise HTTPError(415, "expected Content-Type: application/json")
        return _decoded(request.body(), request.header("content-encoding")) or b"{}"

    def _response(self, value: Any) -> Response:
        if value is None:
            body = b"{}"
        else:
            body = encode_json(value if self._is_object or _is_dict(value) else {"result": value})
        return Response(body, 200, None, "application/json")

    def _refusal(self, request: Request, error: BaseException) -> Response:
        if isinstance(error, HTTPError) and error.status_code == 415:
            raise error
        code, said = self._error(request, error)
        body = _encoded(said)
        fields = {"content-length": str(len(body))}
        # In one piece, behind which the code is told.
        return Response(
            iter((body,)),
            CODES[code],
            fields,
            "application/json",
            trailers=Trailers((), NUMBERS[code]),
        )


class _Stream(_Call):
    """Calls with many results."""

    def __init__(self, method: Method) -> None:
        super().__init__(method)
        self._keep = filter_of_items(method.endpoint.handler, method.endpoint)
        self._is_object = is_object(method.item)

    async def call(self, request: Request) -> Response:
        """The response to a call, whose messages follow."""
        if (request.header("content-type") or "").strip().lower() != _STREAM:
            raise HTTPError(415, f"expected Content-Type: {_STREAM}")
        told = Trailers((), NUMBERS["ok"])
        return Response(self._messages(request, told), 200, None, _STREAM, trailers=told)

    async def _messages(self, request: Request, told: Trailers) -> AsyncIterator[bytes]:
        end: dict[str, Any] = {}
        source: Any = None
        try:
            async with asyncio.timeout(self._deadline(request)):
                coding = request.header("connect-content-encoding")
                made = self._run(_unwrapped(request.body(), coding))
                source = await made if self._is_async else made
                async for value in _each(source):
                    kept = value if self._keep is None else self._keep(value)
                    is_object = self._is_object or _is_dict(kept)
                    yield _enveloped(0, encode_json(kept if is_object else {"result": kept}))
        except (Exception, asyncio.CancelledError) as error:
            check_cancelled(error)
            code, said = self._error(request, error)
            end, told.rpc_code = {"error": said}, NUMBERS[code]
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
        yield _enveloped(_END, _encoded(end))


async def _each(source: Any) -> AsyncIterator[Any]:
    if hasattr(source, "__aiter__"):
        async for value in source:
            yield value
    else:
        for value in source:
            yield value


def _decoded(data: bytes, coding: str | None) -> bytes:
    """A message without its coding.

    Raises:
        RpcError: There is no such coding, or it has been used wrong.
    """
    if coding in (None, "", "identity"):
        return data
    if coding != "gzip":
        raise RpcError(f"the coding {coding!r} is not known; there is gzip", type="MethodNotFound")
    import zlib

    inflate = zlib.decompressobj(31)
    try:
        made = inflate.decompress(data, MESSAGE_BYTES_MAX)
    except zlib.error as error:
        raise RpcError(f"expected a message in gzip: {error}", type="InvalidRequest") from None
    if inflate.unconsumed_tail:
        raise RpcError(f"a message may have {MESSAGE_BYTES_MAX} bytes", type="MessageTooLong")
    if not inflate.eof or inflate.unused_data:
        raise RpcError("expected one whole message in gzip", type="InvalidRequest")
    return made


def _unwrapped(body: bytes, coding: str | None) -> bytes:
    """The message that a stream begins with."""
    if len(body) < _ENVELOPE.size:
        raise RpcError("expected one message behind five bytes", type="InvalidRequest")
    flags, size = _ENVELOPE.unpack_from(body)
    if flags not in (0, _COMPRESSED) or (flags and coding is None):
        raise RpcError(f"the flags {flags} are not known", type="InvalidRequest")
    if size > MESSAGE_BYTES_MAX:
        raise RpcError(f"a message may have {MESSAGE_BYTES_MAX} bytes", type="MessageTooLong")
    if len(body) != _ENVELOPE.size + size:
        raise RpcError("expected one message of the length that it says", type="InvalidRequest")
    return _decoded(body[_ENVELOPE.size :], coding if flags else None) or b"{}"


def _enveloped(flags: int, data: bytes) -> bytes:
    return _ENVELOPE.pack(flags, len(data)) + data


def _encoded(said: dict[str, Any]) -> bytes:
    try:
        return encode_json(said)
    except (TypeError, ValueError, OverflowError) as error:
        log_exception("the data of an error cannot be sent", error)
        error_said = cast("dict[str, Any]", said.get("error", said))
        error_said.pop("details", None)
        return encode_json(said)


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def is_object(annotation: Any) -> bool:
    """Whether values of a type are objects in JSON, which need no name."""
    if annotation is MISSING or not is_encoded(annotation):
        return False
    found = type_kind_of(annotation)
    if found.kind == "union":
        parts = [one for one in found.parts if one is not type(None)]
        return len(parts) == 1 and is_object(parts[0])
    return found.kind in ("record", "mapping") and (
        found.kind == "mapping" or has_record(annotation)
    )


def _named(handler: Any, function: Callable[..., Any]) -> Any:
    """The handler, called as the procedure in messages."""

    async def call_async(request: Request) -> Response:
        return await handler(request)

    def call(request: Request) -> Response:
        return handler(request)

    made = call_async if inspect.iscoroutinefunction(handler) else call
    made.__qualname__ = made.__name__ = (
        f"{getattr(function, '__qualname__', 'procedure')} by Connect"
    )
    return made


def with_streams_refused(procedure: Procedure) -> Procedure:
    """A stream as callers of ``--rpc`` see it, who can have one result only."""

    def refuse() -> None:
        raise RpcError(
            f"{procedure.name} is a stream, which is called by Connect", type="MethodNotFound"
        )

    return replace(procedure, handler=refuse, kind="def", dependencies=())
