"""The certificate that every contestant serves TLS with."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from citius_lab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path


def paths(build_root: Path) -> tuple[Path, Path]:
    """Return where the certificate and its key are kept below the contestants' builds."""
    return build_root / "tls" / "cert.pem", build_root / "tls" / "key.pem"


def make(build_root: Path) -> None:
    """Make the certificate and its key, once.

    P-256, because a handshake costs least with it and every contestant's library has it.

    Raises:
        LabError: There is no ``openssl`` to make them, or it fails.
    """
    cert, key = paths(build_root)
    if cert.exists() and key.exists():
        return
    openssl = shutil.which("openssl")
    if openssl is None:
        raise LabError("TLS is measured with a certificate that openssl makes; it is not on PATH")
    cert.parent.mkdir(parents=True, exist_ok=True)
    made = cert.with_name("cert.pem.new")
    done = subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "3650", "-subj", "/CN=localhost",
            # rustls takes no certificate of an authority for that of a server.
            "-addext", "basicConstraints=critical,CA:FALSE",
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
