"""Which application ``request.app`` is, below a prefix at which one is mounted in another.

The route says which application its handler belongs to, at no cost for a request. Where middleware of an
outer application surrounds a mounted one, ``Border`` stands between the two in the list of middleware: what
is outside of it sees the outer application, what is inside the mounted one. Tests:
tests/gateway/test_mounted.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from citius.errors import ConfigError
from citius.web.middleware.base import Middleware

if TYPE_CHECKING:
    from citius._core import Request, Response
    from citius.web.application.app import App
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.middleware.base import Declared, Socket
    from citius.web.routing.request_chain import ErrorHandlers
    from citius.web.routing.static import Mount

_PartT = TypeVar("_PartT")


class Member(NamedTuple):
    """An application, mounted or not, with what those around it share."""

    prefix: str
    app: App
    middleware: tuple[Declared, ...]
    """Its own too, outer ones first."""
    errors: tuple[ErrorHandlers, ...]
    """Its own too, inner ones first."""
    dependencies: tuple[Depends, ...]
    """Of the applications around it, outer ones first; its own are those of its routes."""

    def statics(self) -> list[Mount]:
        """Its static mounts with their full prefixes."""
        return [replace(one, prefix=self.prefix + one.prefix) for one in self.app.own_statics]

    def passes_python(self, mount: Mount) -> bool:
        """Whether files pass middleware and dependencies; otherwise the extension alone serves them.

        Raises:
            ConfigError: They would have to, and cannot.
        """
        depends = (*self.dependencies, *self.app.own_dependencies)
        if mount.passes_middleware:
            sends_fallback = mount.fallback is not None and not mount.is_root
            return bool(self.middleware or depends or sends_fallback)
        what = f"the files of {mount.prefix or '/'} ({mount.where}) are served without Python code"
        if depends:
            raise ConfigError(
                f"{what}, so dependencies= of the application would not hold for them: mount them below a "
                "prefix without middleware=False, or put the dependencies on a Router"
            )
        if self.middleware and mount.middleware:
            raise ConfigError(
                f"{what}, so middleware would not see them: write middleware=False if it need not, or mount "
                "them below a prefix"
            )
        return False


class Border(Middleware):
    """Sets ``request.app`` on the way into a mounted application, and back on the way out."""

    def __init__(self, outer: App, inner: App) -> None:
        self.outer = outer
        self.inner = inner

    def before(self, request: Request) -> None:
        """Enter the mounted application."""
        request._set_app(self.inner)  # pyright: ignore[reportPrivateUsage]

    def after(self, request: Request, response: Response) -> Response:
        """Leave it."""
        request._set_app(self.outer)  # pyright: ignore[reportPrivateUsage]
        return response

    def connect(self, socket: Socket) -> None:
        """Enter it with a WebSocket."""
        self.before(socket.request)

    def disconnect(self, socket: Socket) -> None:
        """Leave it."""
        socket.request._set_app(self.outer)  # pyright: ignore[reportPrivateUsage]


def entered(around: tuple[_PartT, ...], app: object) -> tuple[object, tuple[_PartT, ...]]:
    """The application with which a request begins, and what surrounds it from there on inwards.

    A border without middleware outside of it needs no call: the request begins inside.

    Args:
        around: What surrounds a handler of ``app``, the outermost first.
        app: The application that declares the handler.
    """
    at = next((at for at, one in enumerate(around) if not isinstance(one, Border)), len(around))
    inwards = around[at:]
    return next((one.outer for one in inwards if isinstance(one, Border)), app), inwards
