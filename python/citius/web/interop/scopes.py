"""ASGI scopes: what a native request is to an ASGI application, and how handlers get at their own.

Tests: ``tests/interop/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    from citius._core import Request

Scope: TypeAlias = "MutableMapping[str, Any]"
Message: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"
ASGIApplication: TypeAlias = "Callable[[Any, Any, Any], Awaitable[None]]"
"""Any application of ASGI: asgiref and each framework have types of their own for its arguments."""

# The versions that `citius serve` tells ASGI applications (docs/guides/asgi-and-wsgi.md).
ASGI = {"version": "3.0", "spec_version": "2.3"}
ASGI_WEBSOCKET = {"version": "3.0", "spec_version": "2.5"}

# Where a request's state keeps the scope of the ASGI middleware around it.
KEY = "asgi_scope"

# Characters of a path that stay as they are (RFC 3986 §3.3).
_PATH_SAFE = "/:@!$&'()*+,;=~"


def asgi_scope(request: Request) -> Scope | None:
    """The ASGI scope that a request came with, for what ASGI middleware has put there: ``scope["session"]``.

    ``None`` for a request that neither ASGI middleware nor another server has passed on.
    """
    scope: Scope | None = state_of(request).get(KEY)
    if scope is not None:
        return scope
    adapter: Any = request._served_app.asgi_adapter
    return None if adapter is None else adapter.scope_of(request)


def state_of(request: Request) -> dict[str, Any]:
    """The namespace of a request's state."""
    state: Any = request.state
    return state.__dict__


def scope_of(request: Request, kind: str, prefix: str = "") -> dict[str, Any]:
    """The scope of a request for an application that is mounted at ``prefix``."""
    outer = request.root_path
    raw_path = request.raw_path
    scheme = request.scheme
    if kind == "websocket":
        scheme = "wss" if scheme == "https" else "ws"
    scope: dict[str, Any] = {
        "type": kind,
        "asgi": ASGI if kind == "http" else ASGI_WEBSOCKET,
        "http_version": request.http_version,
        "scheme": scheme,
        "path": outer + unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "raw_path": quote(outer, safe=_PATH_SAFE).encode() + raw_path if outer else raw_path,
        "query_string": request.raw_query,
        "root_path": outer + prefix,
        "headers": encoded(request.header_items()),
        "client": request.client,
        "server": server_of(request),
        "extensions": {},
    }
    if kind == "http":
        scope["method"] = request.method
    return scope


def encoded(
    fields: Iterable[tuple[str, str]], without: frozenset[str] = frozenset()
) -> list[tuple[bytes, bytes]]:
    """Fields as ASGI has them."""
    return [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in fields
        if name not in without
    ]


def server_of(request: Request) -> tuple[str, int] | None:
    """Host and port that the client has asked."""
    host, _, port = request.host.rpartition(":")
    if not port.isdecimal():
        host, port = request.host, "443" if request.scheme == "https" else "80"
    return (host, int(port)) if host else None


def target_of(scope: Scope) -> tuple[bytes, str]:
    """The request target of a scope below its ``root_path``, and that ``root_path`` percent-encoded."""
    root_path: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    raw_path: bytes | None = scope.get("raw_path")
    raw_root = quote(root_path, safe=_PATH_SAFE)
    if root_path and _is_below(path, root_path):
        path = path[len(root_path) :]
        raw = None if raw_path is None else raw_path.decode("latin-1")
        is_plain = raw is not None and _is_below(raw, raw_root)
        raw_path = raw_path[len(raw_root) :] if raw_path is not None and is_plain else None
    if raw_path is None:
        raw_path = quote(path, safe=_PATH_SAFE).encode()
    target = raw_path.partition(b"?")[0] or b"/"
    query: bytes = scope.get("query_string", b"")
    return (target + b"?" + query if query else target), raw_root


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")
