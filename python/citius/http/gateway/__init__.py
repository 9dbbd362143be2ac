"""Requests that are passed on to other servers: ``app.forward``, ``forward`` in a handler, ``Forward``.

Heads are made and both contents pass in the extension; Python sees a request before it leaves and a response
before its content. ``docs/guides/gateway.md`` says more. Tests: ``tests/http/gateway/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.http.gateway.caching import HTTPCache
    from citius.http.gateway.forwarding import Forward, ForwardedRequest, forward
    from citius.http.gateway.upstreams import Checks, Upstreams

__all__ = ["Checks", "Forward", "ForwardedRequest", "HTTPCache", "Upstreams", "forward"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "caching": ("HTTPCache",),
        "forwarding": ("Forward", "ForwardedRequest", "forward"),
        "upstreams": ("Checks", "Upstreams"),
    },
)
