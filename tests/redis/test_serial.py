"""Threads, greenlets, goroutines and other loops: the same commands wait there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from citius import serial
from citius.errors import ChannelMisuse
from citius.go import chan, go
from citius.redis import ClientClosed, CommandLost, Message, Redis, TimedOut, WatchFailed, WrongType
from redis_rig import Server, opened


def test_a_plain_program(server: Server) -> None:
    """No event loop: the client has one in a thread of its own."""
    client = Redis(server.url)
    with client.sync as redis:
        redis.flushall()
        assert redis.set("k", "v") is True
        assert redis.get("k") == b"v"
        assert client.get("k").wait() == b"v"
        with pytest.raises(WrongType):
            redis.lpush("k", 1)
        with redis.transaction() as tx:
            total = tx.incr("n")
        assert total.wait() == 1
        with redis.watch("n") as watched:
            assert watched.get("n", as_=int) == 1
            redis.incr("n")
            with pytest.raises(WatchFailed), watched.transaction() as tx:
                tx.incr("n")
        with redis.connection() as connection:
            connection.execute("SELECT", 1)
            assert connection.get("k") is None
            assert connection.register_script("return KEYS[1]")(["x"]) == b"x"
        assert redis.register_script("return KEYS[1]")(["x"]) == b"x"
        assert list(redis.scan(match="k")) == [b"k"]
        redis.hset("h", mapping={"a": 1})
        assert list(redis.hscan("h")) == [(b"a", b"1")]
        assert redis.set_msgpack("m", [1]) is True
        assert redis.get_msgpack("m", as_=list[int]) == [1]
        assert redis.blpop("none", timeout=0.01) is None
        with redis.subscribe("news") as messages:
            redis.publish("news", "1")
            assert next(iter(messages)) == Message("news", b"1")
        names = {thread.name for thread in threading.enumerate()}
        assert "citius.redis" in names
    with pytest.raises(ClientClosed):
        client.get("k").wait()
    # The first call opens it again.
    assert redis.get("k") == b"v"
    redis.close()
    redis.close()


def test_serial_handlers_of_the_loop_that_opened_it(server: Server) -> None:
    pytest.importorskip("greenlet")

    def takes(client: Redis, key: str) -> tuple[bytes, bytes] | None:
        return client.sync.blpop(key, timeout=20)

    def gives(client: Redis, key: str) -> int:
        redis = client.sync
        with redis.transaction() as tx:
            total = tx.rpush(key, key)
        assert redis.set(f"{key}:done", 1) is True
        with redis.subscribe("news") as messages:
            redis.publish("news", key)
            next(iter(messages))
        return total.wait()

    def fails(client: Redis, key: str) -> None:
        client.sync.lpush(f"{key}:done", 1)

    async def main() -> None:
        async with Redis(server.url) as client:
            await client.flushall()
            taken = [
                asyncio.ensure_future(serial.carried(takes)(client, f"k{n}")) for n in range(20)
            ]
            await asyncio.sleep(0)
            # Those that take wait in greenlets of this thread: it goes on.
            given = await asyncio.gather(
                *(serial.carried(gives)(client, f"k{n}") for n in range(20))
            )
            assert given == [1] * 20
            pairs = [(f"k{n}".encode(), f"k{n}".encode()) for n in range(20)]
            assert await asyncio.gather(*taken) == pairs
            with pytest.raises(WrongType):
                await serial.carried(fails)(client, "k0")

    asyncio.run(main())


def test_a_server_that_is_away(server: Server) -> None:
    redis = Redis("unix:///nonexistent").sync
    for _ in range(2):
        with pytest.raises(ConnectionError, match="No such file"):
            redis.get("k")


def test_many_threads(server: Server) -> None:
    with Redis(server.url).sync as redis, ThreadPoolExecutor(16) as pool:

        def ask(number: int) -> None:
            for n in range(50):
                assert redis.echo(f"{number}:{n}") == f"{number}:{n}".encode()

        list(pool.map(ask, range(16)))


def test_threads_that_open_it_at_the_same_time(server: Server) -> None:
    redis = Redis(server.url).sync
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(redis.echo, range(8))) == [str(n).encode() for n in range(8)]
    redis.close()


def test_goroutines(server: Server) -> None:
    with Redis(server.url).sync as redis:
        found = chan(10)
        for number in range(10):
            go(lambda number=number: found.send(redis.echo(number)))
        assert sorted(found.recv()[0] for _ in range(10)) == [str(n).encode() for n in range(10)]


def test_a_fork(server: Server) -> None:
    """A client that was opened before a fork is the parent's."""
    with Redis(server.url).sync as redis:
        assert redis.ping()
        child = os.fork()
        if child == 0:
            try:
                redis.ping()
            except RuntimeError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert redis.ping()


@opened
async def test_threads_of_an_asyncio_program(redis) -> None:
    """The loop carries the bytes, and threads wait for it."""
    texts = [f"text {number}" for number in range(100)]
    found = await asyncio.gather(*(asyncio.to_thread(redis.sync.echo, text) for text in texts))
    assert found == [text.encode() for text in texts]

    def watch() -> int:
        with redis.sync.watch("n") as watched:
            with watched.transaction() as tx:
                call = tx.incr("n")
            return call.wait()

    assert await asyncio.to_thread(watch) == 1


@opened
async def test_waiting_on_a_loop_is_refused(redis) -> None:
    with pytest.raises(ChannelMisuse, match="use `await`"):
        redis.get("k").wait()
    with pytest.raises(ChannelMisuse, match="use `await`"):
        redis.sync.get("k")
    for enter in (redis.transaction(), redis.watch("k"), redis.subscribe("k")):
        with pytest.raises(ChannelMisuse, match="async with"):
            enter.__enter__()
    with pytest.raises(ChannelMisuse, match="await redis"):
        Redis().sync.get("k")
    with pytest.raises(ChannelMisuse, match="await redis.close"):
        redis.sync.close()
    assert await redis.ping()


@opened
async def test_another_loop_in_another_thread(redis) -> None:
    """Its tasks await the same client; the replies come through its own loop."""

    async def ask() -> list[bytes]:
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.02):
                await redis.blpop("none")
        return [await redis.echo(number) for number in range(20)]

    found = await asyncio.to_thread(asyncio.run, ask())
    assert found == [str(number).encode() for number in range(20)]


def test_deadlines_and_lost_connections_reach_threads(own_server: Server) -> None:
    with Redis(own_server.url, timeout_s=1).sync as redis:
        own_server.pause()
        with pytest.raises(TimedOut):
            redis.ping()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(redis.ping)
            own_server.resume()
            assert waiting.result(10) is True


def test_a_killed_server_ends_the_waits_of_threads(own_server: Server) -> None:
    with Redis(own_server.url).sync as redis, ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(redis.blpop, "none") for _ in range(4)]
        while redis.info("clients")["blocked_clients"] != "4":
            pass
        own_server.stop()
        for one in waiting:
            with pytest.raises(CommandLost):
                one.result(10)


GREENLETS = """
import os, sys
from gevent import monkey
monkey.patch_all()
import gevent
from citius.redis import Redis, Message

with Redis(sys.argv[1]).sync as redis:
    redis.flushall()
    found = []

    def ask(number):
        for n in range(20):
            assert redis.echo(f"{number}:{n}") == f"{number}:{n}".encode()
        found.append(number)

    waiting = gevent.spawn(lambda: redis.blpop("queue"))
    jobs = [gevent.spawn(ask, number) for number in range(50)]
    gevent.joinall(jobs, raise_error=True)
    assert sorted(found) == [*range(50)]
    redis.rpush("queue", "a")
    assert waiting.get() == (b"queue", b"a")
    with redis.subscribe("news") as messages:
        redis.publish("news", "1")
        assert next(iter(messages)) == Message("news", b"1")
    killed = gevent.spawn(lambda: redis.blpop("queue"))
    while redis.info("clients")["blocked_clients"] != "1":
        pass
    killed.kill()
    while redis.info("clients")["blocked_clients"] != "0":
        pass
    with redis.watch("n") as watched:
        with watched.transaction() as tx:
            call = tx.incr("n")
        assert call.wait() == 1
    import threading
    assert "citius.redis" not in {thread.name for thread in threading.enumerate()}
print("fine")
"""


def test_greenlets_without_a_server(server: Server) -> None:
    """gevent's hub carries the bytes; no thread is made."""
    pytest.importorskip("gevent")
    done = subprocess.run(
        [sys.executable, "-c", GREENLETS, server.url],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr
