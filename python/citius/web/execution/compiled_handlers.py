"""Compiled handlers: native code in place of a Python function, by its address or made by numba.

``Compiled`` is what a route keeps of ``compiled=…`` until the application is frozen; ``make`` then gives
the extension what it calls. Addresses come from capsules, ctypes, numba's cfuncs or shared libraries
(``load_handlers``); a Python function with ``compiled=True`` is compiled by ``numba_handlers.py``.
Everything happens once per process: what cannot be compiled or called is refused before a request is served.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from citius._core import (
    C_ABI_VERSIONS,
    C_API_ADDRESS,
    CompiledHandler,
    Request,
    Response,
    read_integer,
    read_real,
)
from citius.errors import ConfigError, UnprocessableContent
from citius.unknown_options import caller
from citius.web.binding.signature import (
    REQUEST_PARTS,
    CompiledKind,
    compiled_parameters,
    path_parameters,
)
from citius.web.declarations.checks import describe
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import is_async, makes_generator

if TYPE_CHECKING:
    from collections.abc import Callable

TypeName = Literal["bytes", "int", "float", "bool"]

_TYPES: Final[dict[Any, TypeName]] = {bytes: "bytes", int: "int", float: "float", bool: "bool"}

_CAPSULES: Final = [f"citius.handler.{version}" for version in C_ABI_VERSIONS]


def get_include() -> str:
    """The directory of ``citius.h``, for C compilers and Cython."""
    return str(Path(__file__).parents[2] / "include")


@dataclass(frozen=True, slots=True)
class Argument:
    """Where a parameter of a typed function takes its value from."""

    name: str
    source: str
    """``query``, ``raw_path``, ``raw_query``, ``body``, or the place of a path parameter in its pattern."""
    type: TypeName
    default: Any = None

    def as_tuple(self) -> tuple[str, str, str, Any]:
        """As ``CompiledHandler`` wants it."""
        return self.name, self.source, self.type, self.default


class Compiled:
    """What a route was given as ``compiled=…``.

    Args:
        native: A capsule, a ctypes function, an object with an ``address``, an address, or ``True`` for
            a function that numba compiles.
        content_type: The media type of answers that do not say theirs.
        pool: Call it in a thread without the GIL, not on the reactor's.
        serial: Call it in a goroutine, where it may wait.
    """

    def __init__(
        self, native: object, *, content_type: str | None, pool: bool, serial: bool
    ) -> None:
        self.native = native
        self.content_type = content_type
        self.pool = pool
        self.serial = serial
        # By function and pattern: HEAD shares GET's, and an application may be frozen more than once.
        self._made: dict[tuple[object, str], CompiledHandler] = {}
        if native is not True:
            _refuse_what_has_handlers(native)
            address_of(native)

    def check(self, function: object) -> None:
        """Refuse what is no ``def`` that returns the response: compiled it would be called as one.

        Raises:
            ConfigError: It is something else.
        """
        target = getattr(function, "py_func", function)  # what numba.njit has been through
        if is_async(target):
            raise ConfigError(
                f"{describe(target)} is `async def`, and compiled code awaits nothing: write `def` (with "
                "serial=True in the decorator if it waits for channels), or drop compiled=True"
            )
        if makes_generator(target):
            raise ConfigError(
                f"{describe(target)} has `yield`, and a compiled function returns the whole response: write "
                "`return`, or drop compiled=True"
            )
        if not isinstance(target, FunctionType):
            raise ConfigError(
                f"compiled=True ({caller()}) is for functions that are written with `def`, got {target!r}; "
                "write a function that calls it, or drop compiled=True"
            )

    @property
    def kind(self) -> CompiledKind:
        """How the extension calls it."""
        if self.serial:
            return "pooled_goroutine" if self.pool else "goroutine"
        return "pooled" if self.pool else "compiled"

    def handler_of(
        self, handler: Callable[..., Any], pattern: str, has_middleware: bool, interpret: bool
    ) -> CompiledHandler | Callable[[Request], Any]:
        """What answers the route: native code, or a Python function that calls it for middleware.

        Args:
            handler: The decorated function, or ``no_function``.
            pattern: The route's, with the prefixes of its mounts.
            has_middleware: Something in Python is around it.
            interpret: Call a function as plain Python.
        """
        function = None if handler is no_function else handler
        if function is not None and interpret:
            return self.interpreted(function, pattern)
        made = self.make(function, pattern)
        return self.from_python(made) if has_middleware else made

    def make(self, function: Callable[..., Any] | None, pattern: str) -> CompiledHandler:
        """What the extension calls for the route ``pattern``.

        Raises:
            ConfigError: The function cannot be compiled.
        """
        made = self._made.get((function, pattern))
        if made is None:
            made = self._made[function, pattern] = self._make(function, pattern)
        return made

    def _make(self, function: Callable[..., Any] | None, pattern: str) -> CompiledHandler:
        if function is None:
            return CompiledHandler(
                address_of(self.native),
                name=_name_of(self.native),
                content_type=self.content_type,
                keep=self.native,
            )
        arguments = arguments_of(function, pattern)
        try:
            from citius.web.execution import numba_handlers
        except ImportError as error:
            raise ConfigError(
                f"{describe(function)} has compiled=True, which needs numba ({error}): install "
                "citius[numba], or have it called as plain Python with --interpret-compiled"
            ) from None
        made = numba_handlers.compile_function(function, arguments)
        return CompiledHandler(
            made.address,
            name=getattr(function, "__qualname__", repr(function)),
            arguments=[argument.as_tuple() for argument in arguments],
            content_type=self.content_type or made.content_type,
            keep=made.keep,
        )

    def from_python(self, made: CompiledHandler) -> Callable[[Request], Any]:
        """``made`` as a Python handler, for middleware to call: a coroutine function if it may wait."""

        def call(request: Request) -> Response:
            return made(request)

        async def call_serial(request: Request) -> Response:
            running = made.start(request, self.pool)
            try:
                outcome, _ = await running.result.recv()
            except BaseException:
                running.cancel()
                raise
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return call_serial if self.serial else call

    def interpreted(
        self, function: Callable[..., Any], pattern: str
    ) -> Callable[[Request], Response]:
        """``function`` itself, called as Python with the arguments that it would have natively."""
        arguments = arguments_of(function, pattern)
        names = list(path_parameters(pattern))

        def call(request: Request) -> Response:
            return self._answer(function(*_values(request, arguments, names)))

        call.__name__ = getattr(function, "__name__", "call")
        call.__qualname__ = getattr(function, "__qualname__", "call")
        return call

    def _answer(self, result: Any) -> Response:
        status = 200
        if isinstance(result, tuple):
            status, result = cast("tuple[int, Any]", result)
        if result is None:
            return Response(status_code=204 if status == 200 else status)
        if isinstance(result, str):
            return Response(result, status, content_type=self.content_type)
        if isinstance(result, (bool, int, float)):
            from citius.web.declarations.codecs import encode_json

            media = self.content_type or "application/json"
            return Response(encode_json(result), status, content_type=media)
        return Response(bytes(result), status, content_type=self.content_type)


def no_function() -> None:
    """Stands in a route for the function that native code does not have."""


def arguments_of(function: Callable[..., Any], pattern: str) -> list[Argument]:
    """The parameters of a typed function and their sources.

    Raises:
        ConfigError: One has no type, or one that native code cannot have.
    """
    target = getattr(function, "py_func", function)  # what numba.njit has been through
    places = list(path_parameters(pattern))
    arguments: list[Argument] = []
    for parameter in compiled_parameters(target, pattern):
        name, annotation = parameter.name, parameter.annotation
        kind = _TYPES.get(annotation)
        if kind is None:
            said = "no type" if annotation is MISSING else f"the type {annotation!r}"
            raise ConfigError(
                f"the parameter {name} of {describe(target)} has {said}; a compiled function takes "
                "bytes, int, float and bool"
            )
        if parameter.source in REQUEST_PARTS and kind != "bytes":
            raise ConfigError(
                f"the parameter {name} of {describe(target)} is {kind}, and the {name} of a "
                "request is bytes"
            )
        source = str(places.index(name)) if parameter.source == "path" else parameter.source
        default = None if parameter.default is MISSING else parameter.default
        if default is not None and not _fits(default, annotation):
            raise ConfigError(
                f"the default of {name} in {describe(target)} is {default!r}, which is not {kind}"
            )
        arguments.append(Argument(name, source, kind, default))
    return arguments


def _fits(value: object, annotation: Any) -> bool:
    if isinstance(value, bool) or annotation is bool:
        return isinstance(value, bool) and annotation is bool
    if isinstance(value, int):
        return annotation is float or (annotation is int and -(2**63) <= value < 2**63)
    return isinstance(value, annotation)


def _values(request: Request, arguments: list[Argument], names: list[str]) -> list[Any]:
    """What ``arguments.rs`` takes from a request, in Python."""
    from urllib.parse import unquote_to_bytes

    from citius.web.declarations.validation_errors import mistake

    mistakes: list[dict[str, str]] = []
    values: list[Any] = []
    for argument in arguments:
        if argument.source in REQUEST_PARTS:
            taken = (
                request.body() if argument.source == "body" else getattr(request, argument.source)
            )
            values.append(taken)
            continue
        if argument.source == "query":
            place = "query"
            sent: Any = request.query.get(argument.name)
            if sent is not None and argument.type == "bytes":
                pairs = (part.partition(b"=") for part in request.raw_query.split(b"&"))
                raw = [v for n, _, v in pairs if unquote_to_bytes(n) == argument.name.encode()]
                sent = unquote_to_bytes(raw[-1].replace(b"+", b" ")) if raw else sent.encode()
        else:
            place = "path"
            sent = str(request.path_params[names[int(argument.source)]])
        if sent is None and argument.default is not None:
            values.append(argument.default)
            continue
        try:
            values.append(_parse(sent, argument.type))
        except ValueError as error:
            mistakes.append(mistake(place, (argument.name,), str(error)))
    if mistakes:
        raise UnprocessableContent("request validation failed", errors=mistakes)
    return values


def _parse(sent: Any, kind: TypeName) -> Any:
    if sent is None:
        raise ValueError("missing")
    if kind == "bytes":
        return sent if isinstance(sent, bytes) else sent.encode()
    if kind == "bool":
        made = {"true": True, "1": True, "false": False, "0": False}.get(sent.lower())
    else:
        made = read_integer(sent) if kind == "int" else read_real(sent)
    if made is None:
        raise ValueError(_EXPECTED[kind])
    return made


_EXPECTED = {
    "int": "expected an integer that fits 64 bits",
    "float": "expected a number",
    "bool": "expected true or false",
}


# --- addresses --------------------------------------------------------------------------------------


def address_of(native: object) -> int:
    """The address of a handler in native code.

    Raises:
        ConfigError: It is none, or one for another version of ``citius.h``.
    """
    address = _address_said(native)
    if not _is_code(address):
        raise ConfigError(
            f"compiled=: {address:#x} is not the address of code in this process, got {native!r}; expected "
            "the address of a function that is loaded"
        )
    return address


def _is_code(address: int) -> bool:
    """Whether this process may execute what is at ``address``; to call anything else ends a worker."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return True
    ranges = (line.split(" ", 2)[:2] for line in lines if "x" in line.split(" ", 2)[1])
    bounds = (span.split("-") for span, _ in ranges)
    return any(int(start, 16) <= address < int(end, 16) for start, end in bounds)


def _refuse_what_has_handlers(native: object) -> None:
    """Say which handler to take, or how, where a library, its path or a function of Python is given.

    Raises:
        ConfigError: It is one of these.
    """
    import ctypes

    instead = ""
    if isinstance(native, Handlers):
        instead = 'is a library; name one of its handlers, compiled=handlers["name"]'
    elif isinstance(native, ctypes.CDLL):
        instead = 'is a library; write compiled=citius.load_handlers(path)["name"]'
    elif isinstance(native, (str, PurePath)):
        path = f"{native!s}"
        instead = f'is a path; write compiled=citius.load_handlers({path!r})["name"]'
    elif isinstance(native, ModuleType):
        instead = f"is a module; name one of its handlers, compiled={native.__name__}.name"
    elif isinstance(native, FunctionType) or hasattr(native, "py_func"):
        instead = "is a function of Python; write compiled=True in the decorator above it"
    if instead:
        raise ConfigError(f"compiled= ({caller()}): {native!r} {instead}")


def _address_said(native: object) -> int:
    if isinstance(native, int) and not isinstance(native, bool):
        if native <= 0:
            raise ConfigError(
                f"compiled=: the address of a handler is a positive number, got {native}"
            )
        return native
    if type(native).__name__ == "PyCapsule":
        return _address_in_capsule(native)
    address = getattr(native, "address", None)  # numba's cfunc, and Handler below
    if isinstance(address, int) and address > 0:
        return address
    import ctypes

    function_type: Any = ctypes._CFuncPtr  # pyright: ignore
    if isinstance(native, function_type):
        pointer = ctypes.cast(cast("Any", native), ctypes.c_void_p).value
        if pointer:
            return pointer
    raise ConfigError(
        "compiled= takes True (for numba), a capsule, a ctypes function, a handler of "
        f"load_handlers(), an object with an address, or an address; got {native!r}"
    )


def _address_in_capsule(capsule: object) -> int:
    import ctypes

    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    raw: bytes | None = get_name(capsule)
    name = (raw or b"").decode(errors="replace")
    if name.startswith("citius.handler."):
        if name not in _CAPSULES:
            raise ConfigError(
                f"compiled=: the capsule is {name!r}, made with another version of citius.h than this "
                f"server's, which takes {' and '.join(_CAPSULES)}; build its module again"
            )
    elif not ("citius_request" in name and "citius_response" in name):
        # Cython calls its capsules by the C type of what is in them.
        raise ConfigError(
            f"compiled=: the capsule {name!r} is no handler; expected {_CAPSULES[-1]!r}, or Cython's "
            "'int (citius_request const *, citius_response *)'"
        )
    return int(get_pointer(capsule, raw))


def _name_in_capsule(capsule: object) -> str:
    """What ``handler()`` of ``citius.go`` for Cython has called it."""
    import ctypes

    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_context = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetContext", api)
    )
    raw: bytes | None = get_name(capsule)
    if not (raw or b"").startswith(b"citius.handler."):
        return ""
    name: bytes | None = get_context(capsule)
    # Cython's own prefix: the lengths and names of the packages.
    return re.sub(r"^__pyx_f_(?:\d+[A-Za-z]\w*?_)?", "", (name or b"").decode(errors="replace"))


def _name_of(native: object) -> str:
    for attribute in ("__name__", "name"):
        name = getattr(native, attribute, None)
        if isinstance(name, str):
            return name
    if type(native).__name__ == "PyCapsule":
        name = _name_in_capsule(native)
        if name:
            return name
    return f"at {address_of(native):#x}"


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler in a shared library."""

    name: str
    address: int
    library: object
    """Keeps it loaded."""


class Handlers:
    """The handlers of a shared library, by their names: ``handlers["classify"]``."""

    def __init__(self, path: str) -> None:
        import ctypes

        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise ConfigError(f"the library {path} cannot be loaded: {error}") from None
        self._path = path
        try:
            word = ctypes.c_uint32.in_dll(self._library, "citius_abi_version")
        except ValueError:
            raise ConfigError(
                f"{path} does not say which version of citius.h it was made with; put "
                "CITIUS_LIBRARY once into its C source, or citius_handler::export! into its Rust"
            ) from None
        version, self._image = word.value, _image_of(ctypes.addressof(word))
        if version not in C_ABI_VERSIONS:
            raise ConfigError(
                f"{path} was made with version {version} of citius.h, this server takes "
                f"{' and '.join(map(str, C_ABI_VERSIONS))}; build it again"
            )
        if version >= 2:
            self._library.citius_library_init(ctypes.c_void_p(C_API_ADDRESS))

    def __getitem__(self, name: str) -> Handler:
        """The handler ``name``.

        Raises:
            ConfigError: The library has no such function.
        """
        function = getattr(self._library, name, None)
        # The linker also looks in the libraries that this one needs: `index` would be that of libc.
        if function is None or _image_of(address_of(function)) != self._image:
            raise ConfigError(f"{self._path} has no function {name!r}")
        return Handler(name, address_of(function), self._library)


def _image_of(address: int) -> int | None:
    """Where the library of an address begins; ``None`` on Windows, where one is asked for its own only."""
    if sys.platform == "win32":
        return None
    import ctypes

    # Dl_info of dladdr(3): the path, the beginning, the symbol and its address.
    found = (ctypes.c_void_p * 4)()
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), found)
    return found[1]


def load_handlers(path: str | Path) -> Handlers:
    """Load a shared library of handlers written in C, Rust or another language of their kind.

    Raises:
        ConfigError: It cannot be loaded, or was made with another version of ``citius.h``.
    """
    # Without a slash the loader would look for it elsewhere.
    return Handlers(str(Path(path).resolve()))
