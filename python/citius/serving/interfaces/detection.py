"""Detects the interface of an application by the parameters with which it can be called.

Only factories are called for this. The rules, in this order:

* a ``citius.App`` is native;
* parameters called ``scope``, ``receive``, ``send`` or ``environ``, ``start_response`` decide;
* a coroutine function of three parameters is ASGI 3; one that is called with two is WSGI, with one
  ASGI 2, without any a factory, which is called and looked at in turn.

The signature of the object itself counts. A decorated function that takes any arguments is judged by the
function it wraps, except where that has one parameter: then the decorator has made a WSGI application of it
(Werkzeug's ``Request.application``), unless the parameter is called ``scope``.

All other objects are refused; the message says what was found and which option decides.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal, cast

from citius.errors import AppImportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.serving.interfaces import Application
    from citius.settings.config import Config, Interface

Kind = Literal["native", "asgi", "asgi2", "wsgi", "factory"]

_NAMES: dict[Kind, str] = {
    "asgi": "an ASGI application", "asgi2": "an ASGI 2 application", "wsgi": "a WSGI application",
}  # fmt: skip

# Factories that make factories; more than this is a mistake.
_CALLS_MAX = 3

_ASGI_NAMES = frozenset({"scope", "receive", "send"})
_WSGI_NAMES = frozenset({"environ", "env", "start_response"})


def application(found: Any, where: str, config: Config, *, factory: bool = False) -> Application:
    """The application that ``found`` is, behind the interface it is written against.

    Args:
        found: What the target names.
        where: What the messages call it.
        config: Names the interface, or ``auto`` to detect it.
        factory: It is a function that makes the application.

    Raises:
        AppImportError: It is no application, or not of the interface that ``config`` names.
    """
    if factory or config.factory:
        found = _made(found, where)
    for _ in range(_CALLS_MAX):
        kind, reason = _wanted(found, where, config.interface)
        if kind != "factory":
            return _wrapped(found, kind, f"{where} is {_NAMES.get(kind)}: {reason}", config)
        found = _made(found, where)
        where += "()"
    raise AppImportError(f"{where}: a factory that makes factories; name the application itself")


def _wanted(found: Any, where: str, interface: Interface) -> tuple[Kind, str]:
    """The interface of ``found`` and the reason: ``interface`` unless it is ``auto``."""
    from citius.web.application.app import App

    if isinstance(found, App):
        if interface not in ("auto", "native"):
            raise AppImportError(f"{where} is a citius.App; leave out --interface {interface}")
        return "native", ""
    if interface == "native":
        raise AppImportError(f"{where}: expected a citius.App, got {_describe(found)}")
    if interface == "auto" or _is_factory(found):
        return guess(found, where)
    if not callable(found):
        raise AppImportError(f"{where}: expected something to call, got {_describe(found)}")
    return interface, f"--interface {interface}"


def guess(found: Any, where: str) -> tuple[Kind, str]:
    """The interface of ``found``, and by what it was recognised.

    Raises:
        AppImportError: It has none; the message says what was seen and what to do.
    """
    if not callable(found):
        raise AppImportError(
            f"{where}: expected an application (citius.App, ASGI or WSGI), got {_describe(found)}"
        )
    if _is_factory(found):
        return "factory", ""
    takes_any = _takes_any(found)
    names, required, most = _parameters(found, where, follow_wrapped=takes_any)
    if isinstance(found, type):
        return _kind_of_class(found, names, required, where), f"made with {', '.join(names)}"
    seen, called_with = set(names), f"called with {', '.join(names)}"
    if len(seen & _ASGI_NAMES) >= 2:
        return "asgi", called_with
    if len(seen & _WSGI_NAMES) == 2 or "start_response" in seen:
        return "wsgi", called_with
    if _is_async(found):
        if required <= 3 <= most:
            return "asgi", "a coroutine function of 3 parameters"
        raise AppImportError(
            f"{where} is a coroutine function of {_count(required)}; an ASGI application has three: "
            "async def app(scope, receive, send)"
        )
    if required <= 2 <= most and required > 0:
        return "wsgi", "guessed, for it is called with 2 parameters"
    if required == 1 and most == 1:
        if takes_any and names != ["scope"]:
            return (
                "wsgi",
                f"guessed, for it takes any arguments and wraps a function of ({names[0]})",
            )
        return "asgi2", "guessed, for it is called with one parameter"
    if required == 3:
        return "asgi", "guessed, for it is called with 3 parameters"
    raise AppImportError(
        f"{where} is called with {_count(required)} ({', '.join(names) or 'any'}), which fits neither "
        "ASGI (scope, receive, send) nor WSGI (environ, start_response); say what it is with "
        "--interface asgi, asgi2 or wsgi, or add --factory"
    )


def _kind_of_class(found: type, names: list[str], required: int, where: str) -> Kind:
    """The interface of a class, by the parameters of its constructor."""
    if "start_response" in names or required == 2:
        return "wsgi"
    if hasattr(found, "__await__") and required == 3:
        return "asgi"
    if required == 1 and names[:1] == ["scope"]:
        return "asgi2"
    raise AppImportError(
        f"{where} is the class {found.__qualname__}, made of {_count(required)}; name an instance of "
        "it, or say what it is with --interface asgi, asgi2 or wsgi"
    )


def _is_factory(found: Any) -> bool:
    """Whether it can be called without arguments, and with none only."""
    if not (inspect.isroutine(found) or isinstance(found, (type, functools.partial))):
        return False
    try:
        signature = inspect.signature(cast("Callable[..., Any]", found))
    except (TypeError, ValueError):
        return False
    seen = set(signature.parameters)
    if len(seen & (_ASGI_NAMES | _WSGI_NAMES)) >= 2:
        return False
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return False
    try:
        signature.bind()
    except TypeError:
        return False
    if isinstance(found, type):
        return any("__call__" in vars(base) for base in found.__mro__[:-1])
    return True


def _made(factory: Any, where: str) -> Any:
    """Call a factory and return its result."""
    from citius.web.application.app import App

    if isinstance(factory, App):
        return factory
    if not callable(factory):
        raise AppImportError(f"{where}: expected a function that makes the application")
    if inspect.iscoroutinefunction(factory):
        raise AppImportError(
            f"{where} is a coroutine function; a factory is called before there is an event loop. "
            "Do what has to be awaited in the application's lifespan"
        )
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise AppImportError(f"{where} cannot be called without arguments: {error}") from None
    return factory()


def _takes_any(found: Any) -> bool:
    """Whether it has no parameters but ``*args``, as many decorated functions."""
    try:
        parameters = inspect.signature(found, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return True
    return bool(parameters) and all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _parameters(found: Any, where: str, *, follow_wrapped: bool) -> tuple[list[str], int, int]:
    """Names of the positional parameters, how many of them must be given and how many can be."""
    try:
        signature = inspect.signature(found, follow_wrapped=follow_wrapped)
        parameters = signature.parameters.values()
    except (TypeError, ValueError):
        raise AppImportError(
            f"{where} is {_describe(found)}, which does not tell how it is called; say what it is "
            "with --interface asgi or wsgi"
        ) from None
    places = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = sum(parameter.default is parameter.empty for parameter in places)
    any_number = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    return [p.name for p in places], required, 1000 if any_number else len(places)


def _is_async(found: Any) -> bool:
    while isinstance(found, functools.partial):
        found = cast("Any", found).func
    if inspect.iscoroutinefunction(found):
        return True
    kind = cast("type[Any]", type(found))
    call = getattr(kind, "__call__", None)  # noqa: B004  the method, not whether there is one
    return inspect.iscoroutinefunction(call)


def _wrapped(found: Any, kind: Kind, notice: str, config: Config) -> Application:
    if kind == "native":
        return found
    if kind == "wsgi":
        from citius.serving.interfaces.wsgi import WsgiApp

        return WsgiApp(found, config, notice=notice)
    from citius.serving.interfaces.asgi import AsgiApp, from_asgi2

    return AsgiApp(
        from_asgi2(found) if kind == "asgi2" else found,
        root_path=config.root_path,
        lifespan=config.lifespan,
        debug=config.log_level in ("debug", "trace"),
        notice=notice,
        webtransport=config.webtransport,
    )


def _count(number: int) -> str:
    return {0: "no parameters", 1: "one parameter"}.get(number, f"{number} parameters")


def _describe(found: Any) -> str:
    kind: type[Any] = found if isinstance(found, type) else type(found)
    text = f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(found, "__rsgi__"):
        text += " (an RSGI application, which Citius does not serve)"
    return f"the class {text}" if isinstance(found, type) else text
