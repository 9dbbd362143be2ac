"""Threads, greenlets, goroutines and other loops: the same commands wait there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from citius.errors import ChannelMisuse
from citius.go import chan, go
from citius.redis import ClientClosed, CommandLost, Message, Redis, TimedOut, WatchFailed, WrongType
from redis_rig import Server, opened


def test_a_plain_program(server: Server) -> None:
    """No event loop: the client has one in a thread of its own."""
    with Redis(server.url) as redis:
        redis.flushall().wait()
        assert redis.set("k", "v").wait() is True
        assert redis.get("k").wait() == b"v"
        with pytest.raises(WrongType):
            redis.lpush("k", 1).wait()
        with redis.transaction() as tx:
            total = tx.incr("n")
        assert total.wait() == 1
        with redis.watch("n") as watched:
            redis.incr("n").wait()
            with pytest.raises(WatchFailed), watched.transaction() as tx:
                tx.incr("n")
        with redis.connection() as connection:
            connection.execute("SELECT", 1).wait()
            assert connection.get("k").wait() is None
        assert redis.register_script("return KEYS[1]")(["x"]).wait() == b"x"
        assert list(redis.scan(match="k")) == [b"k"]
        assert redis.blpop("none", timeout=0.01).wait() is None
        with redis.subscribe("news") as messages:
            redis.publish("news", "1").wait()
            assert next(iter(messages)) == Message("news", b"1")
        names = {thread.name for thread in threading.enumerate()}
        assert "citius.redis" in names
    with pytest.raises(ClientClosed):
        redis.get("k").wait()
    with pytest.raises(ClientClosed):
        redis.ping()


def test_many_threads(server: Server) -> None:
    with Redis(server.url) as redis, ThreadPoolExecutor(16) as pool:
        def ask(number: int) -> None:
            for n in range(50):
                assert redis.echo(f"{number}:{n}").wait() == f"{number}:{n}".encode()

        list(pool.map(ask, range(16)))


def test_goroutines(server: Server) -> None:
    with Redis(server.url) as redis:
        found = chan(10)
        for number in range(10):
            go(lambda number=number: found.send(redis.echo(number).wait()))
        assert sorted(found.recv()[0] for _ in range(10)) == [str(n).encode() for n in range(10)]


@opened
async def test_threads_of_an_asyncio_program(redis) -> None:
    """The loop carries the bytes, and threads wait for it."""
    texts = [f"text {number}" for number in range(100)]
    found = await asyncio.gather(
        *(asyncio.to_thread(lambda text=text: redis.echo(text).wait()) for text in texts)
    )
    assert found == [text.encode() for text in texts]

    def watch() -> int:
        with redis.watch("n") as watched:
            with watched.transaction() as tx:
                call = tx.incr("n")
            return call.wait()

    assert await asyncio.to_thread(watch) == 1


@opened
async def test_waiting_on_a_loop_is_refused(redis) -> None:
    with pytest.raises(ChannelMisuse, match="use `await`"):
        redis.get("k").wait()
    for enter in (redis.transaction(), redis.watch("k"), redis.subscribe("k"), Redis()):
        with pytest.raises(ChannelMisuse, match="async with"):
            enter.__enter__()
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
    with Redis(own_server.url, timeout_s=0.2) as redis:
        own_server.pause()
        with pytest.raises(TimedOut):
            redis.ping().wait()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(redis.ping().wait)
            own_server.resume()
            assert waiting.result(10) in (True,)


def test_a_killed_server_ends_the_waits_of_threads(own_server: Server) -> None:
    with Redis(own_server.url) as redis, ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(lambda: redis.blpop("none").wait()) for _ in range(4)]
        while redis.info("clients").wait()["blocked_clients"] != "4":
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

with Redis(sys.argv[1]) as redis:
    redis.flushall().wait()
    found = []

    def ask(number):
        for n in range(20):
            assert redis.echo(f"{number}:{n}").wait() == f"{number}:{n}".encode()
        found.append(number)

    waiting = gevent.spawn(lambda: redis.blpop("queue").wait())
    jobs = [gevent.spawn(ask, number) for number in range(50)]
    gevent.joinall(jobs, raise_error=True)
    assert sorted(found) == [*range(50)]
    redis.rpush("queue", "a").wait()
    assert waiting.get() == (b"queue", b"a")
    with redis.subscribe("news") as messages:
        redis.publish("news", "1").wait()
        assert next(iter(messages)) == Message("news", b"1")
    killed = gevent.spawn(lambda: redis.blpop("queue").wait())
    while redis.info("clients").wait()["blocked_clients"] != "1":
        pass
    killed.kill()
    while redis.info("clients").wait()["blocked_clients"] != "0":
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
        [sys.executable, "-c", GREENLETS, server.url], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "fine\n", done.stderr
