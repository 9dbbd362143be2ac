"""Engines over TLS: with an authority of one's own, and not with another one."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
import trustme
from citius.cluster.natslog import NatsLog
from citius.cluster.redisclient import RedisPy
from citius.cluster.redislog import RedisLog
from engines_rig import Nats, Redis
from nodes import Node, client, run, until

pytest.importorskip("redis.asyncio", reason="redis-py is not installed")
pytest.importorskip("nats", reason="nats-py is not installed")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A certificate for localhost, its authority, and another authority."""
    ca = trustme.CA()
    issued = ca.issue_cert("localhost", "127.0.0.1")
    found = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "other", "cert", "key")}
    ca.cert_pem.write_to_path(found["ca"])
    trustme.CA().cert_pem.write_to_path(found["other"])
    issued.private_key_pem.write_to_path(found["key"])
    issued.cert_chain_pems[0].write_to_path(found["cert"])
    return found


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis(tmp_path: Path, files: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    redis = Redis(
        tmp_path / "redis", "--tls-port", str(port), "--tls-cert-file", files["cert"], "--tls-key-file",
        files["key"], "--tls-ca-cert-file", files["ca"], "--tls-auth-clients", "no",
    )  # fmt: skip

    def log(authority: str) -> RedisLog:
        url = f"rediss://localhost:{port}?ssl_ca_certs={files[authority]}"
        made: RedisPy = client(url)
        return RedisLog(made, "citius:test")

    async def steps() -> None:
        async with Node(log("ca"), ["a"]) as one, Node(log("ca"), ["a"]) as two:
            one.rooms["a"].send("hello")
            await until(lambda: two.rooms["a"].got == ["hello"])
            stranger = Node(log("other"), ["a"])
            await stranger.cluster.start(0.05)
            await until(lambda: stranger.stats.outages == 1)
            assert not stranger.stats.is_connected
            await stranger.cluster.stop()

    try:
        run(steps)
    finally:
        redis.close()


@pytest.mark.skipif(Nats.program() is None, reason="nats-server is not installed")
def test_nats(tmp_path: Path, files: dict[str, str]) -> None:
    options = ["--tls", "--tlscert", files["cert"], "--tlskey", files["key"]]
    nats = Nats(tmp_path / "nats", *options)

    def log(authority: str) -> NatsLog:
        return NatsLog([f"tls://localhost:{nats.port}?ssl_ca_certs={files[authority]}"], "test")

    async def steps() -> None:
        async with Node(log("ca"), ["a"]) as one, Node(log("ca"), ["a"]) as two:
            one.rooms["a"].send("hello")
            await until(lambda: two.rooms["a"].got == ["hello"])
            stranger = Node(log("other"), ["a"])
            await stranger.cluster.start(0.05)
            await until(lambda: stranger.stats.outages == 1)
            assert not stranger.stats.is_connected
            await stranger.cluster.stop()

    try:
        run(steps)
    finally:
        nats.close()
