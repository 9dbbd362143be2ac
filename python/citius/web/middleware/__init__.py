"""Middleware: what stands around the handlers of an application.

    from citius import App
    from citius.web.middleware import CORS

    app = App()
    app.middleware(CORS(["https://shop.example"]))

Names are imported when they are first used. Each middleware has a module of its own and a section in
docs/guides/middleware.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.web.middleware.base import (
        AnyMiddleware,
        AsyncNext,
        AsyncNextConnection,
        Connection,
        ConnectionMiddleware,
        Middleware,
        Next,
        NextConnection,
    )
    from citius.web.middleware.cors import CORS
    from citius.web.middleware.csrf import CSRF, csrf_field, csrf_token
    from citius.web.middleware.etags import ETags, matches, require_match
    from citius.web.middleware.hosts import TrustedHosts
    from citius.web.middleware.ratelimit import BucketStore, RateLimit, by_client
    from citius.web.middleware.security_headers import (
        DEFAULT_CSP,
        NONCE,
        SecurityHeaders,
        csp_nonce,
    )
    from citius.web.middleware.sessions.middleware import (
        Session,
        SessionCookie,
        Sessions,
        StoredSessions,
        session,
    )
    from citius.web.middleware.sessions.redis_stores import RedisBuckets, RedisStore
    from citius.web.middleware.sessions.stores import (
        AsyncSessionStore,
        MemoryStore,
        SessionStore,
        SharedStore,
        Unreadable,
    )
    from citius.web.middleware.timeouts import Timeout

__all__ = [
    "CORS",
    "CSRF",
    "DEFAULT_CSP",
    "NONCE",
    "AnyMiddleware",
    "AsyncNext",
    "AsyncNextConnection",
    "AsyncSessionStore",
    "BucketStore",
    "Connection",
    "ConnectionMiddleware",
    "ETags",
    "MemoryStore",
    "Middleware",
    "Next",
    "NextConnection",
    "RateLimit",
    "RedisBuckets",
    "RedisStore",
    "SecurityHeaders",
    "Session",
    "SessionCookie",
    "SessionStore",
    "Sessions",
    "SharedStore",
    "StoredSessions",
    "Timeout",
    "TrustedHosts",
    "Unreadable",
    "by_client",
    "csp_nonce",
    "csrf_field",
    "csrf_token",
    "matches",
    "require_match",
    "session",
]

_HOMES = {
    "base": (
        "AnyMiddleware",
        "AsyncNext",
        "AsyncNextConnection",
        "Connection",
        "ConnectionMiddleware",
        "Middleware",
        "Next",
        "NextConnection",
    ),
    "cors": ("CORS",),
    "csrf": ("CSRF", "csrf_field", "csrf_token"),
    "etags": ("ETags", "matches", "require_match"),
    "hosts": ("TrustedHosts",),
    "ratelimit": ("BucketStore", "RateLimit", "by_client"),
    "sessions.redis_stores": ("RedisBuckets", "RedisStore"),
    "security_headers": ("DEFAULT_CSP", "NONCE", "SecurityHeaders", "csp_nonce"),
    "sessions.stores": (
        "AsyncSessionStore",
        "MemoryStore",
        "SessionStore",
        "SharedStore",
        "Unreadable",
    ),
    "sessions.middleware": ("Session", "SessionCookie", "Sessions", "StoredSessions", "session"),
    "timeouts": ("Timeout",),
}
__getattr__, __dir__ = exports(__name__, _HOMES)
