"""Connections that lead to the wrong server, or to none that responds, are given up by themselves.

The defects of the trials that these tests hold: databases D6, D10, D11, D12; hostile 14.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from citius.databases import silent
from citius.redis import ClientCache, Redis, RedisError, ServerError, WatchFailed, gather
from redis_rig import SERVER, WAIT_S, Nodes, Server, until, wait_until
from rig import free_port

SLOT = 3300  # that of {b}


async def buy(redis: Redis[bytes], key: str = "n") -> int:
    for _ in range(10):
        async with redis.watch(key) as watched:
            try:
                async with watched.transaction() as tx:
                    count = tx.incr(key)
            except WatchFailed:
                continue
            return await count
    raise AssertionError("the watch fails for ever")


async def soon(ask: Any) -> Any:
    """The result as soon as there is one in place of an error."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return await ask()
            except RedisError:
                await asyncio.sleep(0.02)  # a pause between two questions


def test_every_kind_of_connection_leaves_a_demoted_master(own_server: Server) -> None:
    """databases D6: connections for commands that wait, and for `watch`, stayed with it."""
    other = Server("--repl-diskless-sync-delay", "0", listens=True)
    try:
        other.start("--replicaof", f"127.0.0.1 {own_server.port}")
        wait_until(
            lambda: b"master_link_status:up" in other.say("INFO", "replication"), "the replica"
        )

        async def main() -> None:
            url = f"redis://127.0.0.1:{own_server.port},127.0.0.1:{other.port}"
            async with Redis(url, timeout_s=5, blocking_max=3) as redis:
                assert await buy(redis) == 1
                waiting = asyncio.ensure_future(redis.blpop("q", timeout=30))
                while (await redis.info("clients"))["blocked_clients"] != "1":
                    pass
                async with redis.watch("n") as held:
                    other.say("REPLICAOF", "NO", "ONE")
                    own_server.say("REPLICAOF", "127.0.0.1", str(other.port))
                    other.say("SET", "n", "100")
                    # No other command than those of such connections says that it is a replica now.
                    assert await soon(lambda: buy(redis)) == 101
                    with pytest.raises(RedisError):
                        async with held.transaction() as tx:
                            tx.incr("n")
                with pytest.raises(ServerError, match="UNBLOCKED"):
                    await waiting
                async with redis.watch("n") as watched:
                    assert await watched.get("n", as_=int) == 101
                other.say("RPUSH", "q", "job")
                assert await redis.blpop("q", timeout=5) == (b"q", b"job")
                assert await soon(lambda: redis.set("k", 1))

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        other.remove()


def test_a_subscription_leaves_a_demoted_master_with_a_gap(own_server: Server) -> None:
    """It stayed: what was published at the new one before the old one followed was missed silently."""
    other = Server("--repl-diskless-sync-delay", "0", listens=True)
    try:
        other.start("--replicaof", f"127.0.0.1 {own_server.port}")
        wait_until(
            lambda: b"master_link_status:up" in other.say("INFO", "replication"), "the replica"
        )

        async def main() -> None:
            gaps: list[int] = []
            url = f"redis://127.0.0.1:{own_server.port},127.0.0.1:{other.port}"
            async with (
                Redis(url) as redis,
                redis.subscribe("news", on_gap=lambda: gaps.append(1)) as messages,
            ):
                other.say("REPLICAOF", "NO", "ONE")
                other.say("PUBLISH", "news", "missed")
                own_server.say("REPLICAOF", "127.0.0.1", str(other.port))
                assert await soon(lambda: redis.set("k", 1))
                await until(lambda: bool(gaps), "the gap is told")
                other.say("PUBLISH", "news", "heard")
                async for message in messages:
                    if message.data == b"heard":
                        break
                assert b":1\r\n" in other.say("PUBSUB", "NUMSUB", "news")
                assert gaps == [1]

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        other.remove()


@pytest.mark.parametrize("is_subscribed", [False, True])
def test_what_only_reads_or_subscribes_leaves_a_demoted_master(
    own_server: Server, is_subscribed: bool
) -> None:
    """It stayed for ever: no command said that the server was a replica by now."""
    other = Server("--repl-diskless-sync-delay", "0", listens=True)
    try:
        other.start("--replicaof", f"127.0.0.1 {own_server.port}")
        wait_until(
            lambda: b"master_link_status:up" in other.say("INFO", "replication"), "the replica"
        )

        async def main() -> None:
            gaps: list[int] = []
            url = f"redis://127.0.0.1:{own_server.port},127.0.0.1:{other.port}"
            async with AsyncExitStack() as stack:
                redis = await stack.enter_async_context(Redis(url))
                if is_subscribed:
                    news = redis.subscribe("news", on_gap=lambda: gaps.append(1))
                    await stack.enter_async_context(news)
                other.say("REPLICAOF", "NO", "ONE")
                own_server.say("REPLICAOF", "127.0.0.1", str(other.port))
                if is_subscribed:
                    await until(lambda: bool(gaps), "the gap is told")
                    assert b":1\r\n" in other.say("PUBSUB", "NUMSUB", "news")
                else:
                    while (await redis.info("replication"))["role"] != "master":
                        await asyncio.sleep(0.02)  # a pause between two questions
                    assert (await redis.info("server"))["tcp_port"] == str(other.port)

        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        other.remove()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = Nodes(3)
    try:
        made.start()
        yield made
    finally:
        made.remove()


async def every_kind(redis: Redis[bytes], before: int) -> None:
    """Each kind of command on {b}n, which is a number, and on lists and streams that are nowhere."""
    assert await redis.get("{b}n", as_=int) == before
    async with redis.transaction() as tx:
        one, two = tx.incr("{b}n"), tx.get("{b}n", as_=int)
    assert (await one, await two) == (before + 1, before + 1)
    assert await redis.eval("return redis.call('INCR', KEYS[1])", ["{b}n"]) == before + 2
    assert await buy(redis, "{b}n") == before + 3
    async with redis.watch("{b}n") as watched:
        assert await watched.get("{b}n", as_=int) == before + 3
    assert await redis.blpop("{b}q", timeout=0.05) is None
    waiting = asyncio.ensure_future(redis.blpop("{b}q", timeout=10))
    await asyncio.sleep(0)
    await redis.rpush("{b}q", "job")
    assert await waiting == (b"{b}q", b"job")
    assert await redis.xread({"{b}s": "0"}, block_ms=50) == {}


@pytest.mark.parametrize("is_new", [False, True])
def test_every_kind_of_command_finds_a_slot_that_moves(nodes: Nodes, is_new: bool) -> None:
    """databases D10 and D11: ASK to a node without slots; waiting commands, watch, transactions."""
    source = nodes.owner(SLOT)
    target = nodes.add() if is_new else next(one for one in nodes.masters if one is not source)

    async def main() -> None:
        async with Redis(nodes.url, timeout_s=5) as redis:
            await redis.set("{b}n", 1)
            nodes.begin_move(SLOT, source, target, "{b}n")
            await every_kind(redis, 1)
            values = await gather(*(redis.get("{b}n", as_=int) for _ in range(50)))
            assert values == (4,) * 50
            # A session that is at the source when the key moves: nothing of it is done, and it says so.
            await redis.set("{b}n", 1)
            nodes.end_move(SLOT, target)
            await every_kind(redis, 1)
            async with redis.watch("{b}n") as watched:
                nodes.begin_move(SLOT, target, source, "{b}n")
                with pytest.raises(WatchFailed):
                    async with watched.transaction() as tx:
                        tx.incr("{b}n")
            await every_kind(redis, 4)
            nodes.end_move(SLOT, source)
            await every_kind(redis, 7)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_each_address_of_a_name_has_its_time(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """databases D12: a first address that swallows packets took the time of all."""
    # A listener whose queue is full accepts no more, and refuses none.
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
            for address in (deaf.getsockname(), ("127.0.0.1", own_server.port))
        ]

        async def main() -> None:
            loop = asyncio.get_running_loop()

            async def getaddrinfo(*_: object, **__: object) -> list[Any]:
                return found

            monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo, raising=False)
            async with Redis("redis://two.example", connect_timeout_s=1) as redis:
                assert await redis.ping()

        try:
            asyncio.run(asyncio.wait_for(main(), WAIT_S))
        finally:
            for filler in fillers:
                filler.close()


class Proxy:
    """Passes bytes on, until it swallows those of the connections that there are."""

    def __init__(self, port: int) -> None:
        self.target, self.port = port, free_port()
        self.connections = 0
        self._swallows: list[asyncio.Event] = []

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(
            *self._tasks, *(one.wait_closed() for one in self._writers), return_exceptions=True
        )

    def swallow(self) -> None:
        for one in self._swallows:
            one.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        swallows = asyncio.Event()
        self._swallows.append(swallows)
        # From here on: the end may come while the other connection is opened.
        self._writers.append(writer)
        own = asyncio.current_task()
        assert own is not None
        self._tasks.add(own)
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.append(to_writer)
        for source, sink in ((reader, to_writer), (to_reader, writer)):
            task = asyncio.create_task(self._pass(source, sink, swallows))
            self._tasks.add(task)

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, swallows: asyncio.Event
    ) -> None:
        while data := await source.read(65536):
            if not swallows.is_set():
                sink.write(data)
        sink.close()


def test_a_connection_that_is_silent_is_replaced(own_server: Server) -> None:
    """hostile 14: no other connection was tried while one acknowledged everything and passed nothing on."""

    async def main() -> None:
        async with (
            Proxy(own_server.port) as proxy,
            Redis(f"redis://127.0.0.1:{proxy.port}", timeout_s=1, blocking_max=1) as redis,
        ):
            assert await redis.set("k", "v")
            assert await buy(redis) == 1
            proxy.swallow()
            since = time.monotonic()
            assert await soon(lambda: redis.get("k")) == b"v"
            assert await soon(lambda: buy(redis)) == 2
            assert await soon(lambda: redis.blpop("none", timeout=0.01)) is None
            assert time.monotonic() - since < 15

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_server_that_is_busy_keeps_its_connections(own_server: Server) -> None:
    """One that responds to nobody is not a connection that is dead."""

    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1, connect_timeout_s=1) as redis:
            number = await redis.client_id()
            own_server.pause()
            with pytest.raises(TimeoutError):
                await redis.ping()
            await asyncio.sleep(1.5)  # longer than the other connection is tried for
            own_server.resume()
            assert await soon(redis.client_id) == number

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.parametrize("kind", ["cache", "subscription"])
def test_silence_without_commands_is_noticed(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """hostile 14: kept replies were stale up to `age_max_s`, and messages were lost without a sign."""
    monkeypatch.setattr("citius.redis.heartbeat.IDLE_S", 0.4)

    async def main() -> None:
        async with (
            Proxy(own_server.port) as proxy,
            Redis(f"redis://127.0.0.1:{own_server.port}") as other,
            Redis(
                f"redis://127.0.0.1:{proxy.port}",
                timeout_s=1,
                cache=ClientCache() if kind == "cache" else None,
            ) as redis,
        ):
            if kind == "cache":
                await other.set("k", "old")
                assert await redis.get("k") == await redis.get("k") == b"old"
                proxy.swallow()
                await other.set("k", "access revoked")
                since = time.monotonic()
                while await soon(lambda: redis.get("k")) == b"old":
                    await asyncio.sleep(0.01)  # a pause between two questions
                assert time.monotonic() - since < 20
                return
            gaps: list[int] = []
            async with redis.subscribe("news", on_gap=lambda: gaps.append(1)) as messages:
                proxy.swallow()
                await other.publish("news", "lost")
                await until(lambda: bool(gaps), "the gap is told")
                # A message that is published after on_gap is received.
                await other.publish("news", "heard")
                assert (await anext(aiter(messages))).data == b"heard"

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_loop_that_was_busy_takes_no_reply_for_late(own_server: Server) -> None:
    """hostile 11, its kind: the reply was there when the deadline had passed."""

    async def main() -> None:
        async with Redis(own_server.url, timeout_s=0.2) as redis:
            for _ in range(5):
                call = asyncio.ensure_future(redis.get("k"))
                await asyncio.sleep(0)
                time.sleep(0.3)  # the loop does other things, for longer than it has
                for _ in range(2):  # the reply has been sent before the second one of these
                    own_server.say("PING")
                assert await call is None

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.parametrize("is_named", [False, True], ids=["hosts", "addresses of a name"])
def test_a_silent_server_costs_its_time_once(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """Each new connection waited for the first of several servers, which took it and said nothing."""
    monkeypatch.setattr(silent, "_since", {})
    deaf = socket.create_server(("127.0.0.1", 0))
    deaf.setblocking(False)
    taken: list[socket.socket] = []

    def count() -> int:
        with suppress(BlockingIOError):
            while True:
                taken.append(deaf.accept()[0])
        return len(taken)

    async def main() -> None:
        loop = asyncio.get_running_loop()

        ports = (deaf.getsockname()[1], own_server.port)

        async def getaddrinfo(_host: str, port: int, **_: object) -> list[Any]:
            found = ports if is_named else (port,)
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in found
            ]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo, raising=False)
        hosts = "two.example" if is_named else ",".join(f"127.0.0.1:{port}" for port in ports)
        if is_named:
            # An attempt takes the first address that can be connected; the next attempt another one.
            with pytest.raises(RedisError, match="no response"):
                await Redis(f"redis://{hosts}", connect_timeout_s=1).open()
        async with Redis(f"redis://{hosts}", connect_timeout_s=1) as redis:
            assert count() == 1
            # Each has a connection of its own.
            waiting = [redis.blpop("q", timeout=30) for _ in range(3)]
            waiters = [asyncio.ensure_future(one) for one in waiting]
            while (await redis.info("clients"))["blocked_clients"] != "3":
                pass
            await redis.rpush("q", 1, 2, 3)
            await asyncio.gather(*waiters)
            assert count() == 1

    try:
        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        for one in (deaf, *taken):
            one.close()
