"""A real authority on this machine: Pebble, with a DNS server whose names all lead here."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path

import trustme
from cryptography import x509
from rig import TIMEOUT_S, free_port, wait_for

TOOLS = Path(__file__).parents[1] / ".tools"
REFUSED = "refused.example"
"""The authority issues nothing for this name."""


class Pebble:
    """The authority: it looks for domains at ports of ours, and nowhere else.

    Args:
        validity_s: Of the certificates that it issues.
        bound_to: Key identifier and key (base64url) that new accounts have to be bound to.
    """

    def __init__(
        self,
        directory: Path,
        validity_s: int = 90 * 24 * 3600,
        bound_to: tuple[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.https, self.http, dns, self._listen, self._manage = (free_port() for _ in range(5))
        ca = trustme.CA()
        ca.cert_pem.write_to_path(str(directory / "ca.pem"))
        own = ca.issue_cert("localhost", "127.0.0.1")
        own.cert_chain_pems[0].write_to_path(str(directory / "pebble.pem"))
        own.private_key_pem.write_to_path(str(directory / "pebble-key.pem"))
        config = {
            "pebble": {
                "listenAddress": f"127.0.0.1:{self._listen}",
                "managementListenAddress": f"127.0.0.1:{self._manage}",
                "certificate": str(directory / "pebble.pem"),
                "privateKey": str(directory / "pebble-key.pem"),
                "httpPort": self.http,
                "tlsPort": self.https,
                "domainBlocklist": [REFUSED],
                "externalAccountBindingRequired": bound_to is not None,
                "externalAccountMACKeys": dict([bound_to] if bound_to else []),
                "profiles": {"default": {"description": "of tests", "validityPeriod": validity_s}},
            }
        }
        (directory / "pebble.json").write_text(json.dumps(config))
        self._dns = _start(
            "pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver",
            f"127.0.0.1:{dns}", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "",
            "-management", "",
        )  # fmt: skip
        self._pebble = _start(
            "pebble", "-config", str(directory / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}",
            PEBBLE_VA_NOSLEEP="1", PEBBLE_WFE_NONCEREJECT="20", PEBBLE_AUTHZREUSE="0",
        )  # fmt: skip
        wait_for(self.is_there, "Pebble")

    @property
    def url(self) -> str:
        """Of its directory."""
        return f"https://localhost:{self._listen}/dir"

    @property
    def options(self) -> list[str]:
        """What a server needs to have certificates of it."""
        return [
            "--acme-directory", self.url, "--acme-ca-certs", str(self.directory / "ca.pem"),
            "--acme-dir", str(self.directory / "acme"), "--port", str(self.https),
        ]  # fmt: skip

    def is_there(self) -> bool:
        """Whether it answers."""
        with suppress(OSError):
            self._get(self.url)
            return True
        return False

    def root(self) -> str:
        """The certificate at the end of all chains that it issues."""
        return self._get(f"https://localhost:{self._manage}/roots/0").decode()

    def _get(self, url: str) -> bytes:
        context = ssl.create_default_context(cafile=str(self.directory / "ca.pem"))
        with urllib.request.urlopen(url, context=context, timeout=TIMEOUT_S) as response:
            return response.read()

    def shown(self, name: str) -> bytes:
        """The certificate that the server presents for a name; its signature is not verified."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return self._shown(name, context)

    def issuer(self, name: str) -> str:
        """The common name of what has signed the certificate that is shown for a name."""
        return x509.load_der_x509_certificate(self.shown(name)).issuer.rfc4514_string()

    def verified(self, name: str) -> bytes:
        """The certificate that is shown for a name, to a client that trusts this authority."""
        return self._shown(name, ssl.create_default_context(cadata=self.root()))

    def _shown(self, name: str, context: ssl.SSLContext) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", self.https), TIMEOUT_S) as raw,
            context.wrap_socket(raw, server_hostname=name) as peer,
        ):
            return peer.getpeercert(binary_form=True) or b""

    def pause(self) -> None:
        """Let it take connections and answer nothing."""
        self._pebble.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it; it may have been ended."""
        for process in (self._pebble, self._dns):
            process.kill()
            process.wait()


def _start(name: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [TOOLS / name, *arguments],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
