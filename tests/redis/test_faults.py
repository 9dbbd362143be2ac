"""A server that is killed, restarted, stalls, refuses, or is none: clear errors, and it goes on."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from pathlib import Path

import pytest
from citius.redis import (
    CommandLost,
    ConnectionLost,
    LoginRefused,
    NotReady,
    OutOfMemory,
    ProtocolError,
    ReadOnly,
    Redis,
    RedisError,
    TimedOut,
    gather,
)
from redis_rig import WAIT_S, Server, opened, until


def test_killed_and_restarted(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=20) as redis:
            await redis.set("k", 1)
            waiting = asyncio.ensure_future(redis.blpop("none"))
            while (await redis.info("clients"))["blocked_clients"] != "1":
                pass
            own_server.pause()
            calls = [asyncio.ensure_future(redis.incr("k")) for _ in range(5)]
            await asyncio.sleep(0.05)  # they have left by then
            own_server.stop()
            results = await asyncio.gather(*calls, waiting, return_exceptions=True)
            assert {type(result) for result in results} == {CommandLost}
            assert "may have been done or not" in str(results[0])
            # What is asked for now waits for the server.
            late = asyncio.ensure_future(redis.incr("n"))
            await asyncio.to_thread(own_server.start)
            since = time.monotonic()
            assert await late == 1
            assert time.monotonic() - since < 5
            assert await gather(*(redis.incr("n") for _ in range(10))) == tuple(range(2, 12))

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@opened
async def test_one_connection_is_killed(redis) -> None:
    for _ in range(5):
        with pytest.raises(ConnectionLost):
            while True:
                await redis.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
        assert await redis.ping()


def test_a_server_that_is_away_is_waited_for_and_no_longer(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            own_server.stop()
            await until(lambda: redis.connections == 0, "the connection is lost")
            with pytest.raises(TimedOut, match=r"within 1 s; .*(refused|Connect call failed)"):
                await redis.get("k")
            assert redis.queued == 0
            await asyncio.to_thread(own_server.start)
            await until(lambda: redis.connections == 1, "a new connection")
            assert await redis.ping()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_server_that_never_responds(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "r"))
            listener.listen()
            with pytest.raises(ConnectionLost, match="no response within 0.1 s"):
                await Redis(f"unix://{tmp_path}/r", connect_timeout_s=0.1).open()

    asyncio.run(main())


def test_no_server() -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLost, match="/nonexistent: No such file"):
            await Redis("unix:///nonexistent").open()
        with pytest.raises(ConnectionError, match=r"127.0.0.1:1: .*(refused|Connect call failed)"):
            await Redis("redis://127.0.0.1:1").open()
        with pytest.raises(ConnectionLost, match="nowhere.invalid:6379"):
            await Redis("redis://nowhere.invalid").open()

    asyncio.run(main())


def test_logins(own_server: Server) -> None:
    own_server.say("CONFIG", "SET", "requirepass", "p: w")
    own_server.say("AUTH", "p: w")
    at = f"127.0.0.1:{own_server.port}"

    async def main() -> None:
        with pytest.raises(LoginRefused, match="asks for a password"):
            await Redis(f"redis://{at}").open()
        with pytest.raises(LoginRefused, match="WRONGPASS"):
            await Redis(f"redis://:wrong@{at}").open()
        with pytest.raises(LoginRefused, match="WRONGPASS"):
            await Redis(f"redis://nobody:wrong@{at}").open()
        async with Redis(f"redis://:p%3A%20w@{at}/2?client_name=shop") as redis:
            assert (await redis.client_list())[0]["name"] == "shop"
            assert (await redis.client_list())[0]["db"] == "2"
            await redis.execute(
                "ACL", "SETUSER", "reader", "on", ">secret", "+@read", "+select", "~*"
            )
            with pytest.raises(LoginRefused, match="DB index is out of range"):
                await Redis(f"redis://:p%3A%20w@{at}/99").open()
        async with Redis(f"redis://reader:secret@{at}") as redis:
            assert await redis.get("k") is None
            with pytest.raises(RedisError, match="NOPERM"):
                await redis.set("k", 1)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_password_that_changes_is_a_clear_error_and_no_end(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.config_set({"requirepass": "new"})
            with pytest.raises(ConnectionLost):
                while True:
                    await redis.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
            with pytest.raises(TimedOut, match="asks for a password"):
                await redis.ping()
            async with Redis(f"redis://:new@127.0.0.1:{own_server.port}") as admin:
                await admin.config_set({"requirepass": ""})
            await until(lambda: redis.connections == 1, "a new connection")
            assert await redis.ping()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_too_many_clients(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.config_set({"maxclients": 1})
            with pytest.raises(RedisError, match="max number of clients reached"):
                await Redis(own_server.url).open()
            # Commands that need another connection fail, and the others go on.
            with pytest.raises(TimedOut, match="max number of clients"):
                await redis.blpop("none", timeout=0.1)
            await redis.config_set({"maxclients": 100})
            assert await redis.blpop("none", timeout=0.01) is None

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@opened
async def test_a_server_without_memory(redis) -> None:
    await redis.config_set({"maxmemory": 1})
    with pytest.raises(OutOfMemory):
        await redis.set("k", 1)
    async with redis.watch("k") as watched:
        with pytest.raises(OutOfMemory):
            async with watched.transaction() as tx:
                tx.set("k", 1)
    await redis.config_set({"maxmemory": 0})
    assert await redis.set("k", 1)


def test_a_server_that_loads_its_data(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=20) as redis:
            await redis.execute("DEBUG", "POPULATE", 300_000)
            await redis.execute("SAVE")
        own_server.stop()
        await asyncio.to_thread(
            own_server.start,
            "--key-load-delay",
            "20",
            "--loading-process-events-interval-bytes",
            "1024",
        )
        async with Redis(own_server.url) as redis:
            with pytest.raises(NotReady, match="LOADING") as caught:
                await redis.get("key:1")
            assert caught.value.status_code == 503
            assert await redis.info("persistence")

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_server_that_is_busy_with_a_script(own_server: Server) -> None:
    own_server.say("CONFIG", "SET", "busy-reply-threshold", "50")

    async def main() -> None:
        async with Redis(own_server.url) as redis:
            endless = asyncio.ensure_future(redis.eval("while true do end"))
            await asyncio.sleep(0)
            with pytest.raises(NotReady, match="BUSY"):
                async with Redis(own_server.url) as other:
                    while True:
                        await other.get("k")
            own_server.say("SCRIPT", "KILL")
            with pytest.raises(RedisError, match="killed by user"):
                await endless
            assert await redis.ping()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_read_only_replica(own_server: Server, server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url) as redis:
            await redis.set("k", 1)
            await redis.execute("REPLICAOF", "127.0.0.1", 1)
            assert await redis.get("k") == b"1"
            with pytest.raises(ReadOnly):
                await redis.set("k", 2)
            # The connection is made again: the name may lead to the new master by now.
            await redis.execute("REPLICAOF", "NO", "ONE")
            assert await redis.set("k", 3)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_of_several_servers_the_master_is_taken(own_server: Server) -> None:
    replica = Server(listens=True)
    try:
        replica.start("--replicaof", f"127.0.0.1 {own_server.port}")

        async def main() -> None:
            url = f"redis://127.0.0.1:1,127.0.0.1:{replica.port},127.0.0.1:{own_server.port}"
            async with Redis(url) as redis:
                assert redis.server.role == "master"
                assert await redis.set("k", 1)

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        replica.remove()


def test_shut_down_in_an_orderly_way(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.ping()
            await asyncio.to_thread(own_server.stop, signal.SIGTERM)
            with pytest.raises((ConnectionLost, TimedOut)):
                await redis.ping()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


HELLO = (
    b"%3\r\n$7\r\nversion\r\n$1\r\n7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
    b"+OK\r\n+OK\r\n"
)
GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nothing": b"",
    "resp2": b"-ERR unknown command 'HELLO'\r\n",
    "noise": b"\0\1\2\3\4",
    "a reply too many": HELLO + b":1\r\n",
    "a length that is none": HELLO + b"$x\r\n",
    "a line without end": HELLO + b"+" + b"x" * 100_000,
    "nested deep": HELLO + b"*1\r\n" * 100_000,
    "a string of 4 GB": HELLO + b"$4294967295\r\n",
    "more than a reply may have": HELLO + b"*4000000000\r\n" + b"_\r\n" * 6_000_000,
    "pushes without end": HELLO + b">2\r\n+news\r\n$5\r\nhello\r\n" * 100_000 + b"!",
    "half a hello": HELLO[:20],
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_responds_is_no_redis(tmp_path: Path, garbage: bytes) -> None:
    async def main() -> None:
        async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4096)
            writer.write(garbage)
            try:
                await writer.drain()
                await reader.read(1)
            except ConnectionError:
                pass
            writer.close()

        async with await asyncio.start_unix_server(respond, tmp_path / "r"):
            redis = Redis(f"unix://{tmp_path}/r", timeout_s=0.5, connect_timeout_s=0.5)
            with pytest.raises((ProtocolError, ConnectionLost, LoginRefused, TimedOut)):
                async with redis:
                    while True:
                        await redis.ping()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
