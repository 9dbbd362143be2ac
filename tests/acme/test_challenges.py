"""How workers answer challenges by TLS (RFC 8737), and what others get who ask in that way."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import trustme
from citius._core import self_signed_certificate
from pki import Pki
from rig import TIMEOUT_S, Server, application

pytestmark = pytest.mark.skipif(find_spec("acme") is None, reason="citius[acme] is not installed")


@pytest.fixture
def waiting(serve: Callable[..., Server], directory: Path) -> Server:
    """A server whose authority is not there."""
    return serve(
        application("tls_app"), "--acme", "a.example", "--acme-directory", "https://127.0.0.1:1/dir",
        "--acme-dir", str(directory), "--no-access-log",
    )  # fmt: skip


def shake(server: Server, name: str, *protocols: str) -> tuple[bytes, str | None, bytes]:
    """The certificate, the protocol agreed on, and what comes for a request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    with (
        socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S) as raw,
        context.wrap_socket(raw, server_hostname=name) as peer,
    ):
        shown, agreed = peer.getpeercert(binary_form=True) or b"", peer.selected_alpn_protocol()
        try:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
            return shown, agreed, peer.recv(1000)
        except (ConnectionError, ssl.SSLError):
            return shown, agreed, b""


def test_an_open_challenge_is_answered_and_nothing_else_said(
    waiting: Server, directory: Path
) -> None:
    digest = hashlib.sha256(b"token.thumbprint").digest()
    (directory / "challenges/a.example.pem").write_text(
        self_signed_certificate("a.example", digest)
    )
    shown, agreed, response = shake(waiting, "A.example", "acme-tls/1")
    assert (agreed, response) == ("acme-tls/1", b"")
    # id-pe-acmeIdentifier, critical, with an octet string in it (RFC 8737 §3).
    assert bytes.fromhex("06082b0601050507011f0101ff04220420") + digest in shown
    usual, agreed, response = shake(waiting, "a.example", "http/1.1", "acme-tls/1")
    assert (usual != shown, agreed) == (True, "http/1.1")
    assert response.startswith(b"HTTP/1.1 200")


def test_an_answer_over_clear_text_changes_no_response_over_tls(
    serve: Callable[..., Server], directory: Path, unused_port: int
) -> None:
    """HSTS is sent over TLS alone (RFC 6797 §7.2), from kept heads of responses too."""
    server = serve(
        application("tls_app"), "--acme", "a.example", "--acme-directory", "https://127.0.0.1:1/dir",
        "--acme-dir", str(directory), "--redirect-http", f"127.0.0.1:{unused_port}", "--hsts", "60",
    )  # fmt: skip
    (directory / "http-01/token").write_text("token.thumbprint")
    for _ in range(3):
        secured = shake(server, "a.example", "http/1.1")[2].lower()
        assert secured.startswith(b"http/1.1 200")
        assert b"\r\nstrict-transport-security: max-age=60\r\n" in secured
        with socket.create_connection(("127.0.0.1", unused_port), TIMEOUT_S) as peer:
            peer.sendall(
                b"GET /.well-known/acme-challenge/token HTTP/1.1\r\n"
                b"Host: a.example\r\nConnection: close\r\n\r\n"
            )
            answer = b"".join(iter(lambda: peer.recv(1000), b"")).lower()
        assert answer.startswith(b"http/1.1 200")
        assert answer.endswith(b"\r\n\r\ntoken.thumbprint")
        assert b"strict-transport-security" not in answer


@pytest.mark.parametrize("name", ["a.example", "b.example", "accounts.example"])
def test_without_a_challenge_the_handshake_fails(
    waiting: Server, directory: Path, name: str
) -> None:
    (directory / "challenges/b.example.pem").write_text(self_signed_certificate("b.example"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake(waiting, name, "acme-tls/1")
    assert shake(waiting, "a.example", "http/1.1")[2].startswith(b"HTTP/1.1 200")


def test_a_server_without_acme_agrees_on_nothing(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost")
    server = serve(application("tls_app"), "--ssl-certfile", certificate, "--ssl-keyfile", key)
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        shake(server, "localhost", "acme-tls/1")
