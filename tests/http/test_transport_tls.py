"""TLS of calls: who a server may be, and what happens when it is another. Cases of badssl.com."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from citius._core import HttpOrigin
from citius.http import errors
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from http_peer import FIVE, OK, Peer, Talk, answering, get, run, server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from citius.http.transport import Pool


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def test_a_server_that_an_authority_vouches_for(authority: trustme.CA, bundle: str) -> None:
    names: list[str | None] = []
    context = server(authority.issue_cert("localhost", "127.0.0.1"))
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with Peer(answering(), tls=context) as peer:

        async def work(pool: Pool) -> None:
            for host in ("localhost", "127.0.0.1"):
                reply = await get(pool, peer.origin(host=host))
                assert reply.body == b"ok"
                reply = await get(pool, peer.origin(host=host))
                assert reply.connection_reused

        run(work, verify=bundle)
        assert peer.accepted == 2
    assert names == ["localhost", None], "an address is no name to be indicated (RFC 6066 §3)"


def test_the_system_s_authorities_are_those_of_ssl_cert_file(
    authority: trustme.CA, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    with Peer(answering(), tls=server(authority.issue_cert("localhost"))) as peer:

        async def work(pool: Pool) -> None:
            assert (await get(pool, peer.origin(host="localhost"))).body == b"ok"

        run(work)


EXPIRED = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def common_name_only(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("other.example", common_name="localhost")


UNTRUSTED: dict[str, tuple[Callable[[trustme.CA], trustme.LeafCert], str]] = {
    "another authority": (lambda _: trustme.CA().issue_cert("localhost"), "authorities"),
    "another name": (lambda it: it.issue_cert("other.example"), "another name"),
    "common name only": (common_name_only, "another name"),
    "wildcard of another level": (lambda it: it.issue_cert("*.localhost"), "another name"),
    "expired": (lambda it: it.issue_cert("localhost", not_after=EXPIRED), "expired"),
}


@pytest.mark.parametrize("case", UNTRUSTED)
def test_a_server_that_is_not_trusted(case: str, authority: trustme.CA, bundle: str) -> None:
    make, what = UNTRUSTED[case]
    reached = threading.Event()

    def act(talk: Talk) -> None:
        if talk.request():
            reached.set()

    with Peer(act, tls=server(make(authority))) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(errors.TlsError, match=what):
                await get(pool, peer.origin(host="localhost"))
            assert pool.stats()["open"] == 0

        run(work, verify=bundle)
    assert not reached.is_set()


def test_verification_can_be_left_out(authority: trustme.CA) -> None:
    with Peer(answering(), tls=server(authority.issue_cert("other.example"))) as peer:

        async def work(pool: Pool) -> None:
            assert (await get(pool, peer.origin(host="localhost"))).body == b"ok"

        run(work, verify=False)


def test_the_name_may_be_another_than_the_host(authority: trustme.CA, bundle: str) -> None:
    with Peer(answering(), tls=server(authority.issue_cert("shop.example"))) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin(host="localhost", sni="shop.example")
            assert (await get(pool, origin)).body == b"ok"

        run(work, verify=bundle)


def pin_of(certificate: trustme.LeafCert) -> str:
    made = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes())
    key = made.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(key).hexdigest()


@pytest.mark.parametrize("is_verified", [True, False])
def test_a_key_can_be_pinned(is_verified: bool, authority: trustme.CA, bundle: str) -> None:
    own, other = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    verify: Any = bundle if is_verified else False
    with Peer(answering(), tls=server(own)) as peer:

        async def works(pool: Pool) -> None:
            assert (await get(pool, peer.origin(host="localhost"))).body == b"ok"

        async def fails(pool: Pool) -> None:
            with pytest.raises(errors.TlsError, match="pinned"):
                await get(pool, peer.origin(host="localhost"))

        run(works, verify=verify, pins=(pin_of(other), pin_of(own)))
        run(fails, verify=verify, pins=(pin_of(other),))


@pytest.mark.parametrize("shows", [True, False])
def test_a_server_that_wants_a_certificate(
    shows: bool, authority: trustme.CA, bundle: str, tmp_path: Path
) -> None:
    context = server(authority.issue_cert("localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    certificate, key = tmp_path / "client.pem", tmp_path / "client-key.pem"
    made = authority.issue_cert("client.example")
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.touch(0o600)
    key.write_bytes(made.private_key_pem.bytes())
    with Peer(answering(), tls=context) as peer:

        async def work(pool: Pool) -> None:
            if shows:
                assert (await get(pool, peer.origin(host="localhost"))).body == b"ok"
            else:
                with pytest.raises(errors.RequestError):
                    await get(pool, peer.origin(host="localhost"))

        run(work, verify=bundle, cert=(str(certificate), str(key)) if shows else None)


def test_sessions_are_resumed(authority: trustme.CA, bundle: str) -> None:
    resumed: list[bool] = []

    def act(talk: Talk) -> None:
        made: Any = talk.socket
        talk.request()
        resumed.append(made.session_reused)
        talk.say(OK)

    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer:

        async def work(pool: Pool) -> None:
            for _ in range(3):
                assert (await get(pool, peer.origin(host="localhost"))).body == b"ok"
                async with asyncio.timeout(5):
                    while pool.stats()["open"]:
                        await asyncio.sleep(0.005)

        run(work, verify=bundle)
    assert resumed == [False, True, True]


def test_a_handshake_that_is_under_way_ends_with_the_client(bundle: str) -> None:
    """Its connection was open until the time for it was over, or for ever where the loop had ended."""

    def silent(talk: Talk) -> None:
        while talk.socket.recv(65536):
            pass

    with Peer(silent) as peer:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin("https", "127.0.0.1", peer.port)
            calls = [
                asyncio.ensure_future(get(pool, origin, deadlines=(None, None, None, None, None)))
                for _ in range(3)
            ]
            async with asyncio.timeout(20):
                while peer.open < 3:
                    await asyncio.sleep(0.01)
                await pool.close()
                found = await asyncio.gather(*calls, return_exceptions=True)
                assert {type(one) for one in found} == {errors.ClientClosed}
                while peer.open:
                    await asyncio.sleep(0.01)
            assert pool.stats()["connecting"] == 0

        # With HTTP/2 offered, the others wait until it is known what is spoken.
        run(work, verify=bundle, h2="never")


def test_a_handshake_has_the_time_of_connecting(bundle: str) -> None:
    done = threading.Event()

    def act(talk: Talk) -> None:
        done.wait(10)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin("https", "localhost", peer.port)
            with pytest.raises(errors.ConnectTimeout, match=r"within 0.2 s"):
                await get(pool, origin, deadlines=(0.2, None, None, None, None))
            assert pool.stats() == {"open": 0, "idle": 0, "connecting": 0, "waiting": 0}

        run(work, verify=bundle)
        done.set()


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28"]
)
def test_a_server_that_does_not_speak_tls(said: bytes, bundle: str) -> None:
    def act(talk: Talk) -> None:
        talk.socket.recv(10)
        talk.say(said)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(errors.TlsError):
                await get(pool, HttpOrigin("https", "localhost", peer.port))

        run(work, verify=bundle)


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_cut_that_tls_does_not_announce_is_no_end(
    is_announced: bool, authority: trustme.CA, bundle: str
) -> None:
    """Content that ends with the connection is complete only if TLS ends before it (RFC 9112 §9.8)."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        if is_announced:
            made: Any = talk.socket
            made.unwrap()

    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer:

        async def work(pool: Pool) -> None:
            if is_announced:
                assert (await get(pool, peer.origin(host="localhost"))).body == b"half"
            else:
                with pytest.raises(errors.ReadError, match="closed in the body"):
                    await get(pool, peer.origin(host="localhost"))

        run(work, verify=bundle)


@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
def test_content_both_ways(size: int, authority: trustme.CA, bundle: str) -> None:
    def act(talk: Talk) -> None:
        while request := talk.request():
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(request[1]))
            talk.say(request[1])

    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer:

        async def work(pool: Pool) -> None:
            content = bytes(range(256)) * (size // 256 + 1)
            content = content[:size]
            origin = peer.origin(host="localhost")
            reply = await pool.send(origin, "POST", "/", [], content, False, FIVE)
            assert reply.body == content

        run(work, verify=bundle)
