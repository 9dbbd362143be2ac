"""Rate limits over three nodes: the limit passes, however requests are split; unused tokens come back."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from citius.cluster import RedisBuckets
from citius.cluster import redisbuckets as module
from citius.cluster.redisclient import NoScript, RedisSubscriber
from engines_rig import Redis
from nodes import client, run
from virtual_time import VirtualLoop

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

MS = 1_000_000


def ideal(at: list[float]) -> int:
    """How many of the requests of these times pass a bucket of 1 000 that gets 1 000 per second."""
    left, last, passed = 1000.0, at[0], 0
    for time in at:
        left, last = min(1000.0, left + (time - last) * 1000), time
        if left >= 1:
            left, passed = left - 1, passed + 1
    return passed


@pytest.mark.parametrize("shares", [(1, 1, 1), (10, 1, 1), (1, 0, 0)])
def test_what_passes_is_the_limit(redis: Redis, shares: tuple[int, ...]) -> None:
    """1 000 per second, by three nodes that are asked twice as often."""

    async def steps() -> None:
        nodes = [RedisBuckets(client(redis.url, 60), timeout_s=60) for _ in shares]
        loop = asyncio.get_running_loop()
        passed, at = 0, list[float]()
        begun = loop.time()
        until = begun + 1.5

        async def take(node: RedisBuckets) -> None:
            nonlocal passed
            at.append(loop.time())
            taken = await node.take(b"all", MS, 1000)
            assert taken is not None
            passed += taken[0]

        async def load(node: RedisBuckets, per_s: float) -> None:
            asked, tasks = 0, set[asyncio.Task[None]]()
            while loop.time() < until:
                while asked < (loop.time() - begun) * per_s:
                    asked += 1
                    tasks.add(asyncio.ensure_future(take(node)))
                await asyncio.sleep(0.002)  # the pace of the load
            await asyncio.gather(*tasks)

        whole = sum(shares)
        await asyncio.gather(
            *(load(node, 2000 * share / whole) for node, share in zip(nodes, shares, strict=True))
        )
        took_s = loop.time() - begun
        await asyncio.gather(*(node.stop() for node in nodes))
        # The burst, and a token for each millisecond; not more, and not much less.
        assert passed <= 1000 + 1000 * took_s * 1.01
        assert passed >= ideal(at) * 0.9

    run(steps)


@pytest.mark.parametrize("rate", [700, 30_000, 45_000, 70_000])
def test_a_token_costs_what_the_rate_says(redis: Redis, rate: int) -> None:
    """Also where that is no whole number of microseconds."""

    async def steps() -> None:
        node = RedisBuckets(client(redis.url, 60), timeout_s=60)
        interval_ns = round(1_000_000_000 / rate)

        async def full_ns() -> int:
            taken = await node.take(b"all", interval_ns, 10_000)
            assert taken is not None
            assert taken[0]
            return taken[3]

        # In one call, so that no time passes in between.
        full = set(await asyncio.gather(*(full_ns() for _ in range(1000))))
        assert [abs(one - 1000 * interval_ns) < 1000 for one in full] == [True]
        await node.stop()

    run(steps)


@pytest.mark.parametrize(("interval_ms", "is_exact"), [(10, True), (5, False)])
def test_what_is_slower_than_100_per_second_is_not_taken_in_advance(
    redis: Redis, interval_ms: int, is_exact: bool
) -> None:
    async def steps() -> None:
        node, other = (RedisBuckets(client(redis.url, 60), timeout_s=60, sync_s=60) for _ in "ab")
        # With what the sync of 60 s would have for it.
        scale = module.SYNC_S / 60

        async def take(buckets: RedisBuckets) -> int:
            taken = await buckets.take(b"all", round(interval_ms * MS / scale), 1000)
            assert taken is not None
            assert taken[0]
            return taken[1]

        for _ in range(10):
            await take(node)
        # What the other one finds is what was used, and no more, if that is exact.
        assert (await take(other) == 1000 - 11) is is_exact
        await node.stop()
        await other.stop()

    run(steps)


@pytest.mark.parametrize("theirs", [["SET", "rate:all", "theirs"], ["RPUSH", "rate:all", "1"]])
def test_what_others_have_put_under_the_key_of_a_bucket_is_replaced(
    redis: Redis, theirs: list[str]
) -> None:
    async def steps() -> None:
        redis.cli(*theirs)
        node = RedisBuckets(client(redis.url, 60), timeout_s=60)
        for left in (1, 0):
            taken = await node.take(b"all", 3600_000 * MS, 2)
            assert taken is not None
            assert taken[:2] == (True, left)
        taken = await node.take(b"all", 3600_000 * MS, 2)
        assert taken is not None
        assert not taken[0]
        await node.stop()

    run(steps)


# --- every second of any split, by a clock that does not depend on this machine ----------------------


class RedisAt:
    """A real Redis whose scripts read the clock of a loop, a fraction of a millisecond away."""

    def __init__(self, redis: Redis, loop: VirtualLoop, dice: random.Random) -> None:
        self.calls = 0
        self._loop = loop
        self._dice = dice
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(redis.path))
        self._replies = self._socket.makefile("rb")

    async def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        await asyncio.sleep(self._dice.uniform(0.0001, 0.001))  # the way to Redis
        self.calls += len(commands)
        seconds, us = divmod(round(self._loop.time() * 1e6), 1_000_000)
        self._ask("SET", "clock", f"{seconds} {us}")
        replies = [self._ask(*one) for one in commands]
        await asyncio.sleep(self._dice.uniform(0.0001, 0.001))  # the way to Redis
        return replies

    async def subscriber(self) -> RedisSubscriber:
        raise NotImplementedError

    def _ask(self, *words: Any) -> Any:
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self._socket.sendall(
            b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(p), p) for p in parts)
        )
        return self._read()

    def _read(self) -> Any:
        line = self._replies.readline()
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            assert text.startswith(b"NOSCRIPT"), text
            return NoScript(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"*":
            return [self._read() for _ in range(int(text))]
        return self._replies.read(int(text) + 2)[:-2] if kind == b"$" else text

    def close(self) -> None:
        self._replies.close()
        self._socket.close()


def _hunt(dice: random.Random) -> Callable[[float], int]:
    """One node after the other, each until it has found the bucket empty, or has tokens in advance."""
    until, at = 0.0, 0

    def choose(now: float) -> int:
        nonlocal until, at
        if now >= until:
            until, at = now + dice.choice([0.003, 0.0051, 0.0101, 0.02]), at + 1
        return at

    return choose


SPLITS: dict[str, Callable[[random.Random], Callable[[float], int]]] = {
    "at random": lambda dice: lambda now: dice.randrange(100),
    "all on one": lambda dice: lambda now: 0,
    "switching": lambda dice: lambda now: int(now / 0.3),
    "ten to one": lambda dice: lambda now: 0 if dice.random() < 0.9 else dice.randrange(100),
    "hunting": _hunt,
}


def by_the_clock_of_a_loop(script: str) -> str:
    """The script with another clock, whose keys this machine's clock does not end."""
    clock = "local said = redis.call('GET', 'clock')\nlocal time = {said:match('(%d+) (%d+)')}"
    changed = script.replace("local time = redis.call('TIME')", clock)
    kept = changed.replace("math.ceil((full - now) / 1000) + 1", "3600000")
    assert script != changed != kept
    return kept


@pytest.mark.parametrize(
    ("split", "count", "load"),
    [
        *((split, 3, 2.0) for split in SPLITS),
        ("at random", 3, 1.1),
        ("at random", 20, 6.0),
        ("hunting", 20, 6.0),
    ],
)
def test_any_second_of_any_split_is_exact_to_one_percent(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, split: str, count: int, load: float
) -> None:
    """Each second, wherever it begins, once the burst has passed. It prints what is asked of Redis."""
    monkeypatch.setattr(module, "_TAKE", by_the_clock_of_a_loop(module._TAKE))
    dice = random.Random(f"{split} {count} {load}")
    loop = VirtualLoop()
    engine = RedisAt(redis, loop, dice)
    passed: list[float] = []

    async def steps() -> None:
        nodes = [RedisBuckets(engine) for _ in range(count)]
        choose = SPLITS[split](dice)

        async def take(node: RedisBuckets) -> None:
            taken = await node.take(b"all", MS, 1000)
            assert taken is not None
            if taken[0]:
                passed.append(loop.time())

        # The burst.
        await asyncio.gather(*(take(nodes[0]) for _ in range(1000)))
        begun = asked_at = loop.time()
        engine.calls = 0
        tasks: list[asyncio.Task[None]] = []
        while asked_at < begun + 2.5:
            asked_at += dice.uniform(0.5, 1.5) / (1000 * load)
            await asyncio.sleep(asked_at - loop.time())  # the pace of the load
            tasks.append(asyncio.ensure_future(take(nodes[choose(asked_at) % count])))
        await asyncio.gather(*tasks)
        calls = engine.calls / 2.5
        await asyncio.gather(*(node.stop() for node in nodes))
        begins = [begun + 0.2 + 0.0007 * number for number in range(1800)]
        counts = [bisect_left(passed, at + 1) - bisect_left(passed, at) for at in begins]
        print(
            f"{count} nodes, {load} times the limit, {split}: {min(counts)} to {max(counts)} in a second,"
            f" {calls:.0f} calls of Redis per second"
        )
        assert 990 <= min(counts) <= max(counts) <= 1010

    try:
        loop.run_until_complete(steps())
    finally:
        loop.close()
        engine.close()


def test_tokens_that_were_taken_in_advance_come_back(redis: Redis) -> None:
    async def steps() -> None:
        one, two = (RedisBuckets(client(redis.url), sync_s=0.05) for _ in range(2))
        # A token in 10 ms, 100 of them: two at most are taken in advance.
        for _ in range(20):
            await one.take(b"k", 10 * MS, 100)
        left = [(await two.take(b"k", 10 * MS, 100) or (0, 0))[1]]
        async with asyncio.timeout(20):
            while left[-1] < 99:
                await asyncio.sleep(0.02)  # longer than a few requests take
                left.append((await two.take(b"k", 10 * MS, 100) or (0, 0))[1])
        await asyncio.gather(one.stop(), two.stop())

    run(steps)


def test_few_requests_take_nothing_in_advance(redis: Redis) -> None:
    """A limit per hour is exact to the last request."""

    async def steps() -> None:
        nodes = [RedisBuckets(client(redis.url)) for _ in range(3)]
        taken = [await nodes[number % 3].take(b"k", 3_600_000 * MS, 10) for number in range(30)]
        assert sum(one is not None and one[0] for one in taken) == 10

    run(steps)


def test_a_client_that_leaves_takes_no_token_along(redis: Redis) -> None:
    async def steps() -> None:
        node = RedisBuckets(client(redis.url))
        await node.take(b"k", 3_600_000 * MS, 3)
        redis.hang()
        waiting = [asyncio.ensure_future(node.take(b"k", 3_600_000 * MS, 3)) for _ in range(2)]
        await asyncio.sleep(0.01)  # both wait for Redis, which hangs
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        redis.go_on()
        async with asyncio.timeout(20):
            while (taken := await node.take(b"k", 3_600_000 * MS, 3)) is None or not taken[0]:
                await asyncio.sleep(0.01)

    run(steps)


def test_a_script_that_another_node_loads_meanwhile_is_carried_out_once(redis: Redis) -> None:
    """After a restart of Redis: the calls behind the first were carried out, and repeated with it."""

    async def steps() -> None:
        direct = client(redis.url)

        class Between:
            subscriber = None

            async def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
                first = await direct.pipeline(commands[:1])
                await direct.pipeline([["SCRIPT", "LOAD", module._TAKE]])
                return [*first, *(await direct.pipeline(commands[1:]) if commands[1:] else [])]

        buckets = RedisBuckets(Between())
        hour_ns = 3_600_000_000_000
        taken = await asyncio.gather(*(buckets.take(key, hour_ns, 2) for key in (b"a", b"b")))
        assert [one is not None and one[:2] for one in taken] == [(True, 1)] * 2
        for key in (b"a", b"b"):
            again = await buckets.take(key, hour_ns, 2)
            assert again is not None
            assert again[:2] == (True, 0)

    run(steps)
