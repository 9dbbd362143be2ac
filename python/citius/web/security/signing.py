"""Signed values: bytes in, a text out that only a holder of the secret can make; it is not encrypted.

HMAC-SHA256 over purpose, payload and time of expiry. Each purpose has a key of its own, so that what was
signed as one thing is not accepted as another. Tests: tests/security/test_signing.py.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Iterable

SECRET_BYTES_MIN = 16
"""Bytes of a secret. Origin: RFC 2104 §3, a key not much shorter than the hash. Shorter: ConfigError."""

TOKEN_CHARS_MAX = 16 * 1024
"""Characters of a signed value. Origin: four times a cookie. Exceeded: it is refused without hashing."""


@known_options
class Signer:
    """Signs values, and verifies what comes back.

    Args:
        secrets: The first one signs, all verify: to change the secret, put the new one in front of the old.
        purpose: What the values are for, such as ``"password reset"``.

    Raises:
        ConfigError: A secret is too short, or there is none.
    """

    def __init__(self, secrets: str | bytes | Iterable[str | bytes], purpose: str) -> None:
        given = [secrets] if isinstance(secrets, str | bytes) else list(secrets)
        encoded = [one.encode() if isinstance(one, str) else one for one in given]
        if not encoded or any(len(one) < SECRET_BYTES_MIN for one in encoded):
            raise ConfigError(
                f"{purpose}: expected a secret of at least {SECRET_BYTES_MIN} bytes; make one with "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))' and keep it out of the code"
            )
        label = b"citius.sign." + purpose.encode()
        self._keys = [hmac.digest(secret, label, hashlib.sha256) for secret in encoded]

    def sign(self, payload: bytes, max_age_s: int) -> str:
        """A text of letters, digits, ``-``, ``_`` and ``.``, valid for ``max_age_s`` seconds."""
        signed = f"{_encode(payload)}.{int(time.time()) + max_age_s:x}"
        return f"{signed}.{_encode(self._mac(self._keys[0], signed))}"

    def verify(self, token: str) -> bytes | None:
        """What was signed; ``None`` if it was not signed by us for this purpose, or has expired."""
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():
            return None
        signed, separator, given = token.rpartition(".")
        if not separator:
            return None
        if not any(
            hmac.compare_digest(_encode(self._mac(key, signed)), given) for key in self._keys
        ):
            return None
        # From here on it is what `sign` has made.
        payload, _, expires_at = signed.rpartition(".")
        return _decode(payload) if int(expires_at, 16) > time.time() else None

    def _mac(self, key: bytes, signed: str) -> bytes:
        return hmac.digest(key, signed.encode(), hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
