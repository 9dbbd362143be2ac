"""``citius.go`` in functions that numba compiles: ``go``, ``sleep``, ``select``, channels of numbers, arrays.

A function uses the channels that its module has made, as it does when it is called as Python. Each becomes
the address of its channel in the code, which is why such functions are not cached on disk. The functions of
``citius.h`` are called by their addresses in the server's table. The module is one thing, longer than others
are: each intrinsic needs the types and the table of addresses that all share.
"""

# numba and llvmlite have no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownLambdaType=false, reportAttributeAccessIssue=false, reportMissingImports=false
# pyright: reportUnusedFunction=false, reportPrivateUsage=false
# numba gives an intrinsic its context, and its decorators take `strict`, which its annotations do not say.
# pyright: reportCallIssue=false

from __future__ import annotations

import ctypes
import itertools
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.extending import (
    intrinsic,
    models,
    overload,
    overload_method,
    register_jitable,
    register_model,
    typeof_impl,
)
from numba.np import numpy_support
from numba.np.arrayobj import make_array

from citius._core import C_API_ADDRESS, Chan
from citius.errors import ChannelClosed, ChannelMisuse
from citius.go import after, go, select, sleep

_I8P = ir.IntType(8).as_pointer()
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FOREVER = -1
_CLOSED, _MISUSE, _CANCELLED, _UNAVAILABLE, _TIMEOUT = 1, 2, 499, 503, 504


class Refused(Exception):
    """What a function does with ``citius.go`` cannot be compiled; says why and what to do."""


# --- the server's table -------------------------------------------------------------------------------

_TABLE_HEAD_BYTES = 16  # version, minor version, size


def _addresses() -> dict[str, int]:
    """The functions of the table, by their names in ``citius.h``, which has them in this order."""
    header = (Path(__file__).parents[2] / "include/citius.h").read_text()
    body = header[header.index("struct citius_api {") :]
    names = re.findall(r"\(\*(\w+)\)\(", body[: body.index("\n};")].replace("(*drop)(void", ""))
    names = [name for name in names if name not in ("function", "globals")]
    pointers = (ctypes.c_void_p * len(names)).from_address(C_API_ADDRESS + _TABLE_HEAD_BYTES)
    return {name: int(pointer or 0) for name, pointer in zip(names, pointers, strict=True)}


_ADDRESSES = _addresses()
SYMBOLS = {f"citius_table_{name}": address for name, address in _ADDRESSES.items()}
"""What the code refers to."""


def _call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, f"citius_table_{name}")
    return builder.call(function, args)


# --- the type of a channel ----------------------------------------------------------------------------


class ChanType(types.Type):
    """A channel in compiled code: its kind of values, and their dtype in one of arrays."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind = kind
        self.value = value
        # Types of one name are one type.
        super().__init__(name=f"Chan[{kind} {value}]")


@register_model(ChanType)
class ChanModel(models.OpaqueModel):
    """The address of the channel."""


_NUMBERS = {"int": types.int64, "float": types.float64, "bool": types.boolean}
_kept: dict[int, tuple[Chan[Any], int]] = {}
"""Channels whose addresses are in code, which lives as long as the process."""


@typeof_impl.register(Chan)
def _typeof(chan: Chan[Any], context: Any) -> ChanType:
    kind, more = chan._element
    if kind in _NUMBERS:
        return ChanType(kind, _NUMBERS[kind])
    if kind == "bytes":
        return ChanType("array", types.uint8)
    if kind == "array":
        return ChanType("array", numpy_support.from_dtype(np.dtype(more)))
    what = {
        "object": "Python objects",
        "none": "None",
        "struct": "structs",
    }[kind]
    raise Refused(
        f"it uses a channel of {what}; compiled functions take channels of numbers and arrays: "
        "chan(type=int), float, bool, bytes or a numpy dtype"
    )


@lower_constant(ChanType)
def _constant(context: Any, builder: Any, kind: Any, chan: Any) -> Any:
    if id(chan) not in _kept:
        take = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(_ADDRESSES["chan_from_python"])
        _kept[id(chan)] = (chan, int(take(chan)))
    return builder.inttoptr(ir.Constant(_I64, _kept[id(chan)][1]), _I8P)


# --- what a wait came to ------------------------------------------------------------------------------


@register_jitable
def _check(code: int) -> None:
    if code == _CLOSED:
        raise ChannelClosed("the channel is closed")
    if code == _TIMEOUT:
        raise TimeoutError("the deadline has come")
    if code == _MISUSE:
        raise ChannelMisuse("it waits where nothing may wait: add serial=True to the route")
    if code == _UNAVAILABLE:
        raise RuntimeError("there are as many goroutines as --goroutines-max permits")
    if code != 0:
        raise RuntimeError("the client has left, or the context was cancelled")


@intrinsic
def ended(typing_context: Any) -> Any:
    """0, or 499 or 504 if the context of this goroutine has ended."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        current = _call(builder, "context_current", _I8P)
        code = cgutils.alloca_once_value(builder, _I32(0))
        with builder.if_then(cgutils.is_not_null(builder, current)):
            builder.store(_call(builder, "context_error", _I32, current), code)
            _call(builder, "context_release", ir.VoidType(), current)
        return builder.load(code)

    return types.intc(), generate


# --- sending ------------------------------------------------------------------------------------------


@intrinsic
def _send_number(typing_context: Any, chan: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = builder.zext(args[1], _I8) if chan.value is types.boolean else args[1]
        place = builder.bitcast(cgutils.alloca_once_value(builder, stored), _I8P)
        size = _I64(1 if chan.value is types.boolean else 8)
        code = _call(builder, "chan_send", _I32, args[0], place, size, _I64(_FOREVER))
        return builder.sext(code, _I64)

    return types.int64(chan, chan.value), generate


@intrinsic
def _send_array(typing_context: Any, chan: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = make_array(value)(context, builder, value=args[1])
        data = builder.bitcast(view.data, _I8P)
        size = builder.mul(view.nitems, view.itemsize)
        code = _call(builder, "chan_send_bytes", _I32, args[0], data, size, _I64(_FOREVER))
        return builder.sext(code, _I64)

    return types.int64(chan, value), generate


def _check_value(chan: ChanType, value: Any) -> None:
    """Refuse to send what the channel does not take."""
    given = types.unliteral(value)
    if chan.kind == "array":
        fits = (
            isinstance(given, types.Buffer)
            and given.ndim == 1
            and given.layout == "C"
            and given.dtype == chan.value
        )
        expected = f"contiguous one-dimensional arrays of {chan.value}"
    else:
        allowed = {
            "int": types.Integer,
            "float": (types.Integer, types.Float),
            "bool": types.Boolean,
        }[chan.kind]
        fits, expected = isinstance(given, allowed), f"values of type {chan.kind}"
    if not fits:
        raise Refused(f"it sends {given} on a channel whose values are {expected}")


@overload_method(ChanType, "send", strict=False)
def _send(chan: Any, value: Any) -> Any:
    _check_value(chan, value)
    if chan.kind == "array":
        return lambda chan, value: _check(_send_array(chan, value))
    return lambda chan, value: _check(_send_number(chan, value))


# --- receiving ----------------------------------------------------------------------------------------


@intrinsic
def _receive_number(typing_context: Any, chan: Any) -> Any:
    returned = types.Tuple((types.int64, chan.value))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        is_bool = chan.value is types.boolean
        stored = _I8 if is_bool else context.get_value_type(chan.value)
        place = cgutils.alloca_once(builder, stored)
        size = _I64(1 if is_bool else 8)
        code = _call(
            builder,
            "chan_receive",
            _I32,
            args[0],
            builder.bitcast(place, _I8P),
            size,
            _I64(_FOREVER),
        )
        value = builder.load(place)
        if is_bool:
            value = builder.icmp_unsigned("!=", value, _I8(0))
        return context.make_tuple(builder, returned, (builder.sext(code, _I64), value))

    return returned(chan), generate


@intrinsic
def _receive_bytes(typing_context: Any, chan: Any) -> Any:
    """The code, the address of what was received, and how many bytes it is."""
    returned = types.UniTuple(types.int64, 3)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        layout = ir.LiteralStructType([_I8P, _I64])
        place = cgutils.alloca_once_value(builder, ir.Constant(layout, None))
        code = _call(
            builder,
            "chan_receive_bytes",
            _I32,
            args[0],
            builder.bitcast(place, _I8P),
            _I64(_FOREVER),
        )
        received = builder.load(place)
        address = builder.ptrtoint(builder.extract_value(received, 0), _I64)
        size = builder.extract_value(received, 1)
        return context.make_tuple(builder, returned, (builder.sext(code, _I64), address, size))

    return returned(chan), generate


@intrinsic
def _take(typing_context: Any, address: Any, array: Any, size: Any) -> Any:
    """Moves what was received to an array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = make_array(array)(context, builder, value=args[1])
        received = builder.inttoptr(args[0], _I8P)
        cgutils.raw_memcpy(builder, builder.bitcast(view.data, _I8P), received, args[2], 1)
        _call(builder, "free", ir.VoidType(), received)
        return context.get_dummy_value()

    return types.void(types.int64, array, types.int64), generate


@overload_method(ChanType, "recv", strict=False)
def _recv(chan: Any) -> Any:
    if chan.kind != "array":

        def receive_number(chan: Any) -> Any:
            code, value = _receive_number(chan)
            if code != _CLOSED:
                _check(code)
            return value, code == 0

        return receive_number

    dtype = numpy_support.as_dtype(chan.value)
    item_bytes = dtype.itemsize

    def receive_array(chan: Any) -> Any:
        code, address, size = _receive_bytes(chan)
        if code != _CLOSED:
            _check(code)
        if code != 0:
            return np.empty(0, dtype), False
        array = np.empty(size // item_bytes, dtype)
        _take(address, array, array.size * item_bytes)
        return array, True

    return receive_array


@intrinsic
def _close_channel(typing_context: Any, chan: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sext(_call(builder, "chan_close", _I32, args[0]), _I64)

    return types.int64(chan), generate


@overload_method(ChanType, "close", strict=False)
def _close(chan: Any) -> Any:
    return lambda chan: _check(_close_channel(chan))


@intrinsic
def _count(typing_context: Any, chan: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "chan_count", _I64, args[0], _I32(0))

    return types.int64(chan), generate


@overload(len, strict=False)
def _len(chan: Any) -> Any:
    if isinstance(chan, ChanType):
        return lambda chan: _count(chan)
    return None


# --- time ---------------------------------------------------------------------------------------------


@intrinsic
def _now(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "now", _I64)

    return types.int64(), generate


@intrinsic
def _sleep_until(typing_context: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sext(_call(builder, "sleep_until", _I32, args[0]), _I64)

    return types.int64(types.int64), generate


@overload(sleep, strict=False)
def _sleep(seconds: Any) -> Any:
    if not isinstance(types.unliteral(seconds), (types.Integer, types.Float)):
        raise Refused(f"it sleeps for {seconds}; expected seconds as a number")

    def implementation(seconds: Any) -> None:
        if seconds != seconds:
            raise ValueError("seconds is not a number")
        _check(_sleep_until(_now() + np.int64(min(max(seconds, 0.0), 1e9) * 1e9)))

    return implementation


@overload(time.monotonic, strict=False)
def _monotonic() -> Any:
    return lambda: _now() * 1e-9


# --- select -------------------------------------------------------------------------------------------

_CASE = ir.LiteralStructType([_I8P, _I8P, _I64, _I32, _I32])
"""``citius_case``: channel, value, size, operation, ok."""

_CASES_MAX = 8


class AfterType(types.Type):
    """What ``after`` makes in compiled code: a time, as a case of a select."""

    def __init__(self) -> None:
        super().__init__(name="After")


_after = AfterType()


@register_model(AfterType)
class AfterModel(models.PrimitiveModel):
    """The time on the server's clock, in nanoseconds."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _I64)


@intrinsic
def _after_at(typing_context: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return _after(types.int64), generate


@overload(after, strict=False)
def _make_after(seconds: Any) -> Any:
    if not isinstance(types.unliteral(seconds), (types.Integer, types.Float)):
        raise Refused(f"it waits until after {seconds}; expected seconds as a number")

    def implementation(seconds: Any) -> Any:
        if seconds != seconds:
            raise ValueError("seconds is not a number")
        return _after_at(_now() + np.int64(min(max(seconds, 0.0), 1e9) * 1e9))

    return implementation


def _is_send(case: Any) -> bool:
    return isinstance(case, types.BaseTuple)


def _is_none(case: Any) -> bool:
    return isinstance(case, (types.Omitted, types.NoneType))


def _received_of(cases: Any) -> Any:
    """The type of what a select receives: that of its channels.

    Raises:
        Refused: It is none that compiled code has.
    """
    found: list[Any] = []
    for case in cases:
        chan: Any = case[0] if _is_send(case) and len(case) == 2 else case
        if _is_send(case):
            if not isinstance(chan, ChanType):
                raise Refused(f"it selects {case}; a case that sends is (channel, value)")
            _check_value(chan, case[1])
        elif not isinstance(case, (ChanType, AfterType)) and not _is_none(case):
            raise Refused(
                f"it selects {case}; a case is a channel, (channel, value), after(seconds) or None"
            )
        if isinstance(chan, ChanType) and chan.kind == "array":
            raise Refused("it selects a channel of arrays; expected channels of numbers")
        if isinstance(case, ChanType) and chan.value not in found:
            found.append(chan.value)
    if len(found) > 1:
        kinds = " and ".join(map(str, found))
        raise Refused(f"it receives {kinds} by one select; expected channels of one type")
    if sum(isinstance(case, AfterType) for case in cases) > 1:
        raise Refused("it selects two times; expected one after(seconds)")
    return found[0] if found else types.int64


def _choice(typing_context: Any, cases: Any, waits: bool) -> Any:
    """The number of the case (or minus a code), what was received, and whether that is a value."""
    received = _received_of(cases)
    returned = types.Tuple((types.int64, received, types.boolean))
    timer = next((at for at, case in enumerate(cases) if isinstance(case, AfterType)), None)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        is_bool = received is types.boolean
        stored = _I8 if is_bool else context.get_value_type(received)
        place = cgutils.alloca_once_value(builder, ir.Constant(stored, 0))
        layout = cgutils.alloca_once(builder, _CASE, len(cases))
        for at, (kind, given) in enumerate(zip(cases, args, strict=True)):
            channel, value, operation = _I8P(None), builder.bitcast(place, _I8P), 0
            chan = kind
            if _is_send(kind):
                channel, sent = cgutils.unpack_tuple(builder, given, 2)
                chan = kind[0]
                sent = context.cast(builder, sent, kind[1], chan.value)
                if chan.value is types.boolean:
                    sent = builder.zext(sent, _I8)
                value = builder.bitcast(cgutils.alloca_once_value(builder, sent), _I8P)
                operation = 1
            elif isinstance(kind, ChanType):
                channel = given
            is_byte = isinstance(chan, ChanType) and chan.value is types.boolean
            fields = (channel, value, _I64(1 if is_byte else 8), _I32(operation), _I32(0))
            for number, field in enumerate(fields):
                builder.store(field, builder.gep(layout, [_I32(at), _I32(number)]))
        timeout = _I64(_FOREVER if waits else 0)
        if waits and timer is not None:
            left = builder.sub(args[timer], _call(builder, "now", _I64))
            timeout = builder.select(builder.icmp_signed("<", left, _I64(0)), _I64(0), left)
        first = builder.bitcast(layout, _I8P)
        code = _call(builder, "select", _I32, first, _I64(len(cases)), timeout)
        is_chosen = builder.icmp_signed(">=", code, _I32(0))
        at = builder.select(is_chosen, code, _I32(0))
        ok = builder.load(builder.gep(layout, [at, _I32(4)]))
        ok = builder.and_(is_chosen, builder.icmp_signed("!=", ok, _I32(0)))
        if waits and timer is not None:
            is_late = builder.icmp_signed("==", code, _I32(-_TIMEOUT))
            code = builder.select(is_late, _I32(timer), code)
            ok = builder.or_(is_late, ok)
        value = builder.load(place)
        if is_bool:
            value = builder.icmp_unsigned("!=", value, _I8(0))
        return context.make_tuple(builder, returned, (builder.sext(code, _I64), value, ok))

    return returned(*cases), generate


@intrinsic
def _choose(
    typing_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    return _choice(typing_context, (a, b, c, d, e, f, g, h), waits=True)


@intrinsic
def _choose_ready(
    typing_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    return _choice(typing_context, (a, b, c, d, e, f, g, h), waits=False)


# Cases by name: numba binds no keyword behind `*cases`.
@overload(select, strict=False, prefer_literal=True)
def _select(
    a: Any, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None,
    g: Any = None, h: Any = None, default: Any = False,
) -> Any:  # fmt: skip
    cases = tuple(types.Omitted(None) if one is None else one for one in (a, b, c, d, e, f, g, h))
    _received_of(cases)
    has_default = getattr(default, "literal_value", getattr(default, "value", default))
    if not isinstance(has_default, bool):
        raise Refused("it selects with default=…; expected True or False, as it is written there")

    def waits(
        a: Any, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None,
        g: Any = None, h: Any = None, default: Any = False,
    ) -> Any:  # fmt: skip
        chosen, value, ok = _choose(a, b, c, d, e, f, g, h)
        if chosen < 0:
            _check(-chosen)
        return chosen, value, ok

    def looks(
        a: Any, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None,
        g: Any = None, h: Any = None, default: Any = False,
    ) -> Any:  # fmt: skip
        chosen, value, ok = _choose_ready(a, b, c, d, e, f, g, h)
        case = None if chosen == -_TIMEOUT else chosen
        if chosen < 0 and chosen != -_TIMEOUT:
            _check(-chosen)
        return case, value, ok

    return looks if has_default else waits


# --- goroutines ---------------------------------------------------------------------------------------

_numbers = itertools.count()


def _check_started(function: Any, args: Any) -> None:
    """Refuse what cannot go to another goroutine."""
    if not isinstance(function, types.Dispatcher):
        raise Refused(f"go starts functions that are decorated with @numba.njit, got {function}")
    for kind in args:
        given = types.unliteral(kind)
        if not isinstance(given, (types.Integer, types.Float, types.Boolean, ChanType)):
            raise Refused(
                f"go is given {given}; a goroutine takes numbers and channels, because it may "
                "outlive what the request owns: send arrays by a channel, which copies them"
            )


@intrinsic
def _start(typing_context: Any, function: Any, args: Any) -> Any:
    resolved = typing_context.resolve_function_type(
        function, tuple(types.unliteral(kind) for kind in args), {}
    )

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        compiled = function.dispatcher.overloads[tuple(resolved.args)]
        context.active_code_library.add_linking_library(compiled.library)
        values = cgutils.unpack_tuple(builder, given[1], len(args))
        values = [
            context.cast(builder, value, kind, wanted)
            for value, kind, wanted in zip(values, args, resolved.args, strict=True)
        ]
        layout = ir.LiteralStructType([value.type for value in values] or [_I8])
        memory = builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I8P, [_I64]), "malloc"),
            [_I64(context.get_abi_sizeof(layout))],
        )
        fields = builder.bitcast(memory, layout.as_pointer())
        for index, value in enumerate(values):
            builder.store(value, cgutils.gep_inbounds(builder, fields, 0, index))
        entry = _goroutine(context, builder.module, compiled, layout, len(values))
        code = _call(builder, "go", _I32, builder.bitcast(entry, _I8P), memory)
        with builder.if_then(builder.icmp_signed("!=", code, _I32(0))):
            _free(builder, memory)
        return builder.sext(code, _I64)

    return types.int64(function, args), generate


def _free(builder: Any, memory: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_I8P])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, "free"), [memory])


def _goroutine(context: Any, module: Any, compiled: Any, layout: Any, count: int) -> Any:
    """``void f(void *)``: calls the function with what the memory has, frees it, reports an exception."""
    kind = ir.FunctionType(ir.VoidType(), [_I8P])
    name = f"citius_goroutine_{next(_numbers)}_{compiled.fndesc.uid}"
    entry = ir.Function(module, kind, name)
    entry.linkage = "internal"
    builder = ir.IRBuilder(entry.append_basic_block())
    fields = builder.bitcast(entry.args[0], layout.as_pointer())
    values = [builder.load(cgutils.gep_inbounds(builder, fields, 0, at)) for at in range(count)]
    _free(builder, entry.args[0])
    fndesc = compiled.fndesc
    convention = context.call_conv
    function = cgutils.get_or_insert_function(
        module,
        convention.get_function_type(fndesc.restype, fndesc.argtypes),
        fndesc.llvm_func_name,
    )
    status, _ = convention.call_function(builder, function, fndesc.restype, fndesc.argtypes, values)
    with cgutils.if_unlikely(builder, status.is_error):
        api = context.get_python_api(builder)
        state = api.gil_ensure()
        convention.raise_error(builder, api, status)
        text = context.insert_const_string(module, f"the goroutine {fndesc.qualname}")
        subject = api.string_from_string(text)
        api.err_write_unraisable(subject)
        api.decref(subject)
        api.gil_release(state)
    builder.ret_void()
    return entry


@overload(go, strict=False)
def _go(f: Any, *args: Any) -> Any:
    given = args[0] if len(args) == 1 and isinstance(args[0], types.BaseTuple) else args
    _check_started(f, given)

    def implementation(f: Any, *args: Any) -> None:
        _check(_start(f, args))

    return implementation
