"""Client certificates over QUIC: who is known, and that no session ticket brings back who is not any more.

The rules are those of TLS over TCP (``tests/tls/test_certificates.py``); handshakes and tickets of QUIC take
another way through the server (``crates/citius-tls/src/quic.rs``).
"""

# pyright: basic

from __future__ import annotations

import asyncio
import datetime
import json
from pathlib import Path

import pytest
import trustme
from h3peer import Broken, configuration, h3_client
from pki import Pki, revocation_list
from rig import Server


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    (tmp_path / "pki").mkdir()
    return Pki(trustme.CA(), tmp_path / "pki")


class Shown:
    """A client with a certificate, or without, and the last ticket that it got."""

    def __init__(self, server: Server, *files: str) -> None:
        self.server, self.files, self.ticket = server, files, None

    async def about(self, ticket=None) -> dict:
        """What the server knows of it.

        Raises:
            Broken, ConnectionError: It is refused.
        """
        config = configuration(session_ticket=ticket)
        if self.files:
            config.load_cert_chain(*self.files)
        tickets = []
        async with h3_client(self.server, config, take_ticket=tickets.append) as client:
            found = json.loads((await client.get("/about")).body)
        self.ticket = tickets[-1]
        return found

    async def is_refused(self, ticket=None) -> bool:
        """Whether it is not served."""
        try:
            await self.about(ticket)
        except (Broken, ConnectionError):
            return True
        return False

    async def until_refused(self, ticket=None) -> None:
        """Wait until it is not served any more."""
        async with asyncio.timeout(40):
            while not await self.is_refused(ticket):
                await asyncio.sleep(0.05)  # a look at a condition


def test_clients_show_theirs(serve_h3, pki: Pki) -> None:
    server = serve_h3("--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle)
    stranger = Pki(trustme.CA(), pki.directory)

    async def main() -> None:
        alice = Shown(server, *pki.issue("alice@example.org", file="alice"))
        about = await alice.about()
        assert "CN=alice@example.org" in about["client_name"]
        assert about["chain"]
        assert about["resumed"] is False
        again = await alice.about(alice.ticket)
        assert again["resumed"] is True
        assert again["client_name"] == about["client_name"]
        assert await Shown(server).is_refused()
        other = Shown(server, *stranger.issue("alice@example.org", file="other"))
        assert await other.is_refused()

    asyncio.run(main())


def test_expired_ones_do_not_return_with_a_session(serve_h3, pki: Pki) -> None:
    server = serve_h3("--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle)
    # Time for the handshakes below on a busy machine; after it the test waits for the end.
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=8)
    made = pki.ca.issue_cert("alice@example.org", not_after=end)
    shown = pki.directory / "short-lived.pem"
    shown.write_bytes(made.private_key_and_cert_chain_pem.bytes())

    async def main() -> None:
        alice = Shown(server, str(shown), str(shown))
        assert (await alice.about())["resumed"] is False
        first = alice.ticket
        assert (await alice.about(first))["resumed"] is True
        second = alice.ticket
        await alice.until_refused()
        for ticket in (first, second):
            assert await alice.is_refused(ticket)

    asyncio.run(main())


def test_revoked_ones_are_refused_and_so_are_their_sessions(serve_h3, pki: Pki) -> None:
    alice, bob = (pki.issue(f"{who}@example.org", file=who) for who in ("alice", "bob"))
    crl = revocation_list(pki)
    server = serve_h3(
        "--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle, "--ssl-crl", crl
    )  # fmt: skip

    async def main() -> None:
        one, other = Shown(server, *alice), Shown(server, *bob)
        assert (await one.about())["resumed"] is False
        ticket = one.ticket
        assert (await one.about(ticket))["resumed"] is True
        revocation_list(pki, alice[0])
        await one.until_refused(ticket)
        assert await one.is_refused()
        assert not await other.is_refused()

    asyncio.run(main())
