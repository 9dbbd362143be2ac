"""TLS from the outside: an authority of our own, an application that tells what it sees, clients."""

from __future__ import annotations

import datetime
import re
import shutil
import ssl
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from rig import TIMEOUT_S, Peer, Server, application

APP = application("tls_app")


@dataclass
class Pki:
    """An authority and what it has signed, as files."""

    ca: trustme.CA
    directory: Path

    @property
    def bundle(self) -> str:
        """The authority's own certificate."""
        path = self.directory / "ca.pem"
        if not path.exists():
            self.ca.cert_pem.write_to_path(str(path))
        return str(path)

    def issue(self, *names: str, file: str | None = None) -> tuple[str, str]:
        """A certificate and its key, for a server or a client."""
        made = self.ca.issue_cert(*names, common_name=names[0])
        stem = self.directory / (file or names[0].replace("*", "star"))
        certificate, key = f"{stem}.pem", f"{stem}-key.pem"
        Path(key).unlink(missing_ok=True)
        Path(key).touch(0o600)
        made.private_key_pem.write_to_path(key)
        Path(certificate).write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        return certificate, key

    def client(self, *shown: str, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """A client's rules: it trusts the authority, and shows a certificate if it has one."""
        context = ssl.create_default_context(cafile=self.bundle)
        if shown:
            context.load_cert_chain(*shown)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


def revocation_list(pki: Pki, *certificates: str, days: int = 1) -> str:
    """A list, signed by the authority, of certificates that are good no more."""
    key = serialization.load_pem_private_key(pki.ca.private_key_pem.bytes(), None)
    issuer = x509.load_pem_x509_certificate(pki.ca.cert_pem.bytes())
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - datetime.timedelta(days=9))
        .next_update(now + datetime.timedelta(days=days))
        .add_extension(x509.CRLNumber(1), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()),  # pyright: ignore
            critical=False,
        )
    )
    for path in certificates:
        revoked = x509.load_pem_x509_certificate(Path(path).read_bytes())
        entry = (
            x509.RevokedCertificateBuilder()
            .serial_number(revoked.serial_number)
            .revocation_date(now)
            .build()
        )
        builder = builder.add_revoked_certificate(entry)
    made = builder.sign(key, hashes.SHA256())  # pyright: ignore
    path = pki.directory / "crl.pem"
    path.with_suffix(".new").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".new").rename(path)
    return str(path)


def connect(
    server: Server,
    context: ssl.SSLContext,
    name: str = "localhost",
    session: ssl.SSLSession | None = None,
) -> Peer:
    """A connection whose handshake is over."""
    plain = server.connect()
    plain.socket.settimeout(TIMEOUT_S)
    return Peer(context.wrap_socket(plain.socket, server_hostname=name, session=session))


def run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A tool of the system's; the test is skipped where it is not installed."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=20,
        input=stdin,
        errors="replace",
        check=False,
    )


def metric(server: Server, name: str) -> float:
    """A counter of the management listener's."""
    url = f"http://127.0.0.1:{server.management()}/metrics"
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        text = answer.read().decode()
    values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
    return sum(map(float, values))
