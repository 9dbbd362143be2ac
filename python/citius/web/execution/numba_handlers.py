"""Typed Python functions as native handlers, by numba.

A function is compiled as it is, and around it a small entry with the signature of ``citius.h`` that is
written here for its types: it fetches the arguments the extension has taken from the request, calls, and
hands the result back. No Python object is involved, and the GIL is not needed.

The entry, with the function compiled into it, is cached on disk under a name that is a hash of everything
that went in: a change in the function, in what it calls or in a constant it reads makes a new one.
"""

# numba and llvmlite have no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownLambdaType=false, reportAttributeAccessIssue=false, reportMissingImports=false
# pyright: reportUnusedFunction=false, reportPrivateUsage=false

from __future__ import annotations

import ctypes
import hashlib
import inspect
import linecache
import os
import re
import sys
import types as python_types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from citius._core import C_SYMBOLS, Chan, __version__
from citius.errors import ConfigError
from citius.observability import logging
from citius.web.declarations.checks import describe
from citius.web.execution import numba_go

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.web.execution.compiled_handlers import Argument


@dataclass(frozen=True, slots=True)
class Made:
    """A function in native code."""

    address: int
    content_type: str
    keep: object
    """Its code lives as long as this."""


def compile_function(function: Callable[..., Any], arguments: list[Argument]) -> Made:
    """Compile ``function``, or load it from the cache.

    Raises:
        ConfigError: numba cannot type it, or it returns what is no answer; says where and what to do.
    """
    if isinstance(function, Dispatcher):
        dispatcher: Any = function
    else:
        # Bounds are checked: a handler's index comes from a client.
        dispatcher = numba.njit(nogil=True, boundscheck=True)(function)
    for name, address in (C_SYMBOLS | numba_go.SYMBOLS).items():
        llvm.add_symbol(name, address)
    argument_types = tuple(_TYPES[argument.type] for argument in arguments)
    path = _cache_path(dispatcher, arguments)
    try:
        if path is not None and path.exists():
            try:
                return _load(path.read_text(), path, dispatcher)
            except Exception as error:  # such as a file that was cut or changed
                logging.warning(
                    f"cannot load the cached {path} ({error!r}); compiling {path.stem} again"
                )
                path = None
        dispatcher.compile(argument_types)
        returned = dispatcher.overloads[argument_types].signature.return_type
        source = _entry_source(dispatcher.py_func, arguments, returned)
        return _load(source, _keep(path, source), dispatcher)
    except numba_go.Refused as error:
        raise ConfigError(
            f"{describe(dispatcher.py_func)} cannot be compiled: {error}; or drop compiled=True"
        ) from None
    except (NumbaError, UnsupportedBytecodeError) as error:  # the second is none of the first
        raise ConfigError(_explained(dispatcher.py_func, error)) from None


def _load(source: str, path: Path | None, dispatcher: Any) -> Made:
    # Kept code names the module it comes from, and that has to be one to import.
    namespace: dict[str, Any] = {**_HELPERS, "function": dispatcher, "__name__": __name__}
    # The file's name tells numba where to keep what it makes of it.
    exec(compile(source, str(path or "<citius>"), "exec"), namespace)
    signature = types.intc(types.voidptr, types.voidptr)
    entry = numba.cfunc(signature, cache=path is not None)(namespace["entry"])
    address: Any = entry.address
    return Made(address, namespace["CONTENT_TYPE"], (entry, dispatcher))


# --- the entry ----------------------------------------------------------------------------------------


class _Request(ctypes.Structure):
    """``citius_request`` of citius.h."""

    _fields_ = [
        ("api", ctypes.c_void_p),
        *((name, ctypes.c_void_p * 2) for name in ("method", "path", "query", "body")),
        ("params", ctypes.c_void_p),
        ("params_count", ctypes.c_size_t),
        ("arguments", ctypes.c_void_p),
        ("arguments_count", ctypes.c_size_t),
    ]


_ARGUMENTS_AT = _Request.arguments.offset
_VALUE_BYTES = 16

_BYTES = numba.typeof(b"")
_TYPES = {"bytes": _BYTES, "int": types.int64, "float": types.float64, "bool": types.boolean}

_I8P = ir.IntType(8).as_pointer()
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _entry_source(function: Callable[..., Any], arguments: list[Argument], returned: Any) -> str:
    """The entry as Python source for numba."""
    names = [f"a{index}" for index in range(len(arguments))]
    lines = [
        f"    {name} = {argument.type}_at(request, {index})"
        for index, (name, argument) in enumerate(zip(names, arguments, strict=True))
    ]
    body, content_type = _answering(function, returned)
    return "\n".join(
        [
            f"# {describe(function)}, as a handler of citius.h. Made by citius; remove it at will.",
            f"CONTENT_TYPE = {content_type!r}",
            "",
            "",
            "def entry(request, response):",
            *lines,
            "    code = 0",
            "    try:",
            f"        result = function({', '.join(names)})",
            *(f"        {line}" for line in body),
            "    except Exception:",
            "        code = ended()",
            "        if code == 0:",
            "            code = -1",
            "    return code",
            "",
        ]
    )


def _answering(function: Callable[..., Any], returned: Any) -> tuple[list[str], str]:
    """How a result of this type is sent, and as what."""
    lines: list[str] = []
    name, kind = "result", returned
    if isinstance(returned, types.BaseTuple) and len(returned) == 2:
        parts: Any = returned
        if not isinstance(types.unliteral(parts[0]), types.Integer):
            raise ConfigError(_unanswerable(function, returned))
        lines.append("code = send_status(response, result[0])")
        name, kind = "result[1]", parts[1]
    kind = types.unliteral(kind)
    if isinstance(kind, types.Boolean):
        return [*lines, f"code = send_bool(response, {name})"], "application/json"
    if isinstance(kind, types.Integer):
        return [*lines, f"code = send_integer(response, {name})"], "application/json"
    if isinstance(kind, types.Float):
        return [*lines, f"code = send_real(response, {name})"], "application/json"
    if isinstance(kind, types.UnicodeType):
        return [*lines, f"code = send_text(response, {name})"], "text/plain; charset=utf-8"
    if isinstance(kind, types.NoneType):
        return (lines or ["code = send_status(response, 204)"]), ""
    is_bytes = (
        isinstance(kind, types.Buffer)
        and kind.ndim == 1
        and kind.layout == "C"
        and kind.dtype in (types.uint8, types.int8)
    )
    if is_bytes:
        return [*lines, f"code = send_bytes(response, {name})"], "application/octet-stream"
    raise ConfigError(_unanswerable(function, returned))


def _unanswerable(function: Callable[..., Any], returned: Any) -> str:
    return (
        f"{describe(function)} returns {returned} where it is compiled; expected int, float, bool, str, "
        "bytes or a contiguous array of uint8, None, or a tuple of a status and one of these"
    )


def _argument(builder: Any, request: Any, index: Any) -> Any:
    """The address of an argument."""
    place = cgutils.pointer_add(builder, request, _ARGUMENTS_AT, _I8P.as_pointer())
    arguments = builder.load(place)
    return cgutils.pointer_add(builder, arguments, builder.mul(index, index.type(_VALUE_BYTES)))


@intrinsic
def _integer_at(typing_context: Any, request: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _argument(builder, *args)
        return builder.load(builder.bitcast(place, _I64.as_pointer()))

    return types.int64(types.voidptr, types.intp), generate


@intrinsic
def _bool_at(typing_context: Any, request: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _argument(builder, *args)
        value = builder.load(builder.bitcast(place, _I64.as_pointer()))
        return builder.icmp_signed("!=", value, _I64(0))

    return types.boolean(types.voidptr, types.intp), generate


@intrinsic
def _float_at(typing_context: Any, request: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _argument(builder, *args)
        return builder.load(builder.bitcast(place, ir.DoubleType().as_pointer()))

    return types.float64(types.voidptr, types.intp), generate


@intrinsic
def _bytes_at(typing_context: Any, request: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _argument(builder, *args)
        data = builder.load(builder.bitcast(place, _I8P.as_pointer()))
        size_at = cgutils.pointer_add(builder, place, 8)
        size = builder.load(builder.bitcast(size_at, _I64.as_pointer()))
        view = make_array(_BYTES)(context, builder)
        one = context.get_constant(types.intp, 1)
        # No owner: the request outlives the call.
        populate_array(
            view, data=builder.bitcast(data, view.data.type), shape=[size], strides=[one],
            itemsize=one, meminfo=None,
        )  # fmt: skip
        return view._getvalue()

    return _BYTES(types.voidptr, types.intp), generate


def _call(builder: Any, name: str, args: list[Any]) -> Any:
    kind = ir.FunctionType(_I32, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def _sender(name: str, type_of: Callable[[Any], Any], parts: Callable[..., list[Any]]) -> Any:
    """An intrinsic that hands a value on to a function of the extension."""

    @intrinsic
    def send(typing_context: Any, response: Any, value: Any) -> Any:
        passed = types.unliteral(type_of(value))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _call(builder, name, [args[0], *parts(context, builder, passed, args[1])])

        return types.intc(types.voidptr, passed), generate

    return send


def _text_parts(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    text = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    data = builder.bitcast(text.data, _I8P)
    return [data, text.length, builder.trunc(builder.sext(text.kind, _I64), _I32)]


def _bytes_parts(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    view = make_array(kind)(context, builder, value=value)
    return [builder.bitcast(view.data, _I8P), view.nitems]


_HELPERS: dict[str, Any] = {
    "ended": numba_go.ended,
    "int_at": _integer_at,
    "bool_at": _bool_at,
    "float_at": _float_at,
    "bytes_at": _bytes_at,
    "send_status": _sender(
        "citius_answer_status", lambda value: types.int64, lambda c, b, kind, value: [value]
    ),
    "send_integer": _sender(
        "citius_answer_integer", lambda value: types.int64, lambda c, b, kind, value: [value]
    ),
    "send_bool": _sender(
        "citius_answer_bool", lambda value: types.int64, lambda c, b, kind, value: [value]
    ),
    "send_real": _sender(
        "citius_answer_real", lambda value: types.float64, lambda c, b, kind, value: [value]
    ),
    "send_text": _sender("citius_answer_text", lambda value: value, _text_parts),
    "send_bytes": _sender("citius_answer_bytes", lambda value: value, _bytes_parts),
}


# --- what cannot be compiled ---------------------------------------------------------------------------

# What numba says, and what one can do about it.
_ADVICE = (
    (r"Untyped global name '(\w+)'", "decorate {0} with @numba.njit, or use a constant of a simple type"),
    (r"Cannot unify|unify", "give the variable one type on every path"),
    (r"NameError: name '(\w+)'", "define {0} before it is used"),
    (r"Unknown attribute '?(\w+)'?", "numba knows no {0} of this type; write it out with loops and indices"),
    (r"reflected list|reflected set", "use an array (numpy) or a tuple instead of a list of lists"),
    (r"No implementation of function", "numba has no such operation for these types; write it out with loops "
     "and indices"),
)  # fmt: skip


def _explained(function: Callable[..., Any], error: Exception) -> str:
    """Numba's message with the line in question first, and what to do."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    own = function.__code__.co_filename
    lines = [
        int(line)
        for name, line in re.findall(r'File "([^"]+)", line (\d+)', text)
        if own.endswith(name) or name.endswith(os.path.basename(own))
    ]
    text, _, raised_from = text.partition(" Raised from ")
    if (found := re.search(r"\((\d+)\)$", raised_from)) and not lines:
        lines = [int(found[1])]
    location = getattr(error, "loc", None)
    if not lines and location is not None and location.line:
        lines = [location.line]
    line = lines[-1] if lines else function.__code__.co_firstlineno
    what = next(
        (
            stripped
            for stripped in (part.strip() for part in text.splitlines())
            if stripped
            and not stripped.startswith(("Failed in nopython", "During:", "File ", "- "))
        ),
        type(error).__name__,
    )
    advice = next(
        (
            advice.format(*found.groups())
            for pattern, advice in _ADVICE
            if (found := re.search(pattern, text))
        ),
        "write that line with numbers, bytes, arrays and loops (numba.readthedocs.io lists what there is)",
    )
    shown = linecache.getline(own, line).strip()
    return (
        f"{describe(function)} cannot be compiled: {what.rstrip('.')}\n"
        f"  {own}:{line}: {shown}\n"
        f"  {advice}; or drop compiled=True"
    )


# --- the cache ---------------------------------------------------------------------------------------


def _cache_path(dispatcher: Any, arguments: list[Argument]) -> Path | None:
    """Where the entry of this very function is kept; ``None`` if nothing can be kept."""
    directory = _cache_directory()
    if directory is None or dispatcher.py_func.__module__ not in sys.modules:
        return None  # what is loaded again needs the module by its name
    digest = hashlib.sha256()
    versions = (sys.version, numba.__version__, __version__, os.environ.get("NUMBA_BOUNDSCHECK"))
    digest.update(repr((versions, [a.type for a in arguments])).encode())
    try:
        for part in _parts(dispatcher, set()):
            digest.update(part)
            digest.update(b"\0")
    except _HasAddresses:
        return None
    name = re.sub(r"\W", "_", dispatcher.py_func.__name__)
    return directory / f"{name}-{digest.hexdigest()[:32]}.py"


class _HasAddresses(Exception):
    """The code has an address of this process in it."""


def _cache_directory() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = Path(base) / "citius" / "numba"
    try:
        # The files are executed: no other user may write to them.
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = directory.stat()
    except OSError:
        return None
    if os.name == "nt":
        return directory  # below the user's own directory, whose rights it has
    if state.st_uid != os.geteuid() or state.st_mode & 0o022 or not os.access(directory, os.W_OK):
        logging.warning(f"{directory} is not this user's alone: compiled functions are not cached")
        return None
    return directory


def _keep(path: Path | None, source: str) -> Path | None:
    if path is None:
        return None
    new = path.with_suffix(f".{os.getpid()}")
    try:
        new.write_text(source)
        new.replace(path)
    except OSError as error:
        logging.warning(f"compiled functions are not cached: {error}")
        return None
    return path


def _parts(function: Any, seen: set[int]) -> Iterator[bytes]:
    """Everything that the native code of ``function`` is made from."""
    options = ()
    if isinstance(function, Dispatcher):
        options = tuple(sorted(function.targetoptions.items(), key=str))
        function = function.py_func
    if id(function) in seen:
        return
    seen.add(id(function))
    yield _file_of(function)
    yield repr((function.__module__, function.__qualname__, options)).encode()
    names: set[str] = set()
    for code in _codes(function.__code__):
        constants = [c for c in code.co_consts if not isinstance(c, python_types.CodeType)]
        yield code.co_code
        yield repr((constants, code.co_names, code.co_varnames, code.co_freevars)).encode()
        names.update(code.co_names)
    closure = function.__closure__ or ()
    reached = dict(
        zip(function.__code__.co_freevars, (c.cell_contents for c in closure), strict=True)
    )
    reached |= {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name in sorted(reached):
        value = reached[name]
        yield name.encode()
        if isinstance(value, python_types.ModuleType):
            yield repr((value.__name__, getattr(value, "__version__", None))).encode()
            inner = [getattr(value, attribute, None) for attribute in sorted(names)]
        else:
            inner = [value]
        for part in inner:
            yield from _part(part, seen)


def _part(value: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(value, (Dispatcher, python_types.FunctionType)):
        yield from _parts(value, seen)
    elif isinstance(value, Chan):
        raise _HasAddresses
    elif isinstance(value, type):
        yield _file_of(value)
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        yield repr((str(value.dtype), value.shape)).encode()
        yield value.tobytes()
    elif isinstance(value, (int, float, complex, str, bytes, tuple, frozenset, bool, type(None))):
        yield repr(value).encode()
    else:
        yield repr(type(value)).encode()


def _file_of(definition: Any) -> bytes:
    """The whole file: a class or a constant of it may be in the code in ways that are not seen here."""
    try:
        return Path(inspect.getsourcefile(definition) or "").read_bytes()
    except (OSError, TypeError):
        return b""


def _codes(code: python_types.CodeType) -> Iterator[python_types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            yield from _codes(constant)
