"""Sentinels: the master that they name is used, and the new one after a failover."""

from __future__ import annotations

import asyncio
import time

import pytest
from citius.redis import CommandLost, ConnectionLost, Redis
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
            async with Redis(url, timeout_s=WAIT_S) as redis:
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
                assert time.monotonic() - since < 5
                assert await redis.set("k", "new")
            with pytest.raises(ConnectionLost, match="knows no master other"):
                await Redis(f"redis+sentinel://127.0.0.1:{sentinel.port}/other").open()

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        sentinel.remove()
        replica.remove()


def test_a_sentinel_with_a_password_of_its_own(own_server: Server) -> None:
    sentinel = Sentinel(own_server, "--requirepass", "its own")

    async def main() -> None:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/shop"
        with pytest.raises(ConnectionLost, match="sentinel_password=… in the query of the URL"):
            await Redis(url).open()
        with pytest.raises(ConnectionLost, match="WRONGPASS"):
            await Redis(f"{url}?sentinel_password=other").open()
        for login in ("", "sentinel_username=default&"):
            async with Redis(f"{url}?{login}sentinel_password=its%20own") as redis:
                assert await redis.set("k", "v")

    try:
        sentinel.start()
        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        sentinel.remove()


def test_a_master_that_is_replaced_on_purpose_gets_no_more_commands(own_server: Server) -> None:
    """Sentinels leave it a master for some eight seconds: what it confirmed meanwhile was lost."""
    replica = Server("--repl-diskless-sync-delay", "0", listens=True)
    sentinel = Sentinel(own_server)
    try:
        replica.start("--replicaof", f"127.0.0.1 {own_server.port}")
        sentinel.start()
        known = f"name\r\n$15\r\n127.0.0.1:{replica.port}".encode()
        wait_until(lambda: known in sentinel.say("SENTINEL", "REPLICAS", "shop"), "the replica")

        async def main() -> None:
            url = f"redis+sentinel://127.0.0.1:{sentinel.port}/shop"
            async with Redis(url, timeout_s=WAIT_S) as redis:
                waiting = asyncio.ensure_future(redis.blpop("q", timeout=0))
                async with redis.watch("k") as watched:
                    await asyncio.to_thread(
                        wait_until,
                        lambda: sentinel.say("SENTINEL", "FAILOVER", "shop") == b"+OK\r\n",
                        "the failover",
                    )
                    while (await redis.info("server"))["tcp_port"] != str(replica.port):
                        await asyncio.sleep(0.01)  # a pause between two questions
                    assert b"role:master" in own_server.say("INFO", "replication")
                    with pytest.raises(ConnectionLost):
                        async with watched.transaction() as tx:
                            tx.set("k", "lost")
                with pytest.raises(CommandLost):
                    await waiting
                assert await redis.set("k", "new")
                assert b"new" in replica.say("GET", "k")

        asyncio.run(asyncio.wait_for(main(), 2 * WAIT_S))
    finally:
        sentinel.remove()
        replica.remove()


class Stale:
    """A sentinel that knows the master of long ago."""

    def __init__(self, port: int) -> None:
        self._port = str(port).encode()
        self._tasks: list[asyncio.Task[None] | None] = []

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*filter(None, self._tasks))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.current_task())
        while line := await reader.readline():
            words: list[bytes] = []
            for _ in range(int(line[1:])):
                await reader.readline()
                words.append((await reader.readline()).strip())
            if words[0] == b"HELLO":
                writer.write(b"%3\r\n+version\r\n+7.0.0\r\n+mode\r\n+sentinel\r\n+proto\r\n:3\r\n")
            elif words[0] == b"SENTINEL":
                writer.write(b"*2\r\n+127.0.0.1\r\n+%b\r\n" % self._port)
            elif words[0] == b"SUBSCRIBE":
                writer.write(b">3\r\n+subscribe\r\n+%b\r\n:1\r\n" % words[1])
            else:
                writer.write(b"+OK\r\n")
        writer.close()


def test_a_sentinel_that_names_a_replica_is_believed_no_more(own_server: Server) -> None:
    """One that had been cut off: its client wrote to a replica for ever, and read what was old."""
    replica = Server("--repl-diskless-sync-delay", "0", listens=True)
    try:
        replica.start("--replicaof", f"127.0.0.1 {own_server.port}")
        wait_until(
            lambda: b"master_link_status:up" in replica.say("INFO", "replication"), "the replica"
        )

        async def main() -> None:
            async with Stale(replica.port) as stale, Stale(own_server.port) as right:
                with pytest.raises(ConnectionLost, match="it is a replica"):
                    await Redis(f"redis+sentinel://{stale}/shop").open()
                async with Redis(f"redis+sentinel://{right},{stale}/shop") as redis:
                    assert await redis.set("k", "v")
                async with Redis(f"redis+sentinel://{stale},{right}/shop") as redis:
                    assert await redis.set("k", "v")

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        replica.remove()


def test_no_sentinel() -> None:
    async def main() -> None:
        with pytest.raises(
            ConnectionLost, match=r"master shop of 127.0.0.1:1, 127.0.0.1:2: .*; .*"
        ):
            await Redis("redis+sentinel://127.0.0.1:1,127.0.0.1:2/shop").open()

    asyncio.run(main())
