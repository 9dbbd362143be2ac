"""Where systems keep the certificates of authorities. Tests: ``tests/http/``, ``tests/rpc/test_quic.py``."""

from __future__ import annotations

import os

_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def system_authorities() -> str | None:
    """The file of the authorities that the system trusts, or that ``SSL_CERT_FILE`` names."""
    if given := os.environ.get("SSL_CERT_FILE"):
        return given
    return next((path for path in _SYSTEM if os.path.isfile(path)), None)
