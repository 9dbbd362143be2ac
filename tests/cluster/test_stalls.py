"""An event loop that stands still is no outage of the engine, nor is one slow reply. What an outage costs."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time

import pytest
from citius import App
from citius.cluster import Cluster, Lock, LockLost, LockTaken, Stats
from citius.cluster.engines import EngineRefused
from citius.cluster.outage import Asker, Away, Health, all_given_back
from citius.cluster.patience import Patience
from citius.cluster.redissessions import RedisStore
from citius.redis import Redis as OwnClient
from citius.testing import AsyncClient
from citius.web.middleware import RateLimit
from engines_rig import Redis
from nodes import client, run
from virtual_time import VirtualLoop

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)


def stand_still(seconds: float) -> None:
    """A handler that keeps the event loop."""
    time.sleep(seconds)  # it stands for work, and keeps this thread


@pytest.mark.parametrize("is_own", [False, True], ids=["url", "client"])
def test_a_loop_that_stands_still_is_no_outage(redis: Redis, *, is_own: bool) -> None:
    """Hostile 11: of all sessions that are read beside turns of 0.8 s, none gets a 503."""
    stats = Stats()

    async def steps() -> None:
        store = RedisStore(client(redis.url, is_own=is_own), stats=stats, timeout_s=0.5)
        await store.save("a", b"1", 60)
        for turns in range(5):
            # It stands still at each turn of a command in its turn, before and after it is sent.
            readers = [asyncio.create_task(store.load("a")) for _ in range(4)]
            for _ in range(turns):
                await asyncio.sleep(0)  # a turn
            stand_still(0.8)
            assert await asyncio.gather(*readers) == [b"1"] * 4

    run(steps)
    assert stats.seam_outages == 0


def test_a_deadline_counts_the_time_in_which_the_loop_runs() -> None:
    """Hostile 11: it does end, a little late for each turn that was slow."""

    async def steps() -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(TimeoutError):
            async with Patience(0.1):
                await asyncio.get_running_loop().create_future()
        assert 0.1 <= loop.time() - begun < 5

        replied = loop.create_future()
        loop.call_later(0.3, replied.set_result, "late")
        async with Patience(0.1):
            loop.call_soon(stand_still, 0.4)
            assert await replied == "late"

        with pytest.raises(TimeoutError):
            async with Patience(0.05):
                while True:
                    await asyncio.sleep(0)  # each turn of this loop is slow
                    stand_still(0.03)

        # It cancels what is in it, and passes on the cancellation of others.
        async def wait() -> None:
            async with Patience(60):
                await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)  # it begins
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(steps())


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def _reply() -> int:
    return 1


def test_a_single_slow_reply_is_no_outage() -> None:
    """Hostile 11: two in a row are; commands that were under way with the first are not the second."""

    async def steps() -> None:
        stats, health = Stats(), Health()
        one, two = (Asker(what, 0.1, 60, stats=stats, health=health) for what in ("a", "b"))
        for _ in range(3):
            results = await asyncio.gather(
                *(asker.ask(_never) for asker in (one, two, one, two)), return_exceptions=True
            )
            assert all(isinstance(result, Away) for result in results)
            assert stats.seam_outages == 0
            assert await two.ask(_reply) == 1
        for asker in (one, two):
            with pytest.raises(Away):
                await asker.ask(_never)
        assert two.is_away
        # From then on no seam of this engine asks.
        for asker in (one, two):
            with pytest.raises(Away):
                await asker.ask(_reply)
        assert (stats.seam_outages, stats.seams_away) == (2, 2)

    asyncio.run(steps())


def test_what_is_refused_to_one_seam_is_no_outage_of_the_others() -> None:
    async def steps() -> None:
        health = Health()
        one, two = (Asker(what, retry_s=60, health=health) for what in ("a", "b"))

        async def refuse() -> None:
            raise EngineRefused("OOM command not allowed")

        with pytest.raises(Away):
            await one.ask(refuse)
        with pytest.raises(Away):
            await one.ask(_reply)
        assert await two.ask(_reply) == 1

    asyncio.run(steps())


@pytest.mark.parametrize("is_own", [False, True], ids=["url", "client"])
def test_a_page_of_five_seams_waits_once(redis: Redis, *, is_own: bool) -> None:
    """Scale S11: half a second at most for all of them, and nothing for the next request."""

    async def steps() -> None:
        cluster = Cluster(OwnClient(redis.url) if is_own else redis.url, start_wait_s=0.1)
        app = App(cluster=cluster)
        store = cluster.sessions(when_down="empty")
        buckets = cluster.buckets(when_down="allow")
        cache = cluster.cache("c", type=str)
        online = cluster.presence("p")
        lock = cluster.lock("l")
        assert buckets is not None

        async def make() -> str:
            return "made"

        @app.get("/")
        async def page() -> float:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            await buckets.take(b"a", 1_000_000_000, 1)  # type: ignore[union-attr]
            await store.load("a")  # type: ignore[misc]
            assert await cache.get_or_make("a", make) == "made"
            await online.members()
            try:
                async with lock.hold(wait_s=0):
                    pass
            except LockTaken:
                pass
            return loop.time() - begun

        async with AsyncClient(app) as asked:
            await asked.get("/")
            redis.hang()
            first = (await asked.get("/")).json()
            second = (await asked.get("/")).json()
            redis.go_on()
        assert 0.3 < first < 1.0
        assert second < 0.3

    asyncio.run(steps())


class HungLocks:
    """Locks of an engine that hangs once they are taken."""

    is_renewed = True

    async def take(self, name: str, token: bytes, ttl_s: float) -> int:
        return 1

    async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
        await _never()
        return True

    async def release(self, name: str, token: bytes) -> None:
        await _never()


def test_locks_that_are_released_one_after_the_other_wait_once() -> None:
    loop, asker = VirtualLoop(), Asker("locks")

    async def steps() -> None:
        locks = [Lock(HungLocks(), name, asker=asker) for name in "abcd"]
        async with contextlib.AsyncExitStack() as stack:
            for lock in locks:
                await stack.enter_async_context(lock.hold())
            begun = loop.time()
        assert loop.time() - begun < 0.51
        # The engine gets them back all the same, for as long as they last.
        await all_given_back()

    loop.run_until_complete(steps())
    loop.close()


def test_limits_hold_on_each_server_while_redis_is_away(redis: Redis) -> None:
    """Decided: a limit does not fail open. It is what one server admits, and that is counted."""

    async def steps() -> None:
        cluster = Cluster(redis.url, start_wait_s=0.1)
        app = App(cluster=cluster)
        app.middleware(
            RateLimit(3, 3600, key=lambda request: "all", store=cluster.buckets(), name="fallback")
        )
        app.get("/")(lambda: "x")
        async with AsyncClient(app) as asked:
            assert [(await asked.get("/")).status_code for _ in range(2)] == [200] * 2
            assert cluster.stats.limits_without_engine == 0
            redis.kill()
            said = [(await asked.get("/")).status_code for _ in range(20)]
            assert said == [200] * 3 + [429] * 17
            assert cluster.stats.limits_without_engine == 20

    asyncio.run(steps())


def test_a_lock_whose_reply_comes_late_ends_before_that_of_the_engine() -> None:
    """Its time was counted from the reply, the engine's from the question: two nodes could have it."""

    class Slow:
        is_renewed = True
        taken_at = 0.0

        async def take(self, name: str, token: bytes, ttl_s: float) -> int | None:
            self.taken_at = asyncio.get_running_loop().time()
            await asyncio.sleep(0.3)  # the reply is under way
            return 1

        async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
            await asyncio.sleep(3600)  # the engine is away
            return True

        async def release(self, name: str, token: bytes) -> None: ...

    async def steps() -> None:
        store = Slow()
        with pytest.raises(LockLost):
            async with Lock(store, "one", ttl_s=1.0).hold():
                await asyncio.sleep(3600)  # cancelled when the lock is lost
        assert asyncio.get_running_loop().time() < store.taken_at + 1.0

    with contextlib.closing(VirtualLoop()) as loop:
        loop.run_until_complete(steps())
