"""Procedures: functions that other services call by name, without HTTP (``App.rpc``, ``--rpc``).

A procedure is bound once, when the application is frozen: its signature becomes decoders that make its
arguments straight from the bytes of a call, positional or named, MessagePack or JSON. msgspec checks every
value against its annotation; what does not fit is an error for the caller (``InvalidParams``), and
the function is not called. What the caller sees of an exception, ``error_of`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius import errors
from citius.errors import ConfigError, HTTPError, RpcError
from citius.web.annotations import copier_of
from citius.web.checks import describe
from citius.web.signature import Parameter, kind_of, procedure_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Native
    from citius.web.signature import PythonKind


@dataclass(frozen=True, slots=True)
class Procedure:
    """A function and the name it is called by."""

    name: str
    handler: Callable[..., Any]
    kind: PythonKind
    deadline_s: float | None


def procedure(
    handler: Callable[..., Any], name: str | None, *, blocking: bool, deadline_s: float | None
) -> Procedure:
    """Describe a procedure.

    Raises:
        ConfigError: It can have no such name or deadline.
    """
    name = name if name is not None else str(getattr(handler, "__name__", ""))
    if not name or name == "<lambda>":
        raise ConfigError(f"{describe(handler)} has no name; give it one: @app.rpc('name')")
    if name.startswith(("rpc.", "$/")):
        raise ConfigError(
            f"names that begin with rpc. or $/ belong to the protocols, got {name!r} for "
            f"{describe(handler)}"
        )
    if deadline_s is not None and deadline_s <= 0:
        raise ConfigError(f"the deadline of {name} is a time above 0 s, got {deadline_s}")
    return Procedure(name, handler, kind_of(handler, blocking=blocking), deadline_s)


def add(native: Native, one: Procedure, *, in_pool: bool) -> None:
    """Hand a procedure to the extension.

    Raises:
        ConfigError: Its signature can take no call.
    """
    parameters = procedure_parameters(one.handler)
    native.add_procedure(
        one.name,
        one.handler,
        kind="blocking" if in_pool and one.kind == "def" else one.kind,
        takes_nothing=not any(parameter.is_required for parameter in parameters),
        decoders=_Decoders(one.handler, parameters),
        call_ms=None if one.deadline_s is None else max(1, round(one.deadline_s * 1000)),
        handler_name=describe(one.handler),
    )


class _Decoders:
    """For each way to write parameters a function that decodes them and calls the handler."""

    def __init__(self, handler: Callable[..., Any], parameters: tuple[Parameter, ...]) -> None:
        from msgspec import json, msgpack

        try:
            self.msgpack_array, self.msgpack_map = _pair(handler, parameters, msgpack.Decoder)
            self.json_array, self.json_object = _pair(handler, parameters, json.Decoder)
        except TypeError as error:
            raise ConfigError(
                f"msgspec cannot check the parameters of {describe(handler)}: {error}"
            ) from None


def _pair(
    handler: Callable[..., Any], parameters: tuple[Parameter, ...], decoder: Callable[[Any], Any]
) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any]]:
    import msgspec

    if parameters and parameters[0].is_variable:
        many: Any = list[parameters[0].type]
        return _spread(handler, decoder(many).decode), _unnamed(handler)
    fields = [
        (p.name, p.type)
        if p.is_required
        else (p.name, p.type, msgspec.field(default_factory=_just(p.default)))
        for p in parameters
    ]

    def struct(*, array_like: bool) -> Any:
        return msgspec.defstruct(
            "params", fields, array_like=array_like, forbid_unknown_fields=True, gc=False
        )

    by_name = _unpacked(handler, parameters, decoder(struct(array_like=False)).decode)
    if parameters and all(p.is_required for p in parameters):
        # A tuple is unpacked faster than a structure is read.
        whole: Any = tuple[tuple(p.type for p in parameters)]
        if all(not p.is_keyword_only for p in parameters):
            return _spread(handler, decoder(whole).decode), by_name
    return _unpacked(handler, parameters, decoder(struct(array_like=True)).decode), by_name


def _just(value: Any) -> Callable[[], Any]:
    """The function's own default, copied if a call could change it; msgspec refuses some of them."""
    return copier_of(value) or (lambda: value)


def _spread(handler: Callable[..., Any], decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def call(params: bytes) -> Any:
        try:
            values = decode(params)
        except Exception as error:
            raise _misfit(error) from None
        return handler(*values)

    return call


def _unnamed(handler: Callable[..., Any]) -> Callable[[bytes], Any]:
    def refuse(params: bytes) -> Any:
        raise RpcError(
            f"{getattr(handler, '__name__', 'it')} takes any number of parameters, none of them by "
            "name",
            type="InvalidParams",
        )

    return refuse


def _unpacked(
    handler: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    decode: Callable[[bytes], Any],
) -> Callable[[bytes], Any]:
    """Generate ``def call(params): …; return handler(values.a, values.b)``."""
    call = ", ".join(
        f"{p.name}=values.{p.name}" if p.is_keyword_only else f"values.{p.name}" for p in parameters
    )
    source = (
        "def call(params):\n"
        "    try:\n"
        "        values = decode(params)\n"
        "    except Exception as error:\n"
        "        raise misfit(error) from None\n"
        f"    return handler({call})\n"
    )
    namespace: dict[str, Any] = {"handler": handler, "decode": decode, "misfit": _misfit}
    exec(source, namespace)  # names are identifiers of the handler's own signature
    return namespace["call"]


def _misfit(error: Exception) -> Exception:
    """Parameters that do not fit, as the caller sees it."""
    import msgspec

    if not isinstance(error, (msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        return error
    message, _, path = str(error).partition(" - at `")
    return RpcError(message, type="InvalidParams", data={"path": path.rstrip("`") or "$"})


# --- what a caller sees of an exception ---------------------------------------------------------

_CODES = {
    "InvalidParams": (422, -32602),
    "MethodNotFound": (404, -32601),
    "InternalError": (500, -32603),
    "Overloaded": (503, -32000),
    "DeadlineExceeded": (504, -32001),
    "Cancelled": (499, -32800),
}
_OTHER = (400, -32000)
"""An error of the application's own: the caller's fault, as far as the log is concerned."""


def error_of(error: BaseException, is_json: bool, message: str) -> tuple[int, bytes]:
    """The status that a call which raised ``error`` is counted under, and the encoded error.

    ``message`` is what the log says of the call. ``RpcError`` and ``HTTPError`` are meant for callers.
    Others are logged and say nothing: what is in their messages was not written for strangers.
    """
    import msgspec

    status, code, value = _value_of(error, message)
    try:
        return status, _encode(msgspec, code, value, is_json)
    except (TypeError, ValueError, OverflowError) as reason:
        from citius.observability.logging import log_exception

        log_exception(f"{message}: the data of {value['type']} cannot be sent", reason)
        del value["data"]
        return status, _encode(msgspec, code, value, is_json)


def _value_of(error: BaseException, message: str) -> tuple[int, int, dict[str, Any]]:
    if isinstance(error, RpcError):
        status, code = _CODES.get(error.type, _OTHER)
        value = {"type": error.type, "message": error.message}
        if error.data is not None:
            value["data"] = error.data
        return status, code if error.code is None else error.code, value
    if isinstance(error, HTTPError):
        kind = type(error).__name__ if type(error) is not HTTPError else "HTTPError"
        data: dict[str, Any] = {"status": error.status_code}
        if error.errors:
            data["errors"] = [dict(one) for one in error.errors]
        text = error.detail or errors.phrase(error.status_code)
        return error.status_code, error.status_code, {"type": kind, "message": text, "data": data}
    from asyncio import CancelledError

    if isinstance(error, CancelledError):
        return 499, -32800, {"type": "Cancelled", "message": "the call was cancelled"}
    from citius.observability.logging import log_exception

    log_exception(message, error)
    return 500, -32603, {"type": "InternalError", "message": "the procedure failed"}


def _encode(msgspec: Any, code: int, value: dict[str, Any], is_json: bool) -> bytes:
    if not is_json:
        return msgspec.msgpack.encode(value)
    data = {"type": value["type"]}
    if "data" in value:
        data["detail"] = value["data"]
    return msgspec.json.encode({"code": code, "message": value["message"], "data": data})
