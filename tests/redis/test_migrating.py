"""Commands of several keys while their slot moves: no node can serve them until it has.

The node that has none of the keys says ASK, and the one that it names TRYAGAIN, by turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from citius.redis import NotReady, Redis, ServerError, TimedOut
from redis_rig import SERVER, WAIT_S, Nodes, Server, until

SLOT = 3300  # that of {b}
K1, K2 = "{b}1", "{b}2"
# What a client counted as one redirection after the other, until it raised what the node had said.
MANY = 40
# TimedOut where the reply to the last attempt is late: the machine may be busy.
UNSERVED = (NotReady, TimedOut)


@pytest.fixture(scope="module")
def started() -> Iterator[Nodes]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = Nodes(3)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def nodes(started: Nodes) -> Iterator[Nodes]:
    yield started
    # Of a test that has failed while it moved the slot, too.
    for server in started.masters:
        server.say("FLUSHALL")
    started.end_move(SLOT, started.owner(SLOT))


def ends(nodes: Nodes) -> tuple[Server, Server]:
    """The node that has the slot, and another one."""
    source = nodes.owner(SLOT)
    return source, next(one for one in nodes.masters if one is not source)


def errors(server: Server, code: str) -> int:
    """How often a server has sent this error."""
    said = server.say("INFO", "errorstats").decode()
    _, _, count = said.partition(f"errorstat_{code}:count=")
    return int(count.split("\r")[0]) if count else 0


async def transact(redis: Redis[bytes]) -> Any:
    async with redis.transaction() as tx:
        one, two = tx.incr(K1), tx.incr(K2)
    return [await one, await two]


async def watch(redis: Redis[bytes]) -> Any:
    async with redis.watch(K1, K2) as watched:
        async with watched.transaction() as tx:
            call = tx.mget(K1, K2)
        return await call


async def in_a_thread(redis: Redis[bytes]) -> Any:
    return await asyncio.to_thread(lambda: redis.sync.mget(K1, K2))


COPY = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])"
KINDS: dict[str, tuple[Callable[[Redis[bytes]], Awaitable[Any]], Any]] = {
    "mget": (lambda redis: redis.mget(K1, K2), [None, None]),
    "mset": (lambda redis: redis.mset({K1: 5, K2: 6}), True),
    "msetnx": (lambda redis: redis.msetnx({K1: 5, K2: 6}), True),
    "exists": (lambda redis: redis.exists(K1, K2), 0),
    "execute": (lambda redis: redis.execute("SUNION", K1, K2), set()),
    "transaction": (transact, [1, 1]),
    "watch": (watch, [None, None]),
    "eval": (lambda redis: redis.eval(COPY, [K1, K2], [7]), None),
    "script": (lambda redis: redis.register_script(COPY)([K1, K2], [7]), None),
    "blocking": (lambda redis: redis.blpop([K1, K2], timeout=0.05), None),
    "sync": (in_a_thread, [None, None]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_sent_again_until_the_slot_has_moved(nodes: Nodes, kind: str) -> None:
    ask, expected = KINDS[kind]
    source, target = ends(nodes)

    async def main() -> None:
        async with Redis(nodes.url, timeout_s=WAIT_S) as redis:
            await redis.delete(K1, K2)
            before = errors(source, "ASK")
            nodes.begin_move(SLOT, source, target)
            waiting = asyncio.ensure_future(ask(redis))
            await until(
                lambda: waiting.done() or errors(source, "ASK") >= before + MANY,
                "it is asked for again",
            )
            assert not waiting.done(), waiting
            nodes.end_move(SLOT, target)
            found = await waiting
            assert found == expected
            await redis.delete(K1, K2)

    asyncio.run(asyncio.wait_for(main(), 2 * WAIT_S))


@pytest.mark.parametrize("kind", KINDS)
def test_its_time_ends_it_with_an_error_that_says_why(nodes: Nodes, kind: str) -> None:
    ask, expected = KINDS[kind]
    source, target = ends(nodes)

    async def main() -> None:
        async with Redis(nodes.url, timeout_s=1) as redis:
            await redis.delete(K1, K2)
            nodes.begin_move(SLOT, source, target)
            with pytest.raises(UNSERVED, match="TRYAGAIN|ASK") as raised:
                await ask(redis)
            if isinstance(raised.value, NotReady):
                assert raised.value.code in ("TRYAGAIN", "ASK")
                assert "was not done" in str(raised.value)
            nodes.end_move(SLOT, target)
            # It was not done: it has the same result now.
            assert await ask(redis) == expected
            await redis.delete(K1, K2)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_keys_of_both_nodes(nodes: Nodes) -> None:
    source, target = ends(nodes)

    async def main() -> None:
        async with Redis(nodes.url, timeout_s=1) as redis:
            await redis.mset({K1: 1, K2: 2})
            nodes.begin_move(SLOT, source, target, K1)
            assert await redis.get(K1) == b"1"
            with pytest.raises(UNSERVED, match="TRYAGAIN"):
                await redis.mget(K1, K2)
            async with redis.transaction() as tx:
                calls = [tx.incr(K1)]
            assert await calls[0] == 2
            with pytest.raises(UNSERVED):
                async with redis.transaction() as tx:
                    calls = [tx.incr(K1), tx.incr(K2)]
            for call in calls:
                with pytest.raises(UNSERVED):
                    await call
            with pytest.raises(UNSERVED, match="TRYAGAIN"):
                async with redis.watch(K1, K2):
                    pass
            # A connection of its own is to one node, and says what that says.
            async with redis.connection(K1) as connection:
                with pytest.raises(ServerError) as raised:
                    await connection.get(K1)
                assert raised.value.code == "ASK"
            source.say("MIGRATE", "127.0.0.1", str(target.port), K2, "0", "5000")
            nodes.end_move(SLOT, target)
            assert await redis.mget(K1, K2, as_=int) == [2, 2]
            await redis.delete(K1, K2)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
