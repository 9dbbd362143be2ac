"""Which application ``request.app`` is, below a prefix at which one is mounted in another.

The route says which application its handler belongs to, at no cost for a request. Where middleware of an
outer application surrounds a mounted one, ``Border`` stands between the two in the list of middleware: what
is outside of it sees the outer application, what is inside the mounted one. Tests:
tests/gateway/test_mounted.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from citius.web.middleware.base import Middleware

if TYPE_CHECKING:
    from citius._core import Request, Response, WebSocket
    from citius.web.app import App

_PartT = TypeVar("_PartT")


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

    def connect(self, socket: WebSocket) -> None:
        """Enter it with a WebSocket."""
        self.before(socket.request)

    def disconnect(self, socket: WebSocket) -> None:
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
