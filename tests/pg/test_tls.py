"""TLS with a server: every sslmode, whose certificate is taken, proofs that are bound to the channel."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import trustme
from citius import pg
from citius.errors import ConfigError
from citius.pg.dsn import parse
from pg_rig import APP, Server, get
from pki import Pki
from rig import wait_for

FACTS = """SELECT s.ssl, coalesce(s.version, ''), coalesce(s.client_dn, '') FROM pg_stat_ssl s
           WHERE pid = pg_backend_pid()"""


@pytest.fixture(scope="module")
def pki(tmp_path_factory) -> Pki:
    return Pki(trustme.CA(), tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def secured(binaries, pki) -> Iterator[Server]:
    """It wants TLS of some roles, and none of one."""
    made = Server(binaries)
    try:
        made.secure(*pki.issue("localhost"), pki.bundle)
        made.trust(
            "hostssl all tester 127.0.0.1/32 trust",
            "hostssl all guarded 127.0.0.1/32 scram-sha-256",
            "hostssl all shown 127.0.0.1/32 cert",
            "hostnossl all clear 127.0.0.1/32 trust",
            "host all either 127.0.0.1/32 trust",
        )
        made.start()
        asyncio.run(prepare(made))
        yield made
    finally:
        made.remove()


async def prepare(made: Server) -> None:
    async with pg.Pool(made.dsn, size=1) as pool:
        for role in ("shown", "clear", "either"):
            await pool.execute(f"CREATE ROLE {role} LOGIN")
        await pool.execute("CREATE ROLE guarded LOGIN PASSWORD 'secret'")


def facts(secured: Server, more: str, host: str = "localhost") -> tuple[bool, str, str]:
    dsn = f"hostaddr=127.0.0.1 host={host} port={secured.port} user=tester dbname=postgres {more}"

    async def main() -> tuple[bool, str, str]:
        async with pg.Pool(dsn, size=1) as pool:
            rows = await pool.fetch("SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g")
            assert len(rows) == 5000
            text = "y" * 3_000_000
            assert await pool.fetch_value("SELECT $1::text", text) == text
            return await pool.fetch_one(FACTS)

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("mode", ["allow", "prefer", "require", "verify-ca", "verify-full"])
def test_modes(secured, pki, mode: str) -> None:
    is_secure, version, _ = facts(secured, f"sslmode={mode} sslrootcert={pki.bundle}")
    assert (is_secure, version) == (True, "TLSv1.3")


@pytest.mark.parametrize(
    ("mode", "user", "is_secure"),
    [
        ("allow", "either", False),
        ("prefer", "either", True),
        ("disable", "either", False),
        ("disable", "clear", False),
        ("prefer", "clear", False),
    ],
)
def test_modes_that_leave_it_to_the_server(secured, mode: str, user: str, is_secure: bool) -> None:
    assert facts(secured, f"sslmode={mode} user={user}")[0] is is_secure


@pytest.mark.parametrize(
    ("mode", "user"), [("disable", "tester"), ("require", "clear"), ("disable", "shown")]
)
def test_a_server_that_wants_the_opposite(secured, mode: str, user: str) -> None:
    with pytest.raises(pg.InvalidPassword, match=r"pg_hba\.conf"):
        facts(secured, f"sslmode={mode} user={user}")


def test_whose_certificate_and_for_which_name(secured, pki, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    for mode in ("verify-ca", "verify-full", "require"):
        with pytest.raises(pg.TlsFailed, match="none of the trusted authorities"):
            facts(secured, f"sslmode={mode} sslrootcert={other}")
    assert facts(secured, f"sslmode=verify-ca sslrootcert={pki.bundle}", "elsewhere")[0]
    for host in ("elsewhere", "127.0.0.1"):
        with pytest.raises(pg.TlsFailed, match="another name"):
            facts(secured, f"sslmode=verify-full sslrootcert={pki.bundle}", host)
    # What is not verified may be anyone's, as with libpq.
    assert facts(secured, f"sslmode=prefer sslrootcert={other}", "elsewhere")[0]
    with pytest.raises(ConfigError, match="cannot read the certificate"):
        facts(secured, f"sslmode=verify-full sslrootcert={tmp_path}/missing")


def test_a_client_certificate(secured, pki, tmp_path: Path) -> None:
    certificate, key = pki.issue("shown", file="client")
    base = f"sslmode=require user=shown sslrootcert={pki.bundle}"
    assert "CN=shown" in facts(secured, f"{base} sslcert={certificate} sslkey={key}")[2]
    with pytest.raises(pg.InvalidPassword, match="certificate"):
        facts(secured, base)
    stranger = Pki(trustme.CA(), tmp_path)
    certificate, key = stranger.issue("shown")
    with pytest.raises(pg.SessionLost):
        facts(secured, f"{base} sslcert={certificate} sslkey={key}")


def test_versions(secured) -> None:
    assert facts(secured, "ssl_min_protocol_version=TLSv1.3")[1] == "TLSv1.3"
    asyncio.run(set_version(secured, "TLSv1.2"))
    try:
        assert facts(secured, "sslmode=require")[1] == "TLSv1.2"
        with pytest.raises(pg.TlsFailed):
            facts(secured, "sslmode=require ssl_min_protocol_version=TLSv1.3")
    finally:
        asyncio.run(set_version(secured, "TLSv1.3"))


async def set_version(secured: Server, version: str) -> None:
    async with pg.Pool(secured.dsn, size=1) as pool:
        await pool.execute(f"ALTER SYSTEM SET ssl_max_protocol_version = '{version}'")
        await pool.execute("SELECT pg_reload_conf()")
        while await pool.fetch_value("SHOW ssl_max_protocol_version") != version:
            await asyncio.sleep(0.01)  # a look at a condition


def test_a_proof_that_is_bound_to_the_channel(secured) -> None:
    base = "user=guarded password=secret"
    assert facts(secured, f"{base} sslmode=require channel_binding=require")[0]
    assert facts(secured, f"{base} sslmode=require channel_binding=disable")[0]
    assert facts(secured, f"{base} sslmode=require")[0]
    with pytest.raises(pg.InvalidPassword):
        facts(secured, "user=guarded password=wrong sslmode=require")
    # Nothing to bind: trust, and a Unix socket.
    for dsn in (
        "sslmode=require channel_binding=require",
        "sslmode=disable user=either channel_binding=require",
    ):
        with pytest.raises(pg.ProtocolError, match="channel_binding=require"):
            facts(secured, dsn)


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def relaying(serve) -> AsyncIterator[int]:
    """A port at which ``serve`` is called for each connection; all have ended when it is left."""
    tasks = []

    async def connected(reader, writer) -> None:
        tasks.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            await shut(writer)

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as listener:
        yield listener.sockets[0].getsockname()[1]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)


def test_one_in_between_cannot_pass_a_bound_proof_on(secured, tmp_path: Path) -> None:
    """It has a certificate of its own, which is not verified, and begins TLS anew towards the server."""
    stranger = Pki(trustme.CA(), tmp_path)
    outer = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    outer.load_cert_chain(*stranger.issue("localhost"))
    inner = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    inner.check_hostname, inner.verify_mode = False, ssl.CERT_NONE
    request = bytes.fromhex("0000000804d2162f")

    async def pump(reader, writer) -> None:
        while data := await reader.read(4096):
            writer.write(data)

    async def pass_on(reader, writer) -> None:
        assert await reader.readexactly(8) == request
        writer.write(b"S")
        await writer.start_tls(outer)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", secured.port)
        try:
            far_writer.write(request)
            assert await far_reader.readexactly(1) == b"S"
            await far_writer.start_tls(inner)
            pumps = [pump(reader, far_writer), pump(far_reader, writer)]
            done = [asyncio.ensure_future(each) for each in pumps]
            await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.cancel()
        finally:
            await shut(far_writer)

    async def main(more: str) -> object:
        async with relaying(pass_on) as port:
            dsn = f"host=127.0.0.1 port={port} dbname=postgres sslmode=require {more}"
            async with pg.Pool(dsn, size=1) as pool:
                return await pool.fetch_value("SELECT 1")

    assert asyncio.run(main("user=either")) == 1
    with pytest.raises(pg.ServerError, match="channel binding"):
        asyncio.run(main("user=guarded password=secret"))


def test_what_is_sent_behind_the_servers_consent_in_plain_text_is_not_taken() -> None:
    """A response that was slipped in before the handshake is no part of the session (CVE-2021-23222)."""
    ready = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"

    async def serve(reader, writer) -> None:
        await reader.readexactly(8)
        writer.write(b"S" + ready)
        await reader.read()

    async def main() -> None:
        async with relaying(serve) as port:
            with pytest.raises(pg.TlsFailed):
                await pg.Pool(f"host=127.0.0.1 port={port} user=u sslmode=require", size=1).open()

    asyncio.run(main())


def test_a_server_without_tls(own_server) -> None:
    own_server.stop()
    own_server.listen()
    own_server.trust("host all all 127.0.0.1/32 trust")
    own_server.start()
    assert facts(own_server, "sslmode=prefer")[0] is False
    with pytest.raises(pg.SessionLost, match="does not speak TLS"):
        facts(own_server, "sslmode=require")


def test_statements_are_cancelled_over_tls(secured) -> None:
    async def main() -> None:
        dsn = f"host=127.0.0.1 port={secured.port} user=tester dbname=postgres sslmode=require"
        async with pg.Pool(dsn, size=1) as pool:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await pool.fetch("SELECT pg_sleep(120)")
            assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 20) == 1

    asyncio.run(main())


def test_requests_over_tls(serve, secured, pki) -> None:
    dsn = (
        f"host=localhost hostaddr=127.0.0.1 port={secured.port} user=tester dbname=postgres "
        f"sslmode=verify-full sslrootcert={pki.bundle}"
    )
    serving = serve(APP, "--workers", "1", env={"DSN": dsn})
    assert get(serving, "/one/5") == (200, b'{"id":5,"name":"n5"}')
    assert get(serving, "/big") == (200, b'{"same":true}')
    assert get(serving, "/several") == (200, b"[0,1,2,3,4,5]")
    assert set(msgspec.json.decode(get(serving, "/carried")[1])) == {True}
    wait_for(lambda: get(serving, "/reattach")[0] == 200, "a session that changes hands")
    assert get(serving, "/one/6") == (200, b'{"id":6,"name":"n6"}')
    assert serving.stop() == 0
    assert "at the end: alive" in serving.err


@pytest.mark.parametrize(
    ("dsn", "why"),
    [
        ("sslmode=strict", "sslmode is one of"),
        ("sslmode=verify-full", "sslrootcert=FILE"),
        ("sslmode=verify-ca sslrootcert=system", "verify-full is needed"),
        ("sslnegotiation=direct", "sslmode=require or stronger"),
        ("sslcert=/x", "without sslkey"),
        ("sslcrl=/x", "not supported"),
        ("channel_binding=perhaps", "channel_binding is one of"),
    ],
)
def test_settings_that_cannot_be(dsn: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(f"user=u {dsn}", {})


def test_settings_that_libpq_finds_in_the_home_directory(tmp_path: Path) -> None:
    directory = tmp_path / ".postgresql"
    directory.mkdir()
    for name in ("root.crt", "postgresql.crt", "postgresql.key"):
        (directory / name).touch()
    rules = parse("user=u sslmode=require", {"HOME": str(tmp_path)}).tls
    assert rules.verification == "authority"
    assert rules.authorities == (f"{directory}/root.crt",)
    assert rules.identity == (f"{directory}/postgresql.crt", f"{directory}/postgresql.key")
    assert parse("user=u sslmode=require", {}).tls.verification == "off"
    assert parse("user=u sslmode=verify-full sslrootcert=system", {}).tls.authorities
