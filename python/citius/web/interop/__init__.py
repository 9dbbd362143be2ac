"""Between native applications and the interfaces of others: ASGI and WSGI, in both directions.

    from citius import App

    app = App()
    app.mount("/old", fastapi_application)      # ASGI below a prefix
    app.mount_wsgi("/admin", django_application)
    app.add_middleware(GZipMiddleware, minimum_size=500)
    asgi = app.asgi()                           # for another server

docs/guides/asgi-and-wsgi.md is the guide. Nothing of this package is imported by an application that
uses none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.web.interop.asgi import ASGIAdapter
    from citius.web.interop.scopes import (
        ASGIApplication,
        Message,
        Receive,
        Scope,
        Send,
        asgi_scope,
    )

__all__ = [
    "ASGIAdapter",
    "ASGIApplication",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "asgi_scope",
]

_OF_SCOPES = ("ASGIApplication", "Message", "Receive", "Scope", "Send", "asgi_scope")
__getattr__, __dir__ = exports(__name__, {"asgi": ("ASGIAdapter",), "scopes": _OF_SCOPES})
