"""What can be spoken on a connection: HTTP/1.1 or HTTP/2, in clear text or over TLS.

Clear-text HTTP/2 is spoken by prior knowledge; over TLS the version is agreed on by ALPN.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

from citius_lab.contestants import default_build_root
from citius_lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_tls(wire: str) -> bool:
    """Tell whether a wire is encrypted."""
    return wire in (HTTPS, H2)


def is_http2(wire: str) -> bool:
    """Tell whether a wire carries HTTP/2."""
    return wire in (H2C, H2)


def probe_wire(wires: Iterable[str], *, is_encrypted: bool) -> str | None:
    """Return what single requests are best asked by, on a server that speaks ``wires``."""
    order = (HTTPS, H2) if is_encrypted else (HTTP1, H2C)
    spoken = set(wires)
    return next((wire for wire in order if wire in spoken), None)


def client_context(wire: str) -> ssl.SSLContext:
    """Return the client's side of TLS: the lab's own certificate proves nothing, so none is asked for."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"] if is_http2(wire) else ["http/1.1"])
    return context


def make_certificate() -> None:
    """Make the certificate and the key that every contestant serves with, once.

    P-256, because a handshake costs least with it and every contestant's library has it.

    Raises:
        LabError: There is no ``openssl`` to make them, or it fails.
    """
    folder = default_build_root() / "tls"
    cert, key = folder / "cert.pem", folder / "key.pem"
    if cert.exists() and key.exists():
        return
    openssl = shutil.which("openssl")
    if openssl is None:
        raise LabError("TLS is measured with a certificate that openssl makes; it is not on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "cert.pem.new"
    done = subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "3650", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", str(key), "-out", str(made),
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError(f"openssl makes no certificate: {done.stderr.strip()[-300:]}")
    made.rename(cert)


HTTP1, H2C, HTTPS, H2 = "http/1.1", "h2c", "https", "h2"
