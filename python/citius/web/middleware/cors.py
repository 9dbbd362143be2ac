"""Cross-origin resource sharing: which pages of other origins may read responses (Fetch standard, §3.2).

``CORS`` responds to preflight requests itself, whether or not the path has a route, and adds its fields to
every other response, error pages included. Tests: tests/middleware/test_cors.py; in Chromium
tests/middleware/test_browser.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from citius._core import Response
from citius.errors import ConfigError
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import Origins, add_vary, check_origin, is_token, listed, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import Request

# Request fields that need no permission (Fetch standard, §2.2.2).
_SAFE_FIELDS = frozenset(("accept", "accept-language", "content-language", "content-type"))


_ANY_ORIGIN = ("https://k3v9q-7xw2m.invalid", "http://k3v9q-7xw2m.invalid")
"""Origins that no application allows; a regular expression that matches one matches all of its scheme."""
_ORIGIN_CHARS_MAX = 200
"""Characters of an origin that `origin_regex` is tried on. Origin: a host name has 253 at most, and those of
applications are short. Exceeded: it is not allowed."""


class CORS(Middleware):
    r"""Let pages of other origins read responses.

    Args:
        origins: Origins such as ``https://shop.example`` or ``https://*.shop.example``, ``"null"`` for
            sandboxed pages and local files, or ``"*"`` for all.
        origin_regex: A regular expression that further origins match as a whole, such as
            ``r"http://localhost:\d+"``. It reads what clients send: one whose time grows with a power of the
            length is for you to avoid; origins of more than 200 characters match nothing.
        methods: Methods that such pages may use; ``"*"`` for all.
        headers: Request fields that they may send besides those that are always allowed; ``"*"`` for all.
        credentials: Whether their requests may carry cookies and authorization.
        expose: Response fields that their scripts may read.
        max_age_s: How long a browser keeps the response to a preflight request.
        private_network: Whether public pages may reach this server in a private network.

    Raises:
        ConfigError: An origin, method or field is none, or ``credentials`` are allowed to every origin.
    """

    requests_only = True

    def __init__(
        self,
        origins: str | Iterable[str] = (),
        *,
        origin_regex: str | None = None,
        methods: str | Iterable[str] = ("GET", "HEAD", "POST"),
        headers: str | Iterable[str] = (),
        credentials: bool = False,
        expose: str | Iterable[str] = (),
        max_age_s: int = 600,
        private_network: bool = False,
    ) -> None:
        given = listed(origins)
        if not given and origin_regex is None:
            raise ConfigError("CORS: expected origins or an origin_regex")
        try:
            self._regex = None if origin_regex is None else re.compile(origin_regex)
        except re.error as error:
            raise ConfigError(f"CORS: origin_regex {origin_regex!r}: {error}") from None
        self._any = given == ["*"]
        if "*" in given and not self._any:
            raise ConfigError('CORS: "*" stands alone among the origins')
        if credentials and (self._any or "null" in given):
            raise ConfigError(
                "CORS: credentials go to named origins only: every page of the web, or every sandboxed one, "
                "could act as the user otherwise; list the origins"
            )
        if credentials and self._regex is not None and any(map(self._regex.fullmatch, _ANY_ORIGIN)):
            raise ConfigError(
                f"CORS: origin_regex {origin_regex!r} matches every origin, and credentials go to named ones "
                r"only: write the domain, such as r\"https://\w+\.example\.org\""
            )
        names = [one if one == "null" else check_origin(one, "CORS") for one in given if one != "*"]
        self._origins = Origins(names)
        self._credentials = credentials
        self._methods = _checked([method.upper() for method in listed(methods)], "method")
        self._any_method = self._methods == ["*"]
        if "*" in self._methods and not self._any_method:
            raise ConfigError('CORS: "*" stands alone among the methods')
        if not self._methods:
            raise ConfigError('CORS: expected methods that pages may use, or "*" for all')
        fields = listed(headers)
        self._any_header = fields == ["*"]
        if "*" in fields and not self._any_header:
            raise ConfigError('CORS: "*" stands alone among the headers')
        self._headers = frozenset(_checked([name for name in fields if name != "*"], "header"))
        self._expose = ", ".join(_checked(listed(expose), "header"))
        if credentials and "*" in self._expose:
            raise ConfigError(
                'CORS: with credentials browsers take "*" for a field of that name; list the fields in expose'
            )
        self._max_age = str(max_age_s)
        self._private_network = private_network

    def before(self, request: Request) -> Response | None:
        """Respond to a preflight request."""
        if request.method != "OPTIONS":
            return None
        method = request.header("access-control-request-method")
        origin = request.header("origin")
        if method is None or origin is None:
            return None
        return self._preflight(request, origin, method)

    def after(self, request: Request, response: Response) -> Response:
        """Say which origin may read the response."""
        if not self._any:
            # Of every response: a cache must not give one origin's to another.
            add_vary(response, "origin")
        origin = request.header("origin")
        if origin is not None and self._is_allowed(origin):
            self._allow(response, origin)
            if self._expose:
                response.headers["access-control-expose-headers"] = self._expose
        return response

    def _is_allowed(self, origin: str) -> bool:
        if self._any or origin in self._origins:
            return True
        regex = self._regex
        if regex is None or len(origin) > _ORIGIN_CHARS_MAX:
            return False
        return regex.fullmatch(origin) is not None

    def _allow(self, response: Response, origin: str) -> None:
        headers = response.headers
        headers["access-control-allow-origin"] = "*" if self._any else origin
        if self._credentials:
            headers["access-control-allow-credentials"] = "true"

    def _preflight(self, request: Request, origin: str, method: str) -> Response:
        wanted = tokens(request.header("access-control-request-headers") or "")
        refusal = self._refusal(origin, method, wanted)
        if refusal:
            # The browser hides it from scripts; a developer sees it in the response.
            response = Response(refusal, 403)
        else:
            response = Response(b"", 204)
            self._allow(response, origin)
            headers = response.headers
            # With credentials browsers take `*` for a method of that name.
            allowed = [method] if self._any_method else self._methods
            headers["access-control-allow-methods"] = ", ".join(allowed)
            if wanted:
                headers["access-control-allow-headers"] = ", ".join(wanted)
            headers["access-control-max-age"] = self._max_age
            if request.header("access-control-request-private-network") == "true":
                if self._private_network:
                    headers["access-control-allow-private-network"] = "true"
                add_vary(response, "access-control-request-private-network")
        add_vary(
            response, "origin", "access-control-request-method", "access-control-request-headers"
        )
        return response

    def _refusal(self, origin: str, method: str, wanted: list[str]) -> str:
        """Why a preflight request is refused; empty if it is not. Repeats nothing that the client sent."""
        if not self._is_allowed(origin):
            return "this origin is not allowed to read responses"
        if not is_token(method) if self._any_method else method not in self._methods:
            return "this method is not allowed to other origins"
        if self._any_header:
            is_fine = all(is_token(name) for name in wanted)
        else:
            is_fine = all(name in self._headers or name in _SAFE_FIELDS for name in wanted)
        return "" if is_fine else "these request fields are not allowed to other origins"


def _checked(names: list[str], what: str) -> list[str]:
    for name in names:
        if not is_token(name):
            raise ConfigError(f"CORS: expected a {what}, got {name!r}")
    return [name.lower() for name in names] if what == "header" else names
