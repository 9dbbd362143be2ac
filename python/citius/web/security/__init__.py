"""Security: signed values, and schemes that say on whose behalf a request is made.

Names are imported when they are first used. The guide is docs/guides/security.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from citius.web.security.authenticate import Authenticate, principal
    from citius.web.security.jwt import JWT
    from citius.web.security.schemes import APIKey, Basic, Bearer, Principal, Requires, Scheme
    from citius.web.security.signing import Signer

__all__ = [
    "JWT",
    "APIKey",
    "Authenticate",
    "Basic",
    "Bearer",
    "Principal",
    "Requires",
    "Scheme",
    "Signer",
    "principal",
]

_HOMES = {
    "authenticate": ("Authenticate", "principal"),
    "jwt": ("JWT",),
    "schemes": ("APIKey", "Basic", "Bearer", "Principal", "Requires", "Scheme"),
    "signing": ("Signer",),
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
