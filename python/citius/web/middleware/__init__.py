"""Middleware: what stands around the handlers of an application.

    from citius import App
    from citius.web.middleware import CORS

    app = App()
    app.middleware(CORS(["https://shop.example"]))

Names are imported when they are first used. Each middleware has a module of its own and a section in
docs/guides/middleware.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from citius.web.middleware.base import AnyMiddleware, AsyncNext, Middleware, Next
    from citius.web.middleware.cors import CORS
    from citius.web.middleware.csrf import CSRF, csrf_field, csrf_token
    from citius.web.middleware.etags import ETags, matches, require_match
    from citius.web.middleware.hosts import TrustedHosts
    from citius.web.middleware.security_headers import (
        DEFAULT_CSP,
        NONCE,
        SecurityHeaders,
        csp_nonce,
    )
    from citius.web.middleware.session_stores import (
        AsyncSessionStore,
        MemoryStore,
        RedisStore,
        SessionStore,
    )
    from citius.web.middleware.sessions import (
        Session,
        SessionCookie,
        Sessions,
        StoredSessions,
        session,
    )

__all__ = [
    "CORS",
    "CSRF",
    "DEFAULT_CSP",
    "NONCE",
    "AnyMiddleware",
    "AsyncNext",
    "AsyncSessionStore",
    "ETags",
    "MemoryStore",
    "Middleware",
    "Next",
    "RedisStore",
    "SecurityHeaders",
    "Session",
    "SessionCookie",
    "SessionStore",
    "Sessions",
    "StoredSessions",
    "TrustedHosts",
    "csp_nonce",
    "csrf_field",
    "csrf_token",
    "matches",
    "require_match",
    "session",
]

_HOMES = {
    "base": ("AnyMiddleware", "AsyncNext", "Middleware", "Next"),
    "cors": ("CORS",),
    "csrf": ("CSRF", "csrf_field", "csrf_token"),
    "etags": ("ETags", "matches", "require_match"),
    "hosts": ("TrustedHosts",),
    "security_headers": ("DEFAULT_CSP", "NONCE", "SecurityHeaders", "csp_nonce"),
    "session_stores": ("AsyncSessionStore", "MemoryStore", "RedisStore", "SessionStore"),
    "sessions": ("Session", "SessionCookie", "Sessions", "StoredSessions", "session"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the home of a public name."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
