"""Security headers: what a browser may do with a response, Content-Security-Policy with nonces included.

Fields that a handler has set itself are left alone. Tests: tests/middleware/test_security_headers.py; in
Chromium tests/middleware/test_browser.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

# At run time too: as a handler or a dependency a function here has its annotations read.
from citius._core import Request  # noqa: TC001
from citius.errors import ConfigError
from citius.web.binding.headers import MutableHeaders
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius._core import Response

NONCE: Final = "'nonce'"
"""A source in a policy that becomes ``'nonce-…'`` with the value that ``csp_nonce(request)`` returns."""

DEFAULT_CSP: Final = {
    "default-src": ["'self'"],
    "script-src": ["'self'", NONCE],
    "style-src": ["'self'", NONCE],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
}
"""Everything from the page's own origin; inline scripts and styles with a nonce only; no frames around it."""


class SecurityHeaders(Middleware):
    """Add security headers to every response.

    Args:
        csp: Content-Security-Policy, directives with their sources, among them ``NONCE``; ``None`` for none.
        csp_report_only: Have browsers report violations instead of preventing them.
        hsts_max_age_s: Strict-Transport-Security of responses over TLS; 0 for none.
        hsts_subdomains: Let it hold for the hosts below this one.
        frame_options: X-Frame-Options, for browsers that do not know ``frame-ancestors``.
        referrer_policy: Referrer-Policy.
        opener_policy: Cross-Origin-Opener-Policy.
        resource_policy: Cross-Origin-Resource-Policy.
        permissions: Permissions-Policy, such as ``camera=(), geolocation=()``.

    Raises:
        ConfigError: A directive or a source has a character that would end it, or browsers would not know
            a value.
    """

    requests_only = True

    def __init__(
        self,
        *,
        csp: Mapping[str, Iterable[str]] | None = DEFAULT_CSP,
        csp_report_only: bool = False,
        hsts_max_age_s: int = 31_536_000,
        hsts_subdomains: bool = False,
        frame_options: str | None = "DENY",
        referrer_policy: str | None = "strict-origin-when-cross-origin",
        opener_policy: str | None = "same-origin",
        resource_policy: str | None = "same-origin",
        permissions: str | None = None,
    ) -> None:
        _check_values(
            {
                "frame_options": frame_options, "referrer_policy": referrer_policy,
                "opener_policy": opener_policy, "resource_policy": resource_policy,
            }
        )  # fmt: skip
        fixed = {
            "x-content-type-options": "nosniff",
            "x-frame-options": frame_options,
            "referrer-policy": referrer_policy,
            "cross-origin-opener-policy": opener_policy,
            "cross-origin-resource-policy": resource_policy,
            "permissions-policy": permissions,
        }
        suffix = "-report-only" if csp_report_only else ""
        self._csp_name = f"content-security-policy{suffix}"
        self._csp = _policy(csp or {})
        without_nonce = _policy(
            {name: _without_nonce(sources) for name, sources in (csp or {}).items()}
        )
        self._has_nonce = without_nonce != self._csp
        fixed[self._csp_name] = without_nonce or None
        self._plain = _checked({name: value for name, value in fixed.items() if value is not None})
        self._secure = self._plain
        if hsts_subdomains and not hsts_max_age_s:
            raise ConfigError("SecurityHeaders: hsts_subdomains=True needs hsts_max_age_s above 0")
        if hsts_max_age_s:
            below = "; includeSubDomains" if hsts_subdomains else ""
            hsts = {"strict-transport-security": f"max-age={hsts_max_age_s}{below}"}
            self._secure = [*self._plain, *_checked(hsts)]

    def after(self, request: Request, response: Response) -> Response:
        """Add what is not there."""
        headers = response.headers
        if self._has_nonce:
            state = request.state
            nonce = cast("str", getattr(state, "csp_nonce", ""))
            if nonce:
                policy = self._csp.replace(NONCE, f"'nonce-{nonce}'")
                headers.add_missing([(self._csp_name, policy)])
            else:
                # No page of this response has one; a later call is told so.
                state.csp_nonce = None
        headers.add_missing(self._secure if request.scheme == "https" else self._plain)
        return response


def csp_nonce(request: Request) -> str:
    """The nonce of this response, for ``<script nonce=…>``; made when it is first asked for.

    Raises:
        RuntimeError: The policy has been sent without one, because nothing asked before.
    """
    nonce = getattr(request.state, "csp_nonce", "")
    if nonce is None:
        raise RuntimeError(
            "the Content-Security-Policy of this response is made already; call csp_nonce(request) in the "
            "handler, before it returns its response"
        )
    if not nonce:
        import secrets

        nonce = request.state.csp_nonce = secrets.token_urlsafe(16)
    return cast("str", nonce)


def _checked(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Header fields that can be sent as they are.

    Raises:
        ConfigError: A value would break a line.
    """
    try:
        headers = MutableHeaders()
        for name, value in fields.items():
            headers.add(name, value)
    except ValueError as error:
        raise ConfigError(f"SecurityHeaders: {error}") from None
    return headers.multi_items()


def _without_nonce(sources: Iterable[str]) -> list[str]:
    """The sources without the nonce; a directive with nothing left allows nothing."""
    return [source for source in listed(sources) if source != NONCE] or ["'none'"]


_KEYWORDS = frozenset(
    ("self", "none", "unsafe-inline", "unsafe-eval", "unsafe-hashes", "strict-dynamic", "report-sample",
     "wasm-unsafe-eval", "inline-speculation-rules")
)  # fmt: skip
_PREFIXES = ("nonce-", "sha256-", "sha384-", "sha512-")
"""Sources that are only what they are between quotes (CSP 3, §2.3.1)."""

_VALUES = {
    "frame_options": ("DENY", "SAMEORIGIN"),
    "referrer_policy": (
        "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
        "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
    ),
    "opener_policy": (
        "unsafe-none", "same-origin-allow-popups", "same-origin", "noopener-allow-popups",
    ),
    "resource_policy": ("same-origin", "same-site", "cross-origin"),
}  # fmt: skip
"""What browsers know; any other value is as good as none to them."""


def _check_values(given: Mapping[str, str | None]) -> None:
    for name, value in given.items():
        if value is None:
            continue
        # Of several policies browsers take the last one that they know.
        values = value.split(",") if name == "referrer_policy" else [value]
        known = {one.lower() for one in _VALUES[name]}
        if not all(one.strip().lower() in known for one in values):
            raise ConfigError(
                f"SecurityHeaders: browsers ignore {name}={value!r}; expected one of "
                f"{', '.join(_VALUES[name])}, or None"
            )


def _policy(directives: Mapping[str, Iterable[str]]) -> str:
    parts: list[str] = []
    for name, given in directives.items():
        sources = listed(given)
        for text in (name, *sources):
            if not text or not text.isascii() or any(c in text for c in ";, \r\n\t\0"):
                raise ConfigError(
                    f"SecurityHeaders: the directive {name!r} has a source with a character that would "
                    f"end it: {text!r}; give each source by itself"
                )
        for source in sources:
            if source.lower() in _KEYWORDS or source.lower().startswith(_PREFIXES):
                raise ConfigError(
                    f"SecurityHeaders: {source!r} in the directive {name!r} is a host to browsers; the "
                    f"keyword has quotes, \"'{source}'\""
                )
        parts.append(" ".join((name, *sources)))
    return "; ".join(parts)
