"""Caches, presence and locks, each with its three stores."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from citius import App, ConfigError, ServiceUnavailable
from citius.cluster import Cache, Cluster, Lock, LockLost, LockTaken, Presence, Stats
from citius.cluster.cachestores import MemoryCache, RedisCache, SharedCache
from citius.cluster.engines import EngineAway
from citius.cluster.locks import MemoryLocks, RedisLocks, SharedLocks
from citius.cluster.outage import all_given_back, give_back
from citius.cluster.presencestores import MemoryPresence, RedisPresence, SharedPresence
from citius.process.sharedtable import SharedTable
from citius.testing import Client
from engines_rig import Redis
from nodes import PATIENT_S, client, run, until

NO_REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")
KINDS = [
    "memory",
    "shared",
    *(pytest.param(name, marks=NO_REDIS) for name in ("redis", "own-redis")),
]


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], Callable[[], Any]]:
    """What makes the stores of nodes: of one process the same one, else one for each."""

    def make(what: str, kind: str) -> Callable[[], Any]:
        classes: dict[str, tuple[Any, Any, Any]] = {
            "cache": (MemoryCache, SharedCache, RedisCache),
            "presence": (MemoryPresence, SharedPresence, RedisPresence),
            "locks": (MemoryLocks, SharedLocks, RedisLocks),
        }
        memory, shared, in_redis = classes[what]
        if kind == "memory":
            alone = memory()
            return lambda: alone
        if kind == "shared":
            one = shared(SharedTable.alone(1 << 20), "p")
            return lambda: one
        redis = request.getfixturevalue("redis")
        return lambda: in_redis(client(redis.url, PATIENT_S, is_own=kind == "own-redis"), "p")

    return make


class Product(msgspec.Struct):
    name: str
    price: int = 0


# --- caches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_made_once_for_all_that_wait(make: Any, kind: str) -> None:
    stores = make("cache", kind)

    async def steps() -> None:
        nodes: list[Cache[Product]] = [
            Cache(stores(), timeout_s=PATIENT_S, type=Product) for _ in range(3)
        ]
        made = 0

        async def produce() -> Product:
            nonlocal made
            made += 1
            await asyncio.sleep(0.05)  # its making takes time
            return Product("tea", made)

        found = await asyncio.gather(
            *(nodes[number % 3].get_or_make("a", produce) for number in range(30))
        )
        assert set(map(msgspec.json.encode, found)) == {b'{"name":"tea","price":1}'}
        assert made == 1
        assert await nodes[0].get("a") == Product("tea", 1)
        assert await nodes[0].get("b") is None
        await nodes[1].delete("a")
        assert await nodes[0].get("a") is None

    run(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_tags_invalidate_also_what_is_being_made(make: Any, kind: str) -> None:
    stores = make("cache", kind)

    async def steps() -> None:
        one: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        two: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        going, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> int:
            going.set()
            await go_on.wait()
            return 1

        async def quick() -> int:
            return 2

        asked = asyncio.ensure_future(one.get_or_make("a", slow, tags=["x", "y"]))
        await going.wait()
        await two.invalidate("y")
        go_on.set()
        assert await asked == 1
        # It was made of what has changed since.
        assert await two.get("a") is None
        assert await two.get_or_make("a", quick, tags=["x", "y"]) == 2
        assert await one.get("a") == 2
        await one.set("b", 3, tags=["z"])
        await two.invalidate("x", "other")
        assert await one.get("a") is None
        assert await one.get("b") == 3

    run(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_maker_that_fails_is_followed_by_another(make: Any, kind: str) -> None:
    stores = make("cache", kind)

    async def steps() -> None:
        one: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int, flight_s=5)
        two: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int, flight_s=5)

        begun = asyncio.Event()

        async def fail() -> int:
            begun.set()
            await asyncio.sleep(0.02)  # its making takes time
            raise ValueError("no")

        async def never() -> int:
            begun.set()
            return await asyncio.Event().wait()

        async def work() -> int:
            return 7

        failing = asyncio.ensure_future(one.get_or_make("a", fail))
        await begun.wait()
        assert await two.get_or_make("a", work) == 7
        with pytest.raises(ValueError, match="no"):
            await failing
        # One that is cancelled, because all that waited have left, lets go too.
        begun.clear()
        stuck = asyncio.ensure_future(one.get_or_make("b", never))
        await begun.wait()
        stuck.cancel()
        await asyncio.wait([stuck])
        assert await two.get_or_make("b", work) == 7

    run(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_values_expire(make: Any, kind: str) -> None:
    stores = make("cache", kind)

    async def steps() -> None:
        cache: Cache[int] = Cache(stores(), timeout_s=PATIENT_S, type=int)
        await cache.set("a", 1, ttl_s=0.05)
        assert await cache.get("a") == 1
        async with asyncio.timeout(10):
            while await cache.get("a") is not None:
                await asyncio.sleep(0.01)

    run(steps)


def test_foreign_entries_are_misses(redis: Redis) -> None:
    async def steps() -> None:
        direct, stats = client(redis.url), Stats()
        cache: Cache[int] = Cache(RedisCache(direct, "p"), type=int, stats=stats)
        for rubbish in (b"rubbish", b"CTC\x01rubbish", b"CTC\x02\x92\x80\x01"):
            await direct.pipeline([["SET", "p:value:a", rubbish]])
            assert await cache.get("a") is None
        await direct.pipeline([["DEL", "p:value:a"], ["LPUSH", "p:value:a", "a list"]])
        assert await cache.get("a") is None
        assert stats.foreign == {"cache entry": 3}

    run(steps)


@pytest.mark.parametrize("when_down", ["make", "refuse"])
def test_a_store_that_is_away(redis: Redis, when_down: Any) -> None:
    async def steps() -> None:
        cache: Cache[int] = Cache(
            RedisCache(client(redis.url, 0.3), "p"),
            type=int,
            when_down=when_down,
            timeout_s=0.3,
            retry_s=0.05,
        )

        async def seven() -> int:
            return 7

        redis.kill()
        if when_down == "refuse":
            with pytest.raises(ServiceUnavailable):
                await cache.get_or_make("a", seven)
        else:
            assert await cache.get_or_make("a", seven) == 7
        # Values that should be forgotten could be used: that is never pretended.
        with pytest.raises(ServiceUnavailable):
            await cache.invalidate("x")
        await asyncio.to_thread(redis.start)
        async with asyncio.timeout(20):
            while True:
                try:
                    if await cache.get_or_make("a", seven) == 7 and await cache.get("a") == 7:
                        break
                except ServiceUnavailable:
                    pass
                await asyncio.sleep(0.02)  # until Redis is asked again
        redis.hang()
        begun = asyncio.get_running_loop().time()
        for _ in range(50):
            with suppress(ServiceUnavailable):
                await cache.get_or_make("b", seven)
        assert asyncio.get_running_loop().time() - begun < 10
        redis.go_on()

    run(steps)


# --- presence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_members_of_all_nodes(make: Any, kind: str) -> None:
    stores = make("presence", kind)

    async def steps() -> None:
        one, two = (Presence(stores(), "room", timeout_s=PATIENT_S, ttl_s=1) for _ in range(2))
        async with one.enter("ann", {"at": 1}), two.enter("bob"), two.enter("bob"):
            async with one.enter("cid"):
                await until(lambda: True)
                async with asyncio.timeout(10):
                    while len(await two.members()) < 3 or len(await one.members()) < 3:
                        await asyncio.sleep(0.01)
                assert await two.members() == {"ann": {"at": 1}, "bob": None, "cid": None}
            async with asyncio.timeout(10):
                while await two.count() != 2:
                    await asyncio.sleep(0.01)
            # Longer than members are kept that are not renewed.
            await asyncio.sleep(1.5)
            assert await one.count() == await two.count() == 2
        async with asyncio.timeout(10):
            while await one.count() + await two.count():
                await asyncio.sleep(0.01)
        await one.stop()
        await two.stop()

    run(steps)


# What a client may have in a text of JSON, which `json.loads` takes.
HALF_A_PAIR = "\ud800"


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_of_any_name_leaves_the_others_there(make: Any, kind: str) -> None:
    stores = make("presence", kind)

    async def steps() -> None:
        topic = f"room {HALF_A_PAIR}"
        one, two = (Presence(stores(), topic, timeout_s=PATIENT_S, ttl_s=1) for _ in range(2))
        async with one.enter("ann"), one.enter(HALF_A_PAIR, 1), one.enter("bob", 2):
            everyone = {"ann": None, HALF_A_PAIR: 1, "bob": 2}
            assert await one.members() == everyone
            async with asyncio.timeout(10):
                while await two.members() != everyone:
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(10):
            while await two.count():
                await asyncio.sleep(0.01)
        await one.stop()
        await two.stop()

    run(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_and_a_cached_value_have_any_name(make: Any, kind: str) -> None:
    locks, caches = make("locks", kind), make("cache", kind)

    async def steps() -> None:
        async with Lock(locks(), HALF_A_PAIR).hold():
            with pytest.raises(LockTaken):
                async with Lock(locks(), HALF_A_PAIR).hold(wait_s=0):
                    pass
        cache: Cache[int] = Cache(caches(), timeout_s=PATIENT_S, type=int)
        await cache.set(HALF_A_PAIR, 7)
        assert await cache.get(HALF_A_PAIR) == 7
        await cache.delete(HALF_A_PAIR)
        assert await cache.get(HALF_A_PAIR) is None

    run(steps)


def test_a_member_that_is_no_text_is_refused_where_it_enters() -> None:
    async def steps() -> None:
        presence = Presence(MemoryPresence(), "room")
        number: Any = 7
        with pytest.raises(ConfigError, match="member"):
            async with presence.enter(number):
                pass
        assert await presence.members() == {}

    run(steps)


def test_members_survive_a_redis_that_forgets(redis: Redis) -> None:
    async def steps() -> None:
        one, two = (
            Presence(RedisPresence(client(redis.url, 0.3), "p"), "room", ttl_s=1, retry_s=0.05)
            for _ in range(2)
        )
        async with one.enter("ann"), two.enter("bob"):
            async with asyncio.timeout(10):
                while await one.count() != 2:
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(redis.kill)
            assert sorted(await one.members()) == ["ann", "bob"]
            redis.empty()
            await asyncio.to_thread(redis.start)
            strict = Presence(
                RedisPresence(client(redis.url, 0.3), "p"), "room", when_down="refuse"
            )
            async with asyncio.timeout(10):
                while sorted(await strict.members()) != ["ann", "bob"]:
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(redis.kill)
            with pytest.raises(ServiceUnavailable):
                await strict.members()

    run(steps)


def test_members_survive_a_redis_that_goes_back_in_time(redis: Redis) -> None:
    """A snapshot, a replica that was behind: ghosts and missing members stayed for as long as their node."""

    async def steps() -> None:
        one, two = (
            Presence(RedisPresence(client(redis.url), "p"), "room", timeout_s=PATIENT_S, ttl_s=1)
            for _ in range(2)
        )

        async def until_two_sees(*names: str) -> None:
            async with asyncio.timeout(10):
                while sorted(await two.members()) != sorted(names):
                    await asyncio.sleep(0.01)  # a look at a condition

        async with one.enter("ann"):
            async with one.enter("left"):
                await until_two_sees("ann", "left")
                (key,) = redis.cli("--raw", "KEYS", "p:room:node:*").split()
                assert redis.cli("COPY", key, "snapshot").strip() == "1"
            async with one.enter("new"):
                await until_two_sees("ann", "new")
                assert redis.cli("COPY", "snapshot", key, "REPLACE").strip() == "1"
                assert sorted(await two.members()) == ["ann", "left"]
                await until_two_sees("ann", "new")
        await one.stop()
        await two.stop()

    run(steps)


def test_members_that_others_write_are_counted_and_dropped(redis: Redis) -> None:
    async def steps() -> None:
        stats, direct = Stats(), client(redis.url)
        room = Presence(RedisPresence(direct, "p"), "room", ttl_s=1, stats=stats)
        async with room.enter("ann", 1):
            await direct.pipeline(
                [
                    ["SADD", "p:room:nodes", "other"],
                    ["HSET", "p:room:node:other", "bob", b"\xc1", b"\xff\xfe", b"\x01"],
                ]
            )
            assert await room.members() == {"ann": 1}
            assert stats.foreign == {"member": 2}
            # Another type in the place of a node's members is an outage, and no member.
            await direct.pipeline(
                [["SADD", "p:room:nodes", "list"], ["LPUSH", "p:room:node:list", "x"]]
            )
            assert await room.members() == {"ann": 1}
        await room.stop()

    run(steps)


# --- locks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_one_holder_at_a_time_and_fences_that_grow(make: Any, kind: str) -> None:
    stores = make("locks", kind)

    async def steps() -> None:
        inside, fences = 0, list[int]()

        async def work(store: Any) -> None:
            nonlocal inside
            async with Lock(store, "job").hold() as held:
                inside += 1
                assert inside == 1
                fences.append(held.fence)
                await asyncio.sleep(0.002)  # it is held for a moment
                inside -= 1

        made = [stores() for _ in range(3)]
        await asyncio.gather(*(work(made[number % 3]) for number in range(12)))
        assert fences == sorted(set(fences))
        assert len(fences) == 12
        async with Lock(made[0], "job").hold(), Lock(made[1], "other").hold(wait_s=0):
            with pytest.raises(LockTaken, match="held elsewhere"):
                async with Lock(made[2], "job").hold(wait_s=0.05):
                    raise AssertionError

    run(steps)


def test_what_others_write_in_the_place_of_a_lock_is_no_lock_of_ours(redis: Redis) -> None:
    """Another type, or another program's value: the lock is taken elsewhere until that is gone."""

    async def steps() -> None:
        store, direct = RedisLocks(client(redis.url), "p"), client(redis.url)
        for foreign in (["LPUSH", "p:lock:{job}", "x"], ["SET", "p:lock:{job}", b"\xff"]):
            await direct.pipeline([foreign])
            with pytest.raises(LockTaken):
                async with Lock(store, "job").hold(wait_s=0):
                    raise AssertionError
            await direct.pipeline([["DEL", "p:lock:{job}"]])
        async with Lock(store, "job").hold(wait_s=0):
            await direct.pipeline([["SET", "p:lock:{job}", b"\xff"]])
        # It was not ours any more, and is not released.
        assert await direct.pipeline([["GET", "p:lock:{job}"]]) == [b"\xff"]

    run(steps)


def test_a_lock_that_is_lost_cancels_its_block(redis: Redis) -> None:
    async def steps() -> None:
        store = RedisLocks(client(redis.url, 1), "p")
        with pytest.raises(LockLost):
            async with Lock(store, "job", ttl_s=1.5).hold() as held:
                redis.cli("DEL", "p:lock:{job}")
                await asyncio.sleep(20)  # until it is cancelled
        assert held.is_lost
        with pytest.raises(LockLost):
            async with Lock(store, "job", ttl_s=1.5).hold():
                redis.hang()
                await asyncio.sleep(20)  # until it is cancelled
        redis.go_on()
        async with Lock(store, "job").hold(wait_s=20) as again:
            assert again.fence > held.fence
        # It is renewed for as long as its block lasts.
        async with Lock(store, "job", ttl_s=1.5).hold():
            await asyncio.sleep(2.5)  # longer than it lasts unrenewed
            with pytest.raises(LockTaken):
                async with Lock(store, "job").hold(wait_s=0):
                    raise AssertionError
        redis.kill()
        with pytest.raises(LockTaken, match="away"):
            async with Lock(store, "job").hold(wait_s=0.05):
                raise AssertionError

    run(steps)


def test_a_lock_that_is_taken_is_a_503() -> None:
    """Scale S13."""
    cluster = Cluster()
    app, lock = App(cluster=cluster), cluster.lock("job")

    @app.get("/")
    async def work() -> str:
        async with lock.hold(wait_s=0), lock.hold(wait_s=0):
            return "twice"

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 503


def test_a_lock_that_cannot_be_renewed_is_lost_whatever_the_reason() -> None:
    """The task that renews it ended with the exception, and the block went on beside the next holder."""

    class Broken(MemoryLocks):
        is_renewed = True

        async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
            raise RuntimeError("the client is closed")

    async def steps() -> None:
        with pytest.raises(LockLost):
            async with Lock(Broken(), "job", ttl_s=0.3).hold():
                await asyncio.sleep(20)  # until it is cancelled
        # A block that keeps its cancellation to itself is told behind it, and its task is not cancelled.
        with pytest.raises(LockLost):
            async with Lock(Broken(), "job", ttl_s=0.3).hold():
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(20)  # until it is cancelled
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run(steps)


def test_a_cancellation_is_not_taken_for_the_loss_of_a_lock() -> None:
    """A request whose client left in the turn in which its lock was lost went on."""

    class Losing(MemoryLocks):
        is_renewed = True

        async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
            return bool(task.cancel()) and False

    async def hold() -> None:
        async with Lock(Losing(), "job", ttl_s=0.3).hold():
            await asyncio.sleep(20)  # until it is cancelled, twice

    async def steps() -> None:
        nonlocal task
        task = asyncio.ensure_future(hold())
        await asyncio.wait([task])
        assert task.cancelled()

    task: asyncio.Task[None]
    run(steps)


def test_a_making_that_waits_for_itself_is_an_error() -> None:
    """The kind of review B3, called back in the middle: it waited for ever, and all that joined it."""

    async def steps() -> None:
        store = MemoryCache()
        one: Cache[int] = Cache(store, type=int)
        two: Cache[int] = Cache(store, type=int)

        async def itself() -> int:
            return await one.get_or_make("a", produce)

        async def by_two() -> int:
            async with asyncio.timeout(5):
                return await two.get_or_make("b", itself)

        async def produce() -> int:
            return 3

        async with asyncio.timeout(10):
            for make in (itself, by_two):
                with pytest.raises(RuntimeError, match="waits for itself"):
                    await one.get_or_make("a", make)
            # What it starts may ask for it.
            started: list[asyncio.Task[int]] = []

            async def starting() -> int:
                started.append(asyncio.ensure_future(one.get_or_make("a", produce)))
                await asyncio.sleep(0)
                return 4

            assert await one.get_or_make("a", starting) == await started[0] == 4

    run(steps)


# --- cancellation, and what was invalidated -----------------------------------------------------------


class Stepping:
    """A store whose every call suspends before and after it is done."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_renewed = True

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*arguments: Any) -> Any:
            await asyncio.sleep(0)
            said = await method(*arguments)
            await asyncio.sleep(0)
            return said

        return call


def _stepping(store: Any) -> Any:
    return Stepping(store)


async def _cancelled_after(turns: int, task: asyncio.Task[Any]) -> bool:
    """Cancel a task after so many turns of the loop; whether it had not ended."""
    for _ in range(turns):
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return was_cancelled


@pytest.mark.parametrize("kind", ["memory", "shared"])
def test_a_lock_whose_waiter_is_cancelled_goes_back(make: Any, kind: str) -> None:
    """hostile 4a: at whatever await of ``hold`` the cancellation comes."""
    store = make("locks", kind)()

    async def hold() -> None:
        async with Lock(_stepping(store), "job").hold():
            await asyncio.sleep(0)

    async def steps() -> None:
        turns = 0
        while await _cancelled_after(turns, asyncio.ensure_future(hold())):
            async with Lock(store, "job").hold(wait_s=5):
                pass
            turns += 1
        assert turns > 5

    run(steps)


@pytest.mark.parametrize("kind", ["memory", "shared"])
def test_a_claim_whose_maker_is_cancelled_goes_back(make: Any, kind: str) -> None:
    """hostile 4b: at whatever await of ``get_or_make`` the cancellation comes."""
    store = make("cache", kind)()

    async def produce() -> int:
        await asyncio.sleep(0)
        return 1

    async def steps() -> None:
        turns = 0
        while True:
            cache: Cache[int] = Cache(_stepping(store), timeout_s=PATIENT_S, type=int, flight_s=60)
            asked = asyncio.ensure_future(cache.get_or_make("a", produce))
            if not await _cancelled_after(turns, asked):
                break
            async with asyncio.timeout(5):  # far less than the claim lasts
                assert (
                    await Cache[int](store, timeout_s=PATIENT_S, type=int).get_or_make("a", produce)
                    == 1
                )
            await store.delete("a")
            turns += 1
        assert turns > 5

    run(steps)


def test_what_ends_while_redis_is_away_goes_back_when_it_is_there_again(redis: Redis) -> None:
    """A lock and a claim whose holders had ended lasted for all of their time after an outage."""

    async def steps() -> None:
        store = RedisLocks(client(redis.url), "p")
        cached = Cache[int](RedisCache(client(redis.url), "p"), type=int, flight_s=600)

        async def make() -> int:
            await asyncio.to_thread(redis.kill)
            return 1

        async with Lock(store, "job", ttl_s=600).hold() as held:
            assert await cached.get_or_make("a", make) == 1
        assert redis.process.poll() is not None
        await asyncio.to_thread(redis.start)
        async with asyncio.timeout(PATIENT_S):  # far less than they last by themselves
            async with Lock(store, "job").hold() as again:
                assert again.fence > held.fence
            while redis.cli("EXISTS", "p:claim:a").strip() != "0":
                await asyncio.sleep(0.05)  # a look at a condition

    run(steps)


def test_what_is_given_back_later_ends_with_its_time_and_with_the_node() -> None:
    async def steps() -> None:
        calls: list[str] = []

        async def release(name: str) -> None:
            calls.append(name)
            raise EngineAway

        await give_back(lambda: release("short"), 0.0)
        await give_back(lambda: release("long"), 600.0)
        async with asyncio.timeout(PATIENT_S):
            while calls.count("long") < 2:
                await asyncio.sleep(0.01)  # until it is tried again
        assert calls.count("short") == 1
        await all_given_back()
        assert not [task for task in asyncio.all_tasks() if "give-back" in task.get_name()]

    run(steps)


def test_a_lock_that_another_holds_is_not_given_back_by_a_waiter(make: Any) -> None:
    async def steps() -> None:
        for kind in ("memory", "shared"):
            store = make("locks", kind)()
            async with Lock(store, "job").hold():
                for _ in range(2):
                    with pytest.raises(LockTaken):
                        async with Lock(store, "job").hold(wait_s=0):
                            raise AssertionError
                    await asyncio.sleep(0)  # its release runs in a task

    run(steps)


def test_a_take_whose_reply_was_lost_is_taken_again(redis: Redis) -> None:
    async def steps() -> None:
        store = RedisLocks(client(redis.url), "p")
        first = await store.take("job", b"mine", 30)
        second = await store.take("job", b"mine", 30)
        assert first is not None
        assert second is not None
        assert second > first
        assert await store.take("job", b"other", 30) is None

    run(steps)


def test_a_request_that_comes_while_a_making_is_cancelled_makes_anew() -> None:
    """hostile 7, scale S4: the client of the first leaves, and its making takes a while to end."""

    async def steps() -> None:
        cache: Cache[int] = Cache(MemoryCache(), type=int)
        going, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> int:
            try:
                going.set()
                return await asyncio.get_running_loop().create_future()
            finally:
                await go_on.wait()  # a rollback

        async def quick() -> int:
            return 2

        first = asyncio.ensure_future(cache.get_or_make("a", slow))
        await going.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        second = asyncio.ensure_future(cache.get_or_make("a", quick))
        await asyncio.sleep(0)  # it begins before the rollback ends
        go_on.set()
        assert await second == 2

    run(steps)


@pytest.mark.parametrize("is_own", [True, False])
def test_after_invalidate_no_request_gets_the_old_state(is_own: bool) -> None:
    """scale S5: neither from a making of this node, nor where another node has invalidated."""

    async def steps() -> None:
        store = MemoryCache()
        cache: Cache[int] = Cache(store, timeout_s=PATIENT_S, type=int)
        other = cache if is_own else Cache[int](store, timeout_s=PATIENT_S, type=int)
        going, go_on = asyncio.Event(), asyncio.Event()
        state = 1

        async def produce() -> int:
            found = state
            going.set()
            await go_on.wait()
            return found

        first = asyncio.ensure_future(cache.get_or_make("a", produce, tags=["t"]))
        await going.wait()
        state = 2
        await other.invalidate("t")
        later = [
            asyncio.ensure_future(cache.get_or_make("a", produce, tags=["t"])) for _ in range(3)
        ]
        await asyncio.sleep(0)  # they ask before the first is made
        go_on.set()
        assert await first == 1
        assert await asyncio.gather(*later) == [2, 2, 2]

    run(steps)


NAMES = [
    "a",
    "a:fence",
    "fence:a",
    "{a}",
    "a}",
    "}a",
    "{}",
    "a\0b",
    "a\nb",
    "ä",
    "a ",
    "",
    "A",
    "a" * 5000,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_stands_for_no_other_lock(make: Any, kind: str) -> None:
    """issue 32 H: names have texts of clients in them; each is held beside all others, on two nodes."""
    stores = make("locks", kind)

    async def steps() -> None:
        one, two = stores(), stores()
        async with AsyncExitStack() as stack:
            for name in NAMES:
                await stack.enter_async_context(Lock(one, name).hold(wait_s=0))
            for name in NAMES:
                with pytest.raises(LockTaken):
                    async with Lock(two, name).hold(wait_s=0):
                        raise AssertionError(name)
        for name in reversed(NAMES):
            async with Lock(two, name).hold(wait_s=0) as held:
                assert held.fence > 0

    run(steps)


def test_a_redis_with_an_older_state_gives_no_fence_twice(redis: Redis) -> None:
    """One that was restarted from a snapshot, or a replica that was behind, has an old number again."""

    async def steps() -> None:
        store = RedisLocks(client(redis.url), "p")
        async with Lock(store, "job").hold(wait_s=0) as first:
            pass
        snapshot = redis.cli("GET", "p:fence:{job}").strip()
        for _ in range(200):  # more than one in a millisecond, on a machine that is not busy
            async with Lock(store, "job").hold(wait_s=0) as held:
                pass
        redis.cli("SET", "p:fence:{job}", snapshot)
        async with Lock(store, "job").hold(wait_s=0) as later:
            assert later.fence > held.fence > first.fence

    run(steps)


def test_locks_leave_nothing_in_redis_for_ever(redis: Redis) -> None:
    """Names have texts of clients in them: a fence for each was kept without an end (issue 32 H)."""

    async def steps() -> None:
        store = RedisLocks(client(redis.url), "p")
        async with Lock(store, "job").hold(wait_s=0) as before:
            pass
        async with Lock(store, "job").hold(wait_s=0) as held:
            assert held.fence > before.fence
        assert int(redis.cli("TTL", "p:fence:{job}")) > 6 * 86_400
        redis.cli("DEL", "p:fence:{job}")  # as when it has ended
        async with Lock(store, "job").hold(wait_s=0) as later:
            assert later.fence > held.fence

    run(steps)


@pytest.mark.parametrize("seconds", [0.0001, float("inf"), 1e10])
def test_times_that_no_engine_can_keep_end_the_start(seconds: float) -> None:
    """Redis refuses a time of no milliseconds, whenever it is told one; and no number is infinite there."""
    cluster = Cluster("memory://")
    for make in (
        lambda: cluster.lock("a", ttl_s=seconds),
        lambda: cluster.presence("a", ttl_s=seconds),
        lambda: cluster.cache("a", ttl_s=seconds),
        lambda: cluster.cache("a", flight_s=seconds),
        lambda: Cluster("redis://localhost", keep_s=seconds),
    ):
        with pytest.raises(ConfigError, match=r"_s=.*: expected a millisecond"):
            make()
    with pytest.raises(ConfigError, match="keep_s"):
        Cluster("redis://localhost", keep_s=0)
    cluster.cache("b", flight_s=0)

    async def steps() -> None:
        with pytest.raises(ConfigError, match="a cached value: ttl_s"):
            await cluster.cache("c").set("k", 1, ttl_s=seconds)

    asyncio.run(steps())
