"""Protection from cross-site request forgery: other sites' pages cannot act as the user of this one.

Browsers say where a request comes from (``Sec-Fetch-Site``, ``Origin``), and pages cannot change it: that
decides. Tokens in forms, which sessions keep, can be demanded besides. Tests:
tests/middleware/test_csrf.py; in Chromium tests/middleware/test_csrf_browser.py.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import TYPE_CHECKING

# At run time too: as a handler or a dependency a function here has its annotations read.
from citius._core import Request  # noqa: TC001
from citius.errors import Forbidden, HTTPError
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import NamedRoutes, Origins, check_origin, listed, origin_of
from citius.web.middleware.sessions.middleware import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius.web.middleware.base import Socket


TOKEN_FIELD = "csrf_token"
"""The form field of a token."""

TOKEN_HEADER = "x-csrf-token"
"""The header field of a token."""

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_SECRET_BYTES = 16


class CSRF(Middleware):
    """Refuse, with 403, requests that other sites' pages make in the user's name, and their WebSockets.

    GET, HEAD, OPTIONS and TRACE pass: they must not change anything. WebSockets need no token.

    Args:
        trusted_origins: Other origins whose pages may send requests.
        tokens: Demand a token too, which ``csrf_token(request)`` makes, in the form field ``csrf_token`` or
            the header ``X-CSRF-Token``. Needs sessions around it.
        exempt: Paths of routes, as they are declared, that are left alone, such as callbacks of
            other programs.
    """

    def __init__(
        self,
        *,
        trusted_origins: str | Iterable[str] = (),
        tokens: bool = False,
        exempt: str | Iterable[str] = (),
    ) -> None:
        self._trusted = Origins(
            [check_origin(origin, "CSRF") for origin in listed(trusted_origins)]
        )
        self._tokens = self.needs_session = tokens
        self._exempt = NamedRoutes("CSRF(exempt=…)", exempt)

    @property
    def named_routes(self) -> NamedRoutes:
        """Those that are exempt."""
        return self._exempt

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> Middleware | None:
        """Leave safe methods and exempt routes alone."""
        return None if method in _SAFE_METHODS or pattern in self._exempt else self

    def before(self, request: Request) -> None:
        """Refuse what comes from elsewhere."""
        if request.method in _SAFE_METHODS:
            return
        if not self._is_ours(request):
            raise Forbidden("this request was sent by a page of another site")
        if self._tokens and not _has_token(request):
            raise Forbidden(
                f"the {TOKEN_FIELD} of this form is missing, or belongs to another session"
            )

    def connect(self, socket: Socket) -> None:
        """Refuse a WebSocket that a page of another site opens: browsers send their cookies with it."""
        if not self._is_ours(socket.request):
            raise Forbidden("this WebSocket was opened by a page of another site")

    def _is_ours(self, request: Request) -> bool:
        origin, site = request.header("origin"), request.header("sec-fetch-site")
        if origin is not None and origin in self._trusted:
            return True
        if site is not None:
            # `none`: by the user, from the address bar or a bookmark.
            return site in ("same-origin", "none")
        if origin is not None:
            return origin == origin_of(request)
        # A program, or a browser from before 2020 that sent the form from its own origin.
        referer = request.header("referer")
        return referer is None or referer.startswith(origin_of(request) + "/")


def csrf_token(request: Request) -> str:
    """A token for a form of this response; another text each time, so that compression does not betray it."""
    mask = secrets.token_bytes(_SECRET_BYTES)
    return base64.urlsafe_b64encode(mask + _xor(_secret_of(request), mask)).decode().rstrip("=")


def csrf_field(request: Request) -> str:
    """The hidden field of a form with a token, as HTML."""
    return f'<input type="hidden" name="{TOKEN_FIELD}" value="{csrf_token(request)}">'


def _secret_of(request: Request) -> bytes:
    kept = session(request)
    if TOKEN_FIELD not in kept:
        kept[TOKEN_FIELD] = secrets.token_hex(_SECRET_BYTES)
    return bytes.fromhex(kept[TOKEN_FIELD])


def _has_token(request: Request) -> bool:
    if TOKEN_FIELD not in session(request):
        return False
    given = request.header(TOKEN_HEADER) or _token_in_form(request)
    try:
        data = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    mask, masked = data[:_SECRET_BYTES], data[_SECRET_BYTES:]
    return len(masked) == _SECRET_BYTES and hmac.compare_digest(
        _xor(mask, masked), _secret_of(request)
    )


def _token_in_form(request: Request) -> str:
    """The token of a form; empty without one. A broken form is the handler's to refuse."""
    try:
        return request.form().get(TOKEN_FIELD, "")
    except (HTTPError, RuntimeError):
        # No form, or one that the handler reads as a stream: the token is in the header there.
        return ""


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
