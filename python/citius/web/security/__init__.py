"""Security: signed values, and schemes that say on whose behalf a request is made.

Names are imported when they are first used. The guide is docs/guides/security.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.web.security.authenticate import Authenticate, principal
    from citius.web.security.jwt import JWT
    from citius.web.security.schemes import (
        APIKey,
        Basic,
        Bearer,
        PasswordForm,
        Principal,
        Requires,
        Scheme,
        oauth2_code,
        oauth2_password,
    )
    from citius.web.security.signing import Signer

__all__ = [
    "JWT",
    "APIKey",
    "Authenticate",
    "Basic",
    "Bearer",
    "PasswordForm",
    "Principal",
    "Requires",
    "Scheme",
    "Signer",
    "oauth2_code",
    "oauth2_password",
    "principal",
]

_HOMES = {
    "authenticate": ("Authenticate", "principal"),
    "jwt": ("JWT",),
    "schemes": (
        "APIKey", "Basic", "Bearer", "PasswordForm", "Principal", "Requires", "Scheme", "oauth2_code",
        "oauth2_password",
    ),
    "signing": ("Signer",),
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, _HOMES)
