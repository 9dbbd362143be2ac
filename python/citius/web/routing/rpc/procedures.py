"""Procedures: functions that other services call by name, without HTTP (``App.rpc``, ``--rpc``).

A procedure is bound once, when the application is frozen: its signature becomes decoders that make its
arguments straight from the bytes of a call, positional or named, MessagePack or JSON. msgspec checks every
value against its annotation; what does not fit is an error for the caller (``InvalidParams``) with every
mistake (parameter_errors.py), and the function is not called. What the caller sees of an exception,
``error_of`` says.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError, HTTPError, RpcError
from citius.records import record
from citius.serial import plain
from citius.web.binding.generated import make_function
from citius.web.binding.signature import kind_of
from citius.web.declarations.annotations import copier_of
from citius.web.declarations.checks import as_dependencies, describe
from citius.web.declarations.finite import checked
from citius.web.declarations.pydantic_types import adapter_of, foreign_class, read_foreign
from citius.web.responses.problems import detail_of
from citius.web.responses.results import responder
from citius.web.routing.declared_routes import carried_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius._core import Native
    from citius.web.binding.signature import Parameter, PythonKind
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.middleware.base import Declared
    from citius.web.routing.endpoint import Endpoint

    _Call = Callable[[bytes], Any]
    _Misfit = Callable[[Exception, bytes], Exception]


@record(frozen=True, slots=True)
class Procedure:
    """A function and the name it is called by."""

    name: str
    handler: Callable[..., Any]
    kind: PythonKind
    deadline_s: float | None
    dependencies: tuple[Depends, ...] = ()
    middleware: tuple[Declared, ...] = ()
    """That of mounted applications, between the one that is served and the procedure."""


def procedure(
    handler: Callable[..., Any],
    name: str | None,
    *,
    blocking: bool,
    serial: bool = False,
    deadline_s: float | None,
    dependencies: Sequence[Depends] = (),
) -> Procedure:
    """Describe a procedure.

    Raises:
        ConfigError: It can have no such name or deadline, or cannot be called as asked.
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
    if serial:
        handler = carried_handler(f"the procedure {name}", handler, blocking=blocking)
    kind = kind_of(handler, blocking=blocking)
    depends = as_dependencies(f"the procedure {name}", dependencies)
    return Procedure(name, handler, kind, deadline_s, depends)


def add(native: Native, one: Procedure, endpoint: Endpoint, *, in_pool: bool) -> None:
    """Hand a procedure to the extension.

    Raises:
        ConfigError: Its signature can take no call.
    """
    called, kind, decoders = prepared(one, endpoint, in_pool=in_pool)
    parameters, dependencies = endpoint.parameters, endpoint.dependencies
    native.add_procedure(
        one.name,
        called,
        kind=kind,
        takes_nothing=not dependencies and not any(p.is_required for p in parameters),
        decoders=decoders,
        call_ms=None if one.deadline_s is None else max(1, round(one.deadline_s * 1000)),
        handler_name=describe(one.handler),
    )


def prepared(
    one: Procedure, endpoint: Endpoint, *, in_pool: bool
) -> tuple[Callable[..., Any], PythonKind, Decoders]:
    """What is called, how, and what decodes its parameters first.

    Raises:
        ConfigError: Its signature can take no call.
    """
    if in_pool and (serial := plain(one.handler)) is not None:
        # A greenlet of gevent carries it, and waits for itself.
        one = replace(one, handler=serial, kind="def")
        endpoint = replace(endpoint, handler=serial, kind="def")
    dependencies = endpoint.dependencies
    keep = responder(endpoint)
    called = one.handler if keep is None else _kept(one.handler, keep, one.kind)
    kind = one.kind
    if kind == "def" and any(dependency.is_async for dependency in dependencies):
        kind = "async"
    decoders = Decoders(called, endpoint.parameters, endpoint if dependencies else None, keep)
    return called, "blocking" if in_pool and kind == "def" else kind, decoders


def _kept(
    handler: Callable[..., Any], keep: Callable[[Any], Any], kind: PythonKind
) -> Callable[..., Any]:
    """The function, sending the fields of its result that it declares."""
    if kind == "async":

        @functools.wraps(handler)
        async def call_async(*args: Any, **named: Any) -> Any:
            return keep(await handler(*args, **named))

        return call_async

    @functools.wraps(handler)
    def call(*args: Any, **named: Any) -> Any:
        return keep(handler(*args, **named))

    return call


class Decoders:
    """For each way to write parameters a function that decodes them and calls the handler."""

    def __init__(
        self,
        handler: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        with_dependencies: Endpoint | None,
        keep: Callable[[Any], Any] | None,
    ) -> None:
        from msgspec import json, msgpack

        def pair(format: str, plain: Callable[..., Any]) -> tuple[_Call, _Call]:
            def decoder(type: Any) -> Any:
                read = plain(type, dec_hook=read_foreign).decode
                return checked(read, type, floats=format == "msgpack")

            if with_dependencies is not None:
                return _pair_with_dependencies(with_dependencies, decoder, format, keep)
            return _pair(handler, parameters, decoder, misfit_of(format, parameters))

        try:
            self.msgpack_array, self.msgpack_map = pair("msgpack", msgpack.Decoder)
            self.json_array, self.json_object = pair("json", json.Decoder)
        except TypeError as error:
            raise ConfigError(
                f"msgspec cannot check the parameters of {describe(handler)}: {error}"
            ) from None


def _pair(
    handler: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    decoder: Callable[[Any], Any],
    misfit: _Misfit,
) -> tuple[_Call, _Call]:
    if parameters and parameters[0].is_variable:
        many: Any = list[_type_of(parameters[0])]
        return _spread(handler, decoder(many), misfit), _unnamed(handler)
    by_name = _unpacked(handler, parameters, decoder(parameters_struct(parameters)), misfit)
    if parameters and all(p.is_required for p in parameters):
        # A tuple is unpacked faster than a structure is read.
        whole: Any = tuple[tuple(map(_type_of, parameters))]
        if all(not p.is_keyword_only for p in parameters):
            return _spread(handler, decoder(whole), misfit), by_name
    by_place = decoder(parameters_struct(parameters, array_like=True))
    return _unpacked(handler, parameters, by_place, misfit), by_name


def _pair_with_dependencies(
    endpoint: Endpoint,
    decoder: Callable[[Any], Any],
    format: str,
    keep: Callable[[Any], Any] | None,
) -> tuple[_Call, _Call]:
    """The functions of a procedure with dependencies: called before the handler, cleaned up after it."""
    handler = endpoint.handler
    # Those of dependencies follow, and can be given by name only if the handler's own end with defaults.
    parameters = call_parameters(endpoint)
    misfit = misfit_of(format, parameters)
    decode = decoder(parameters_struct(parameters, keywords=True))
    by_name = _with_dependencies(endpoint, decode, misfit, keep)
    is_ordered = sorted(parameters, key=lambda p: not p.is_required) == list(parameters)
    if not is_ordered:
        return _only_named(handler), by_name
    by_place = decoder(parameters_struct(parameters, array_like=True))
    return _with_dependencies(endpoint, by_place, misfit, keep), by_name


def call_parameters(endpoint: Endpoint) -> tuple[Parameter, ...]:
    """What a call brings: the parameters of the handler, then those of its dependencies.

    Raises:
        ConfigError: Two of one name differ, or one has no name.
    """
    own = [p for p in endpoint.parameters if p.source == "call"]
    taken = {p.name: p for p in own}
    for p in endpoint.inputs:
        if p.source != "call":
            continue
        if p.is_variable:
            raise ConfigError(
                f"{endpoint.where} has dependencies, and one of them or it takes *{p.name}: name its "
                "parameters"
            )
        known = taken.setdefault(p.name, p)
        if (known.type, known.default) != (p.type, p.default):
            raise ConfigError(
                f"{endpoint.where} and its dependencies take the parameter {p.name} with two types or "
                "defaults"
            )
    return tuple(taken.values())


def _with_dependencies(
    endpoint: Endpoint,
    decode: Callable[[bytes], Any],
    misfit: _Misfit,
    keep: Callable[[Any], Any] | None,
) -> _Call:
    from citius.web.binding.bind import Wrapper

    opening = [
        "try:",
        "    values = decode(params)",
        "except Exception as error:",
        "    raise misfit(error, params) from None",
    ]
    names = {"decode": decode, "misfit": misfit}
    return Wrapper({}, first="params", opening=opening, names=names).bind(endpoint, keep).call


def _type_of(parameter: Parameter) -> Any:
    """What msgspec decodes a parameter as."""
    adapter = adapter_of(parameter.type)
    return parameter.type if adapter is None else foreign_class(adapter)


def parameters_struct(
    parameters: tuple[Parameter, ...], *, array_like: bool = False, keywords: bool = False
) -> Any:
    """The class of a call's parameters."""
    import msgspec

    fields: list[Any] = []
    for p in parameters:
        name = None if p.wire_name == p.name else p.wire_name
        if p.is_required:
            fields.append((p.name, _type_of(p), msgspec.field(name=name)))
        else:
            default = msgspec.field(default_factory=_just(p.default), name=name)
            fields.append((p.name, _type_of(p), default))
    return msgspec.defstruct(
        "params",
        fields,
        array_like=array_like,
        kw_only=keywords,
        forbid_unknown_fields=True,
        gc=False,
    )


def _just(value: Any) -> Callable[[], Any]:
    """The function's own default, copied if a call could change it; msgspec refuses some of them."""
    return copier_of(value) or (lambda: value)


def _spread(handler: Callable[..., Any], decode: Callable[[bytes], Any], misfit: _Misfit) -> _Call:
    def call(params: bytes) -> Any:
        try:
            values = decode(params)
        except Exception as error:
            raise misfit(error, params) from None
        return handler(*values)

    return call


def _unnamed(handler: Callable[..., Any]) -> _Call:
    return _refusing(handler, "any number of parameters, none of them by name")


def _only_named(handler: Callable[..., Any]) -> _Call:
    return _refusing(handler, "its parameters by their names")


def _refusing(handler: Callable[..., Any], what: str) -> _Call:
    def refuse(params: bytes) -> Any:
        name = getattr(handler, "__name__", "it")
        raise RpcError(f"{name} takes {what}", type="InvalidParams")

    return refuse


def _unpacked(
    handler: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    decode: Callable[[bytes], Any],
    misfit: _Misfit,
) -> _Call:
    """Generate ``def call(params): …; return handler(values.a, values.b)``."""
    call = ", ".join(
        f"{p.name}=values.{p.name}" if p.is_keyword_only else f"values.{p.name}" for p in parameters
    )
    source = (
        "def call(params):\n"
        "    try:\n"
        "        values = decode(params)\n"
        "    except Exception as error:\n"
        "        raise misfit(error, params) from None\n"
        f"    return handler({call})\n"
    )
    namespace: dict[str, Any] = {"handler": handler, "decode": decode, "misfit": misfit}
    about = f"arguments of {getattr(handler, '__qualname__', 'a procedure')}"
    return make_function("call", source, namespace, about)


def misfit_of(format: str, parameters: tuple[Parameter, ...]) -> _Misfit:
    """What makes an error for the caller of an exception of a decoder and the parameters of the call."""

    def misfit(error: Exception, params: bytes) -> Exception:
        from citius.web.routing.rpc.parameter_errors import invalid_params

        return invalid_params(error, params, format, parameters)

    return misfit


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
        value = {"type": kind, "message": detail_of(error), "data": data}
        return error.status_code, error.status_code, value
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
