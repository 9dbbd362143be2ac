"""Interfaces are detected without a flag; ambiguous objects are refused with a reason."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from citius import App
from citius.errors import AppImportError
from citius.serving.interfaces.asgi import AsgiApp
from citius.serving.interfaces.detection import application, guess
from citius.settings.config import Config


async def asgi(scope, receive, send):
    """ASGI 3."""


async def asgi_other_names(a, b, c):
    """ASGI 3."""


def asgi_wrapped(scope, receive, send):
    """Returns a coroutine of another."""
    return asgi(scope, receive, send)


@functools.wraps(asgi)
def asgi_decorated(*args, **kwargs):
    """Known by what it wraps."""
    return asgi(*args, **kwargs)


def request_only(request):
    """What `Request.application` of Werkzeug decorates."""


@functools.wraps(request_only)
def werkzeug(*args):
    """As `Request.application` makes it."""


@functools.wraps(request_only)
def wsgi_around_another(environ, start_response):
    """Its own parameters count."""


@functools.wraps(request_only)
def asgi_around_another(scope, receive, send):
    """Its own parameters count."""


class AsgiObject:
    """As Starlette's."""

    async def __call__(self, scope, receive, send):
        """ASGI 3."""


class Asgi2Class:
    """As Channels' consumers once were."""

    def __init__(self, scope):
        pass

    async def __call__(self, receive, send):
        """The second call."""


def asgi2(scope):
    """ASGI 2."""
    return Asgi2Class(scope)


def wsgi(environ, start_response):
    """WSGI."""


class WsgiObject:
    """As Flask's."""

    def __call__(self, environ, start_response):
        """WSGI."""

    def method(self, env, respond):
        """WSGI under other names."""


class WsgiClass:
    """As in PEP 3333."""

    def __init__(self, environ, start_response):
        pass

    def __iter__(self):
        """The body."""


def factory():
    """An ASGI application."""
    return AsgiObject()


def factory_with_defaults(settings=None, *, debug=False):
    """An ASGI application."""
    return asgi


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (asgi, "asgi"),
        (asgi_other_names, "asgi"),
        (asgi_wrapped, "asgi"),
        (asgi_decorated, "asgi"),
        (asgi_around_another, "asgi"),
        (functools.partial(asgi_decorated), "asgi"),
        (werkzeug, "wsgi"),
        (functools.partial(werkzeug), "wsgi"),
        (wsgi_around_another, "wsgi"),
        (AsgiObject(), "asgi"),
        (AsgiObject().__call__, "asgi"),
        (functools.partial(asgi), "asgi"),
        (asgi2, "asgi2"),
        (Asgi2Class, "asgi2"),
        (wsgi, "wsgi"),
        (WsgiObject(), "wsgi"),
        (WsgiObject().method, "wsgi"),
        (WsgiClass, "wsgi"),
        (factory, "factory"),
        (factory_with_defaults, "factory"),
        (AsgiObject, "factory"),
        (functools.partial(asgi2, None), "factory"),
    ],
)
def test_kinds(found: Any, kind: str) -> None:
    assert guess(found, "x")[0] == kind


def test_the_notice_names_the_interface_and_the_reason() -> None:
    for found, notice in {
        wsgi: "x is a WSGI application: called with environ, start_response",
        werkzeug: "x is a WSGI application: guessed, for it takes any arguments and wraps a function "
        "of (request)",
        WsgiObject().method: "x is a WSGI application: guessed, for it is called with 2 parameters",
        asgi: "x is an ASGI application: called with scope, receive, send",
        factory: "x() is an ASGI application: called with scope, receive, send",
    }.items():
        assert application(found, "x", Config()).notice == notice
    forced = application(wsgi, "x", Config(interface="wsgi"))
    assert forced.notice == "x is a WSGI application: --interface wsgi"


def test_factories_are_called_and_looked_at() -> None:
    made = application(factory, "m:factory", Config())
    assert isinstance(made, AsgiApp)
    assert application(factory_with_defaults, "m:f", Config()).app is asgi  # pyright: ignore
    app = App()
    assert application(lambda: app, "m:f", Config()) is app


async def two(a, b):
    """Neither."""


async def make_app():
    """A factory that cannot be called."""


def seven(a, b, c, d, e, f, g):
    """Nothing known."""


class Holder:
    """Made of something."""

    def __init__(self, name, size):
        pass


class Rsgi:
    """Of another server."""

    def __rsgi__(self, scope, protocol):
        """RSGI."""


@pytest.mark.parametrize(
    ("found", "interface", "message"),
    [
        (1, "auto", r"expected an application \(citius.App, ASGI or WSGI\), got builtins.int"),
        (two, "auto", r"coroutine function of 2 parameters; an ASGI application has three"),
        (make_app, "auto", r"before there is an event loop.*lifespan"),
        (seven, "auto", r"called with 7 parameters \(a, b, c, d, e, f, g\), .*--interface asgi"),
        (Rsgi(), "auto", r"RSGI application, which Citius does not serve"),
        (lambda: 1, "auto", r"x\(\): expected an application"),
        (asgi, "native", r"expected a citius.App, got builtins.function"),
        (App(), "asgi", r"is a citius.App; leave out --interface asgi"),
    ],
)
def test_what_is_none_is_explained(found: Any, interface: Any, message: str) -> None:
    with pytest.raises(AppImportError, match=message):
        application(found, "x", Config(interface=interface))


def test_an_endless_chain_of_factories_ends() -> None:
    def endless():
        return endless

    with pytest.raises(AppImportError, match="factory that makes factories"):
        application(endless, "x", Config())


def test_the_flag_wins() -> None:
    made = application(seven, "x", Config(interface="asgi"))
    assert isinstance(made, AsgiApp)
    assert made.app is seven
