"""Requests that join a value that is being made: no older state than they may get, and no error of others."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from citius.cluster import Cache
from citius.cluster.cachestores import MemoryCache, RedisCache, SharedCache
from citius.process.sharedtable import SharedTable
from engines_rig import Redis
from nodes import PATIENT_S, client, run

NO_REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")
Stores = Callable[[], Any]


@pytest.fixture(
    params=["memory", "shared", *(pytest.param(n, marks=NO_REDIS) for n in ("redis", "own-redis"))]
)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """What makes the store of a node."""
    if request.param == "memory":
        memory = MemoryCache()
        yield lambda: memory
    elif request.param == "shared":
        shared = SharedCache(SharedTable.alone(1 << 20), "p")
        yield lambda: shared
    else:
        redis = Redis(tmp_path / "redis")
        yield lambda: RedisCache(
            client(redis.url, PATIENT_S, is_own=request.param == "own-redis"), "p"
        )
        redis.close()


class Source:
    """What values are made of, and a make that waits where it is told to."""

    def __init__(self) -> None:
        self.state = 0
        self.made = 0
        self.has_read = asyncio.Event()
        self.may_end = asyncio.Event()

    async def make(self) -> int:
        state = self.state
        self.made += 1
        self.has_read.set()
        await self.may_end.wait()
        return state


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)  # the time of a round trip


CHANGES: dict[str, Callable[[Cache[int]], Awaitable[None]]] = {
    "invalidate": lambda cache: cache.invalidate("tag"),
    "delete": lambda cache: cache.delete("a"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_what_comes_after_a_change_gets_no_older_state(
    stores: Stores, change: str, where: str
) -> None:
    """Scale S5, of 10 requests that come after it has returned, on the node that makes the value."""

    async def steps() -> None:
        here: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        elsewhere: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        source = Source()
        before = asyncio.create_task(here.get_or_make("a", source.make, tags=["tag"]))
        joined = asyncio.create_task(here.get_or_make("a", source.make, tags=["tag"]))
        await source.has_read.wait()
        await turns()
        source.state = 1
        await CHANGES[change](here if where == "here" else elsewhere)
        after = [
            asyncio.create_task(here.get_or_make("a", source.make, tags=["tag"])) for _ in range(10)
        ]
        await turns()
        source.may_end.set()
        assert await before in (0, 1)
        assert await joined in (0, 1)
        assert await asyncio.gather(*after) == [1] * 10
        assert source.made == 2
        # Nor is what was made of the old state kept.
        assert await here.get_or_make("a", source.make, tags=["tag"]) == 1
        assert await elsewhere.get_or_make("a", source.make, tags=["tag"]) == 1

    run(steps)


def test_a_reply_under_way_is_no_newer_than_its_question(stores: Stores) -> None:
    """Scale S5: the entry that a flight has read before the invalidation is not what its joiners get."""

    async def steps() -> None:
        store = stores()
        here: Cache[int] = Cache(store, timeout_s=PATIENT_S, type=int)
        elsewhere: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        source = Source()
        source.may_end.set()
        assert await here.get_or_make("a", source.make, tags=["tag"]) == 0
        source.state = 1
        has_read, may_reply = asyncio.Event(), asyncio.Event()
        read = store.read

        async def slow_read(key: str, tags: Any) -> Any:
            reply = await read(key, tags)
            if not has_read.is_set():
                has_read.set()
                await may_reply.wait()
            return reply

        store.read = slow_read
        before = asyncio.create_task(here.get_or_make("a", source.make, tags=["tag"]))
        await has_read.wait()
        store.read = read
        await elsewhere.invalidate("tag")
        after = asyncio.create_task(here.get_or_make("a", source.make, tags=["tag"]))
        await turns()
        may_reply.set()
        assert await before == 0
        assert await after == 1

    run(steps)


def test_what_is_set_is_not_replaced_by_what_was_being_made(stores: Stores) -> None:
    """Scale S5: neither on the node that makes it nor elsewhere."""

    async def steps() -> None:
        for where in (0, 1):
            nodes: list[Cache[int]] = [
                Cache(stores(), timeout_s=PATIENT_S, type=int) for _ in range(2)
            ]
            key = f"key {where}"
            source = Source()
            asked = asyncio.create_task(nodes[0].get_or_make(key, source.make))
            await source.has_read.wait()
            await nodes[where].set(key, 7)
            assert await nodes[0].get(key) == await nodes[1].get(key) == 7
            source.may_end.set()
            assert await asked == 0
            for node in nodes:
                assert await node.get(key) in (7, None)

            async def again() -> int:
                return 8

            for node in nodes:
                assert await node.get_or_make(key, again) in (7, 8)

    run(steps)


def test_followers_take_over_what_fails_once_its_caller_has_left(stores: Stores) -> None:
    """Hostile 7: a make may use what ends with its request; no other request gets that error."""

    async def steps() -> None:
        cache: Cache[str] = Cache(stores(), timeout_s=PATIENT_S, type=str)
        is_open, has_begun, may_end = True, asyncio.Event(), asyncio.Event()

        async def of_the_leader() -> str:
            has_begun.set()
            await may_end.wait()
            if not is_open:
                raise RuntimeError("the session of the leader's request is closed")
            return "leader"

        async def of_a_follower() -> str:
            return "follower"

        async def lead() -> str:
            nonlocal is_open
            try:
                return await cache.get_or_make("a", of_the_leader)
            finally:
                is_open = False

        leader = asyncio.create_task(lead())
        await has_begun.wait()
        followers = [asyncio.create_task(cache.get_or_make("a", of_a_follower)) for _ in range(5)]
        await turns()
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        may_end.set()
        assert await asyncio.gather(*followers) == ["follower"] * 5

    run(steps)


def test_a_make_that_cancels_itself_is_no_end_of_others(stores: Stores) -> None:
    async def steps() -> None:
        cache: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        source = Source()

        async def fails() -> int:
            source.has_read.set()
            await source.may_end.wait()
            raise asyncio.CancelledError

        leader = asyncio.create_task(cache.get_or_make("a", fails))
        await source.has_read.wait()
        follower = asyncio.create_task(cache.get_or_make("a", source.make))
        await turns()
        source.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await leader
        assert await follower == 0

    run(steps)


def test_a_failure_is_that_of_all_whose_state_it_is_of(stores: Stores) -> None:
    async def steps() -> None:
        cache: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        source = Source()

        async def fails() -> int:
            await source.make()
            raise KeyError(source.made)

        asked = [asyncio.create_task(cache.get_or_make("a", fails)) for _ in range(5)]
        await source.has_read.wait()
        await turns()
        source.may_end.set()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(result) for result in results] == [KeyError] * 5
        assert source.made == 1

    run(steps)


def test_those_that_join_in_one_turn_read_once() -> None:
    async def steps() -> None:
        store = MemoryCache()
        cache: Cache[int] = Cache(store, timeout_s=PATIENT_S, type=int)
        source = Source()
        leader = asyncio.create_task(cache.get_or_make("a", source.make, tags=["tag"]))
        await source.has_read.wait()
        reads, read = 0, store.read

        async def counted(key: str, tags: Any) -> Any:
            nonlocal reads
            reads += 1
            return await read(key, tags)

        store.read = counted  # type: ignore[method-assign]
        asked = [
            asyncio.create_task(cache.get_or_make("a", source.make, tags=["tag"]))
            for _ in range(1000)
        ]
        await turns()
        asked[3].cancel()
        source.may_end.set()
        await leader
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert results.count(0) == 999
        assert reads == 1

    run(steps)


def test_no_older_state_and_no_error_in_a_storm(stores: Stores) -> None:
    """Scale S4, S5, hostile 7: clients that come and leave at any time, beside invalidations on two nodes."""

    async def steps() -> None:
        rng = random.Random(7)
        nodes: list[Cache[int]] = [
            Cache(stores(), timeout_s=PATIENT_S, type=int, flight_s=2) for _ in range(2)
        ]
        state = valid = 0
        served = left = 0
        is_over = False

        async def make() -> int:
            made_of = state
            await asyncio.sleep(rng.random() * 0.004)  # it takes time
            return made_of

        async def ask(node: Cache[int]) -> None:
            nonlocal served
            least = valid
            value = await node.get_or_make("a", make, tags=["tag"])
            assert value >= least, "it is of an older state than an invalidation before it came"
            served += 1

        async def clients() -> None:
            nonlocal left
            while not is_over:
                task = asyncio.create_task(ask(rng.choice(nodes)))
                if rng.random() < 0.4:
                    await asyncio.sleep(rng.random() * 0.004)  # then it leaves
                    if task.cancel():
                        left += 1
                    with suppress(asyncio.CancelledError):
                        await task
                else:
                    await task

        async def changes() -> None:
            nonlocal state, valid, is_over
            while state < 100 or served < 100 or left < 50:
                state = number = state + 1
                await rng.choice(nodes).invalidate("tag")
                valid = max(valid, number)
                await asyncio.sleep(rng.random() * 0.006)  # a pace
            is_over = True

        await asyncio.gather(changes(), *(clients() for _ in range(20)))

    run(steps)


@NO_REDIS
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loss", ["emptied", "evicted"])
def test_a_change_that_redis_has_lost_is_none_the_less(
    tmp_path: Path, change: str, loss: str
) -> None:
    """What was made of the state before a change does not come in when the change is forgotten."""
    redis = Redis(tmp_path / "redis")

    async def steps() -> None:
        direct = client(redis.url, PATIENT_S)
        store = RedisCache(direct, "p")
        here: Cache[int] = Cache(store, timeout_s=PATIENT_S, type=int)
        elsewhere: Cache[int] = Cache(
            RedisCache(client(redis.url, PATIENT_S), "p"), timeout_s=PATIENT_S, type=int
        )
        source, tags = Source(), ["tag"] if change == "invalidate" else []
        old = asyncio.ensure_future(here.get_or_make("a", source.make, tags=tags))
        await source.has_read.wait()
        source.state = 1
        await CHANGES[change](elsewhere)
        if loss == "emptied":
            await direct.pipeline([["FLUSHALL"]])
        else:
            await direct.pipeline([["DEL", "p:version:a", "p:tag:tag"]])
        source.may_end.set()
        assert await old == 0
        assert await elsewhere.get("a") is None
        assert await elsewhere.get_or_make("a", source.make, tags=tags) == 1
        assert await here.get_or_make("a", source.make, tags=tags) == 1
        assert source.made == 2

    try:
        run(steps)
    finally:
        redis.close()


@pytest.mark.parametrize("kind", ["memory", "shared"])
def test_those_that_wait_neither_shorten_nor_lengthen_the_claim_of_the_maker(kind: str) -> None:
    """A waiter that left ended the claim within a second, and each look of one made it last anew."""
    now = 0.0
    store: Any = (
        MemoryCache(clock=lambda: now)
        if kind == "memory"
        else SharedCache(SharedTable.alone(1 << 20, clock=lambda: now), "p")
    )

    async def steps() -> None:
        nonlocal now
        assert await store.claim("a", b"maker", 10)
        assert not await store.claim("a", b"waiter", 10)
        await store.release("a", b"waiter")
        now = 9.0
        assert not await store.claim("a", b"waiter", 10), "two make it"
        now = 11.0
        assert await store.claim("a", b"waiter", 10), "the claim of one that is gone does not end"
        await store.release("a", b"maker")
        assert not await store.claim("a", b"other", 10)
        await store.release("a", b"waiter")
        assert await store.claim("a", b"other", 10)

    run(steps)
