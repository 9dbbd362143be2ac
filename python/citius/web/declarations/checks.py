"""Start-up checks of the functions that an application registers: how they are called, what they return.

A mistake that a signature or the bytecode shows is a ``ConfigError`` when the function is registered, with
its file and line and what to write instead. What the bytecode does not show is an error of the request that
meets it (compose.py, citius-py/respond.rs). Tests are in tests/unit/test_checks.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast, get_origin

from citius.errors import ConfigError
from citius.unknown_options import caller
from citius.web.declarations.parameters.marked import as_marker
from citius.web.declarations.parameters.sources import TOKEN, Depends
from citius.web.declarations.parameters.unread_markers import refuse_markers_of_hook
from citius.web.declarations.path_hints import literal_hint
from citius.web.declarations.type_kinds import called, is_async, makes_generator, python_function
from citius.web.middleware.base import Middleware, OnConnections, OnRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.web.middleware.base import Declared

_UNKNOWN: Final = object()
"""A value that is computed when the function runs."""


def resolving(function: Callable[..., Any]) -> str:
    """What to do about a name in the annotations of a function that cannot be resolved."""
    if "<locals>" in getattr(function, "__qualname__", ""):
        return (
            "a name that is local to a function is not found from the text of an annotation: define it in "
            "the module, or leave out the quotes and `from __future__ import annotations`"
        )
    return "import the name at run time, not under TYPE_CHECKING"


def describe(function: object) -> str:
    """A function as a message calls it: name, file and line."""
    name = getattr(function, "__qualname__", None) or repr(function)
    target = called(function)
    cls = get_origin(target) or target
    if inspect.isclass(cls) and not inspect.isfunction(vars(cls).get("__init__")):
        return _describe_class(name, cls)  # what makes its objects is a library's
    code = getattr(python_function(cls), "__code__", None)
    if code is None or code.co_filename == "<string>":  # made of a text, as by dataclasses
        return _describe_class(name, cls)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _describe_class(name: str, cls: Any) -> str:
    """A class with the place of its statement, as far as its source is there."""
    try:
        return f"{name} ({inspect.getsourcefile(cls)}:{inspect.findsource(cls)[1] + 1})"
    except (OSError, TypeError):
        return name


def describe_application(app: object) -> str:
    """An application as a message calls it: ``shop.wsgi:app (/srv/wsgi.py:3)``, or an object's class."""
    named = app if hasattr(app, "__qualname__") else type(app)
    name = f"{getattr(named, '__module__', '?')}:{getattr(named, '__qualname__', '?')}"
    # The method itself, for its code; not whether there is one.
    method = getattr(named, "__call__", None)  # noqa: B004
    target = inspect.unwrap(app) if named is app and callable(app) else method
    code = getattr(target, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def check_run_pattern(pattern: object) -> None:
    """Refuse a configuration in place of a path: other frameworks start servers by ``app.run``.

    Raises:
        ConfigError: It is neither a path nor a function.
    """
    if not isinstance(pattern, str) and not callable(pattern):
        raise ConfigError(
            "app.run declares the runs of a generator, at a path; app.serve(config) starts the server"
        )


def check_pattern(pattern: object, decorator: str) -> None:
    """Refuse a path that is none; a function stands there if the decorator has no parentheses.

    Raises:
        ConfigError: It is no path.
    """
    if not isinstance(pattern, str):
        if callable(pattern):
            raise ConfigError(
                f'{decorator} needs a path: write @{decorator}("/path") above {describe(pattern)}'
            )
        raise ConfigError(
            f"{decorator} ({caller()}): expected a path such as /items/{{id}}, got {pattern!r}"
        )
    if hint := literal_hint(pattern):
        raise ConfigError(f"{decorator} ({caller()}): {hint}")
    if not pattern.startswith("/"):
        hint = '; the path of a router or mount itself is "/"' if not pattern else ""
        raise ConfigError(
            f"{decorator} ({caller()}): a path begins with a slash, got {pattern!r}{hint}"
        )


def checked_methods(methods: object, pattern: object) -> list[str]:
    """The methods of a route, in capitals; a text would be one method per letter.

    Raises:
        ConfigError: It is none.
    """
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise ConfigError(
            f"the route {pattern} ({caller()}): methods= is a list, methods=[{methods!r}], got {methods!r}"
        )
    found: list[str] = []
    for one in cast("Iterable[object]", methods):
        if not isinstance(one, str) or not re.fullmatch(TOKEN, one):
            raise ConfigError(f"the route {pattern} ({caller()}): {one!r} is no method")
        if one.upper() == "CONNECT":
            raise ConfigError(
                f"the route {pattern} ({caller()}): CONNECT is no method of requests; write "
                "@app.websocket or @app.webtransport"
            )
        found.append(one.upper())
    return found


def check_responses(responses: object, pattern: str, handler: object) -> None:
    """Refuse what ``responses=`` cannot have: its keys are statuses, its values types or descriptions.

    Raises:
        ConfigError: A key or a value is something else.
    """
    where = f"the route {pattern} of {describe(handler)}: responses="
    if not isinstance(responses, Mapping):
        raise ConfigError(f"{where} is a mapping, responses={{404: Model}}, got {responses!r}")
    for status, model in cast("Mapping[object, object]", responses).items():
        if not isinstance(status, int) or not 100 <= status <= 599:
            raise ConfigError(
                f"{where} has a status as a number within 100 to 599, {{404: Model}}, got the key {status!r}"
            )
        if isinstance(model, (tuple, list, Mapping)):
            raise ConfigError(
                f"{where} has a type or a description for each status, {{{status}: Model}} or "
                f'{{{status}: "not there"}}, got {model!r}'
            )


def as_dependencies(what: str, given: object) -> tuple[Depends, ...]:
    """What ``dependencies=`` has.

    Raises:
        ConfigError: It is no list of ``Depends``.
    """
    if isinstance(given, Depends) or callable(given) or not isinstance(given, Iterable):
        raise ConfigError(
            f"{what} ({caller()}): dependencies= is a list, dependencies=[Depends(f)], got {given!r}"
        )
    found: list[Depends] = []
    for one in cast("Iterable[object]", given):
        made = as_marker(one)
        if not isinstance(made, Depends):
            name = getattr(one, "__name__", "f")
            raise ConfigError(
                f"{what} ({caller()}): dependencies= has Depends(…) only, got {one!r}; write "
                f"Depends({name})"
            )
        found.append(made)
    return tuple(found)


def check_middleware(function: object) -> None:
    """Refuse what cannot be a middleware.

    Raises:
        ConfigError: Its signature does not fit, or it returns nothing.
    """
    if isinstance(function, Middleware):
        for step in (*function.steps, *function.socket_steps):
            refuse_markers_of_hook(step, "a middleware", describe(step))
        return
    check_call(function, "a middleware", "request", "next")
    _check_no_generator(function, "a middleware")
    _check_returns_value(function, "a middleware")


def check_connection_middleware(function: object) -> None:
    """Refuse what cannot be a connection middleware.

    Raises:
        ConfigError: Its signature does not fit, or it is a ``Middleware``.
    """
    if isinstance(function, Middleware):
        raise ConfigError(
            f"{type(function).__name__} is a Middleware, which is added by app.middleware(…): it is called "
            "for WebSockets if it defines `connect` or `disconnect`"
        )
    check_call(function, "a connection middleware", "connection", "next")
    _check_no_generator(function, "a connection middleware")


def step_of(middleware: Declared) -> Any:
    """The function of a middleware that decides whether it needs an event loop."""
    if isinstance(middleware, OnRequests | OnConnections):
        return middleware.function
    if not isinstance(middleware, Middleware):
        return middleware
    steps = (*middleware.steps, *middleware.socket_steps)
    return next(filter(is_async, steps), steps[0])


def check_error_handler(function: object) -> None:
    """Refuse what cannot be an error handler.

    Raises:
        ConfigError: Its signature does not fit, or it returns nothing, or a tuple with a status.
    """
    check_call(function, "an error handler", "request", "error")
    _check_returns_value(function, "an error handler")
    check_returns_no_status(function)


def check_hook(function: object, what: str) -> None:
    """Refuse what cannot be called without arguments.

    Raises:
        ConfigError: It takes some, or is a generator function.
    """
    check_call(function, what)
    _check_no_generator(function, what)


def check_call(function: object, what: str, *arguments: str) -> None:
    """Refuse a function that cannot be called with that many arguments.

    Args:
        function: What the application registers.
        what: What it is registered as, such as ``a middleware``.
        arguments: The names of what it is called with, for the message.

    Raises:
        ConfigError: It is no function, or takes other arguments.
    """
    if not callable(function):
        raise ConfigError(f"{what} is a function, got {function!r}")
    if inspect.isclass(function):
        raise ConfigError(f"{what} is a function, got the class {function.__qualname__}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    try:
        signature.bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__name__", "name")
        raise ConfigError(
            f"{what} is called as {name}({', '.join(arguments)}), and {describe(function)} takes "
            f"{signature}: {error}"
        ) from None
    refuse_markers_of_hook(function, what, describe(function))


def check_as_made(
    what: str,
    made: Mapping[str, object],
    asked: Mapping[str, object],
    defaults: Mapping[str, object],
) -> None:
    """Refuse options of something that was made with others; those left at their defaults are not asked for.

    Raises:
        ConfigError: One differs.
    """
    for option, value in asked.items():
        if value != defaults[option] and not _is_same(value, made[option]):
            raise ConfigError(
                f"{what} ({caller()}): it was made with {option}={made[option]!r}, got {value!r}"
            )


def _is_same(one: object, other: object) -> bool:
    """Whether they are equal, or one function: a lambda in a handler is another object in each call."""
    code = getattr(one, "__code__", None)
    return one == other or (code is not None and code is getattr(other, "__code__", None))


def check_callback(
    function: object, option: str, *arguments: str, awaits: bool = False, makes: bool = False
) -> None:
    """Refuse the function of an option that cannot be called as that option says.

    Args:
        function: What the application has given.
        option: The option, such as ``RateLimit(key=…)``.
        arguments: The names of what it is called with; ``...`` for any.
        awaits: Whether what it returns is awaited.
        makes: Whether it may be a class.

    Raises:
        ConfigError: It is no function, takes other arguments, is to be awaited where nothing awaits, or has
            markers, which nothing reads.
    """
    what = f"{option} ({caller()})"
    if not callable(function):
        raise ConfigError(f"{what} is a function, got {function!r}")
    target = called(function)
    if inspect.isclass(target) and not makes:
        raise ConfigError(f"{what} is a function, got the class {target.__qualname__}")
    if arguments == ("...",):
        refuse_markers_of_hook(function, what, describe(function))
    elif not inspect.isclass(target):
        check_call(function, what, *arguments)
    if not awaits and is_async(target):
        raise ConfigError(f"{what} is not awaited, and {describe(function)} is `async def`")
    if not inspect.isclass(target):
        _check_no_generator(target, what)


def _check_no_generator(function: object, what: str) -> None:
    """Refuse a function with ``yield`` where it is called for what it returns.

    Raises:
        ConfigError: It has one.
    """
    if makes_generator(function):
        raise ConfigError(f"{what} has no `yield`, and {describe(function)} has one")


def check_lifespan(lifespan: object) -> None:
    """Refuse what makes no asynchronous context manager.

    Raises:
        ConfigError: It does not, and the message says what is missing.
    """
    inner = inspect.unwrap(lifespan) if callable(lifespan) else lifespan
    if inspect.isasyncgenfunction(lifespan):
        raise ConfigError(
            f"the lifespan {describe(lifespan)} is an asynchronous generator; write "
            "@contextlib.asynccontextmanager above it"
        )
    if inspect.isgeneratorfunction(inner):
        raise ConfigError(
            f"the lifespan {describe(lifespan)} is a generator; write @contextlib.asynccontextmanager "
            "above it, and `async def`"
        )
    if inspect.iscoroutinefunction(lifespan):
        raise ConfigError(
            f"the lifespan {describe(lifespan)} is a coroutine function; it needs a `yield` between start "
            "and stop, and @contextlib.asynccontextmanager above it"
        )
    if not callable(lifespan):
        raise ConfigError(
            f"the lifespan is a function that takes the application, got {lifespan!r}"
        )
    if not inspect.isclass(lifespan):
        check_call(lifespan, "a lifespan", "app")


def check_manager(manager: object, lifespan: object) -> None:
    """Refuse what a lifespan returned if it cannot be entered.

    Raises:
        ConfigError: It is no asynchronous context manager.
    """
    if not hasattr(manager, "__aenter__"):
        raise ConfigError(
            f"the lifespan {describe(lifespan)} returned {manager!r}, which is no asynchronous context "
            "manager; write @contextlib.asynccontextmanager above it"
        )


def checked_state(given: Mapping[object, object], lifespan: object) -> dict[str, object]:
    """What a lifespan yields for the state of requests.

    Raises:
        ConfigError: A name of it is none.
    """
    for name in given:
        if not isinstance(name, str):
            raise ConfigError(
                f"the lifespan {describe(lifespan)} yields a mapping with the key {name!r}; the names of "
                "request.state are texts"
            )
    return dict(cast("Mapping[str, object]", given))


def check_prefix(prefix: str, what: str) -> None:
    """Refuse a prefix of paths that is none.

    Raises:
        ConfigError: It does not begin with a slash, or ends with one.
    """
    if prefix.endswith("/*"):
        raise ConfigError(
            f"{what} takes all that is below it; write {prefix[:-2]!r}, got {prefix!r}"
        )
    if hint := literal_hint(prefix):
        raise ConfigError(f"{what}: {hint}")
    if not prefix.startswith("/") or prefix.endswith("/"):
        raise ConfigError(f"{what} begins with a slash and ends without one, got {prefix!r}")


def check_included(router: Any, expected: type, into: object) -> None:
    """Refuse to include what is no ``citius.Router``, or what contains itself.

    Raises:
        ConfigError: It is something else.
    """
    if not isinstance(router, expected):
        raise ConfigError(f"include takes a citius.Router, got {router!r}")
    if hasattr(router, "mount"):
        raise ConfigError(
            "include takes a citius.Router, got a citius.App; use `mount` for an application"
        )
    if any(one.router is into for one in router.walk_included()):
        raise ConfigError("a router cannot include itself")


def prefix_of_mount(prefix: str) -> str:
    """The prefix of an ASGI or WSGI application, empty for ``/``.

    Raises:
        ConfigError: It does not begin with a slash, or ends with one.
    """
    if prefix == "/":
        return ""
    check_prefix(prefix, "the prefix of a mount")
    return prefix


def check_asgi(app: object, prefix: str) -> None:
    """Refuse to mount what is neither a ``citius.App`` nor an ASGI application.

    Raises:
        ConfigError: It is something else.
    """
    if _can_be_called(app, 3) and not isinstance(app, type):
        return
    hint = "; use `mount_wsgi` for a WSGI application" if _can_be_called(app, 2) else ""
    raise ConfigError(
        f"mount({prefix!r}, …) takes a citius.App or an ASGI application (scope, receive, send), got "
        f"{_described_as_got(app)}{hint}"
    )


def check_wsgi(app: object, prefix: str) -> None:
    """Refuse to mount what is no WSGI application.

    Raises:
        ConfigError: It is something else.
    """
    if _can_be_called(app, 2) and not isinstance(app, type):
        return
    hint = "; use `mount` for an ASGI application" if _can_be_called(app, 3) else ""
    raise ConfigError(
        f"mount_wsgi({prefix!r}, …) takes a WSGI application (environ, start_response), got "
        f"{_described_as_got(app)}{hint}"
    )


def _can_be_called(app: object, count: int) -> bool:
    """Whether it takes that many arguments, as far as it tells."""
    if not callable(app):
        return False
    try:
        signature = inspect.signature(app)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _described_as_got(app: object) -> str:
    cls: type[Any] = type(app)
    got = f"the class {app.__qualname__}" if isinstance(app, type) else f"a {cls.__qualname__}"
    return f"{got} of {getattr(app, '__module__', 'builtins')}"


def check_error_key(what: object) -> None:
    """Refuse what is neither an exception's class nor a status; without parentheses a function stands there.

    Raises:
        ConfigError: It is neither.
    """
    if isinstance(what, type) and issubclass(what, BaseException):
        return
    if isinstance(what, int):
        if not 400 <= what <= 599:
            raise ConfigError(f"an error status is within 400 to 599, got {what}")
        return
    if not isinstance(what, type) and callable(what):
        raise ConfigError(
            "app.exception_handler needs an exception's class or a status: write "
            "@app.exception_handler(KeyError) or @app.exception_handler(404) "
            f"above {describe(what)}"
        )
    raise ConfigError(
        f"app.exception_handler: expected an exception's class or a status, got {what!r}"
    )


def _check_returns_value(function: object, what: str) -> None:
    """Refuse a function that returns nothing, whichever way it ends.

    Raises:
        ConfigError: It does not.
    """
    returned = list(_returned(function))
    if returned and all(value is None for _, value in returned):
        raise ConfigError(
            f"{what} returns the response, and {describe(function)} has no `return` with a value"
        )


def check_returns_no_status(handler: object) -> None:
    """Refuse a handler with ``return body, 201``.

    Raises:
        ConfigError: It has such a statement; the message names its line.
    """
    for line, value in _returned(handler):
        if is_with_status(value):
            code = cast("Any", handler).__code__
            raise ConfigError(
                f"{getattr(handler, '__qualname__', 'the handler')} ({code.co_filename}:{line}) returns "
                f"a tuple with the status {value[1]}; {_INSTEAD}"
            )


def is_with_status(value: Any) -> bool:
    """Whether this is the ``body, status`` or ``body, status, headers`` of other frameworks."""
    if type(value) is not tuple or not 2 <= len(cast("tuple[Any, ...]", value)) <= 3:
        return False
    body, status = cast("tuple[Any, Any]", value[:2])
    is_status = type(status) is int and 100 <= status <= 599
    return is_status and not isinstance(body, (int, float))


def refuse_status(value: Any, handler: object | None) -> None:
    """Raise for the ``body, status`` of other frameworks.

    Raises:
        TypeError: It is such a tuple.
    """
    if is_with_status(value):
        raise TypeError(
            f"{'the handler' if handler is None else describe(handler)} returned a tuple with the status "
            f"{value[1]}; {_INSTEAD}"
        )


_INSTEAD = (
    "write `return Response(body, status)` or `return json_response(value, status_code=status)`, or return a "
    "list if an array is meant"
)


def _returned(function: Any) -> Iterator[tuple[int, Any]]:
    """Line and value of each ``return``, as far as the bytecode tells; nothing for generators."""
    code = getattr(function, "__code__", None)
    if (
        code is None
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        return
    import dis

    line, before = code.co_firstlineno, list[Any]()
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        if instruction.opname == "RETURN_CONST":
            yield line, instruction.argval
        elif instruction.opname == "RETURN_VALUE":
            yield line, _value_of(before)
        before = [*before[-1:], instruction]


def _value_of(before: list[Any]) -> Any:
    """The value that the last two instructions leave: a constant, or a pair that ends with one."""
    if before[-1].opname in _CONSTANTS:
        return before[-1].argval
    is_pair = before[-1].opname == "BUILD_TUPLE" and before[-1].arg == 2
    if is_pair and len(before) == 2 and before[0].opname in _CONSTANTS:
        return _UNKNOWN, before[0].argval
    return _UNKNOWN


_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
