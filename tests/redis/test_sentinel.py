"""Sentinels: the master that they name is used, and the new one after a failover."""

from __future__ import annotations

import asyncio
import time

import pytest
from citius.redis import ConnectionLost, Redis
from redis_rig import WAIT_S, Sentinel, Server, wait_until


def test_a_failover(own_server: Server) -> None:
    replica = Server("--repl-diskless-sync-delay", "0", listens=True)
    sentinel = Sentinel(own_server)
    try:
        replica.start("--replicaof", f"127.0.0.1 {own_server.port}")
        wait_until(
            lambda: b"master_link_status:up" in replica.say("INFO", "replication"), "the replica"
        )
        sentinel.start()
        wait_until(
            lambda: str(replica.port).encode() in sentinel.say("SENTINEL", "REPLICAS", "shop"), "it"
        )

        async def main() -> None:
            url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/shop"
            async with Redis(url, timeout_s=10) as redis:
                assert await redis.set("k", "v")
                assert (await redis.info("server"))["tcp_port"] == str(own_server.port)
                while not (await redis.info("replication")).get("slave0", "").count("state=online"):
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(
                    wait_until, lambda: b"\r\nv\r\n" in replica.say("GET", "k"), "the copy"
                )
                await redis.execute("REPLICAOF", "NO", "ONE")
                own_server.stop()
                port = str(replica.port).encode()
                await asyncio.to_thread(
                    wait_until,
                    lambda: port in sentinel.say("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"),
                    "the failover",
                )
                since = time.monotonic()
                assert await redis.get("k") == b"v"
                assert time.monotonic() - since < 1
                assert await redis.set("k", "new")
            with pytest.raises(ConnectionLost, match="knows no master other"):
                await Redis(f"redis+sentinel://127.0.0.1:{sentinel.port}/other").open()

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        sentinel.remove()
        replica.remove()


def test_no_sentinel() -> None:
    async def main() -> None:
        with pytest.raises(
            ConnectionLost, match=r"master shop of 127.0.0.1:1, 127.0.0.1:2: .*; .*"
        ):
            await Redis("redis+sentinel://127.0.0.1:1,127.0.0.1:2/shop").open()

    asyncio.run(main())
