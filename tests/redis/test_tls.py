"""TLS with a server: whose certificate is taken, which certificate is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import trustme
from citius.errors import ConfigError
from citius.redis import ConnectionLost, Redis, TlsFailed, gather
from pki import Pki
from redis_rig import SERVER, Server
from rig import free_port


@pytest.fixture(scope="module")
def pki(tmp_path_factory) -> Pki:
    return Pki(trustme.CA(), tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def port(pki: Pki) -> Iterator[int]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    certificate, key = pki.issue("localhost")
    port = free_port()
    made = Server(
        "--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key,
        "--tls-ca-cert-file", pki.bundle, "--tls-auth-clients", "optional",
    )  # fmt: skip
    try:
        made.start()
        yield port
    finally:
        made.remove()


def run(url: str, **options) -> None:
    async def main() -> None:
        async with Redis(url, **options) as redis:
            text = "x" * 3_000_000
            assert await redis.set("k", text)
            assert await redis.get("k", as_=str) == text
            assert await gather(*(redis.echo(n) for n in range(100))) == tuple(
                str(n).encode() for n in range(100)
            )
            assert await redis.blpop("none", timeout=0.01) is None
            async with redis.subscribe("news") as messages:
                await redis.publish("news", "1")
                assert (await anext(aiter(messages))).data == b"1"

    asyncio.run(asyncio.wait_for(main(), 20))


def test_verified(port: int, pki: Pki) -> None:
    run(f"rediss://localhost:{port}?ssl_ca_certs={pki.bundle}")
    run(f"rediss://127.0.0.1:{port}?ssl_ca_certs={pki.bundle}&ssl_check_hostname=false")
    certificate, key = pki.issue("client")
    shown = f"ssl_certfile={certificate}&ssl_keyfile={key}"
    run(f"rediss://localhost:{port}?ssl_ca_certs={pki.bundle}&{shown}&ssl_min_version=TLSv1.3")


def test_not_verified(port: int) -> None:
    run(f"rediss://127.0.0.1:{port}?ssl_cert_reqs=none")


def test_in_threads(port: int, pki: Pki) -> None:
    with Redis(f"rediss://localhost:{port}?ssl_ca_certs={pki.bundle}").sync as redis:
        assert redis.echo("x") == b"x"


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("rediss://localhost:{port}", TlsFailed, "signed by none of the trusted authorities"),
        ("rediss://127.0.0.1:{port}?ssl_ca_certs={ca}", TlsFailed, "127.0.0.1|name"),
        ("redis://localhost:{port}", ConnectionLost, "lost|closed"),
        ("rediss://localhost:{port}?ssl_ca_certs=/nonexistent", ConfigError, "/nonexistent"),
        ("rediss://localhost:{port}?ssl_ca_certs={ca}&ssl_min_version=tls9", ConfigError, "tls"),
    ],
)
def test_what_is_refused(
    port: int, pki: Pki, url: str, error: type[Exception], message: str
) -> None:
    async def main() -> None:
        with pytest.raises(error, match=message):
            await Redis(url.format(port=port, ca=pki.bundle), connect_timeout_s=2).open()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_server_without_tls(own_server: Server, pki: Pki) -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLost):
            await Redis(
                f"rediss://localhost:{own_server.port}?ssl_ca_certs={pki.bundle}",
                connect_timeout_s=1,
            ).open()

    asyncio.run(asyncio.wait_for(main(), 20))
