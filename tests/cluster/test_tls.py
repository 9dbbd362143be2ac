"""Engines over TLS: with an authority of one's own, and not with another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from citius.cluster.natslog import NatsLog
from citius.cluster.redislog import RedisLog
from engines_rig import Nats, certificates, redis_over_tls
from nodes import Node, client, run, until

pytest.importorskip("nats", reason="nats-py is not installed")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return certificates(tmp_path)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis(tmp_path: Path, files: dict[str, str]) -> None:
    redis, port = redis_over_tls(tmp_path / "redis", files)

    def log(authority: str) -> RedisLog:
        url = f"rediss://localhost:{port}?ssl_ca_certs={files[authority]}"
        return RedisLog(client(url), "citius:test")

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
