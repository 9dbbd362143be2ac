"""The span of a request as the current span of its handler, with ``--otel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.web.middleware.base import Middleware

if TYPE_CHECKING:
    from citius._core import Request
    from citius.web.middleware.base import Socket


class CurrentSpan(Middleware):
    """Outermost. Nothing undoes it: the context is the request's own, and its stream goes on in it."""

    def before(self, request: Request) -> None:
        """Make the span of the request the current one."""
        _enter(request)

    def connect(self, socket: Socket) -> None:
        """Make the span of the opening request the current one."""
        _enter(socket.request)


def _enter(request: Request) -> None:
    from citius.observability.otel import enter_span

    enter_span(request.headers.get("traceparent") or "")
