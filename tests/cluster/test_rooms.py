"""Rooms of several nodes over a message log in memory, which is taken away and loses its memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

import pytest
from citius import ConfigError
from citius.cluster import Cluster
from citius.cluster.engines import (
    BACKOFF_S,
    BACKOFF_S_MAX,
    Backoff,
    EngineAway,
    Entry,
    Outcome,
    cancel,
    without_credentials,
)
from citius.cluster.memorylog import Hub, MemoryLog
from nodes import Node, until
from virtual_time import VirtualLoop


def run(steps: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(steps())  # pyright: ignore[reportArgumentType]


def test_all_nodes_get_all_messages_in_one_order() -> None:
    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a", "b"]) as one, Node(MemoryLog(hub), ["a", "b"]) as two:
            for number in range(50):
                one.rooms["a"].send(f"1-{number}")
                two.rooms["a"].send(f"2-{number}")
                two.rooms["b"].send(f"b-{number}")
                if number % 7 == 0:
                    await asyncio.sleep(0)
            await until(lambda: len(one.rooms["a"].got) == len(two.rooms["a"].got) == 100)
            await until(lambda: len(one.rooms["b"].got) == 50)
            assert one.rooms["a"].got == two.rooms["a"].got
            for sender in "12":
                got = [text for text in one.rooms["a"].got if text.startswith(sender)]
                assert got == [f"{sender}-{number}" for number in range(50)]
            assert one.rooms["b"].got == [f"b-{number}" for number in range(50)]
            assert one.stats.batches_sent < 20  # what is sent in a turn goes together

    run(steps)


def test_the_excluded_socket_is_that_of_the_message() -> None:
    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one, Node(MemoryLog(hub), ["a"]) as two:
            marks = [object(), None, object()]
            for number, mark in enumerate(marks):
                one.rooms["a"].send(str(number), mark)
            await until(lambda: len(two.rooms["a"].got) == 3)
            assert one.rooms["a"].excluded == marks
            assert two.rooms["a"].excluded == [None] * 3
            assert not one.cluster._channels[b"a"].exclude

    run(steps)


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_outage_loses_nothing(is_empty: bool) -> None:
    """Nor does an engine that comes back without memory."""

    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one, Node(MemoryLog(hub), ["a"]) as two:
            one.rooms["a"].send("before")
            await until(lambda: two.rooms["a"].got == ["before"])
            hub.leave()
            for number in range(20):
                assert one.rooms["a"].send(f"during-{number}") == 0
                await asyncio.sleep(0)
            assert two.rooms["a"].got == ["before"]
            hub.come_back(is_empty=is_empty)
            one.rooms["a"].send("after")
            wanted = ["before", *(f"during-{number}" for number in range(20)), "after"]
            await until(lambda: len(two.rooms["a"].got) >= 22)
            assert two.rooms["a"].got == one.rooms["a"].got == wanted
            assert one.stats.outages == 1
            assert one.stats.queued_bytes == 0

    run(steps)


class Lossy:
    """A log whose engine does what it is told, but loses some of its responses."""

    def __init__(self, log: MemoryLog, lose: Callable[[int], bool]) -> None:
        self._log = log
        self._lose = lose
        self._count = 0
        self.follow, self.run, self.close = log.follow, log.run, log.close

    async def append(self, entries: list[Entry]) -> list[Outcome]:
        outcomes = await self._log.append(entries)
        self._count += 1
        if self._lose(self._count):
            raise EngineAway("no response")
        return outcomes


def test_a_response_that_is_lost_makes_no_duplicates() -> None:
    async def steps() -> None:
        hub = Hub()
        lossy = Lossy(MemoryLog(hub), lambda count: count % 3 != 0)
        async with Node(lossy, ["a"]) as one, Node(MemoryLog(hub), ["a"]) as two:
            for number in range(30):
                one.rooms["a"].send(str(number))
                await asyncio.sleep(0.003)  # several batches
            await until(lambda: len(two.rooms["a"].got) >= 30)
            assert two.rooms["a"].got == [str(number) for number in range(30)]

    run(steps)


def test_a_node_that_has_not_read_what_an_emptied_engine_had_gets_it_again() -> None:
    """One has sent it, the engine confirmed it and lost it before two had read it."""

    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one:
            two = Node(MemoryLog(hub), ["a"])
            async with two:
                one.rooms["a"].send("1")
                await until(lambda: two.rooms["a"].got == ["1"])
                deaf = two.cluster._tasks[0]
                deaf.cancel()
                await asyncio.wait([deaf])
                one.rooms["a"].send("2")
                await until(lambda: one.stats.queued_bytes == 0)
                hub.leave()
                hub.come_back(is_empty=True)
                two.cluster._tasks[0] = asyncio.ensure_future(two.cluster._log.run(two.cluster))
                await until(lambda: two.rooms["a"].got == ["1", "2"])
                assert one.rooms["a"].got == ["1", "2"]
                assert one.stats.republished >= 1
                assert two.stats.duplicates >= 1

    run(steps)


def test_an_engine_that_goes_back_in_time_stops_nothing() -> None:
    """Restored from a copy: it has the first of what was sent, and not the rest."""

    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one, Node(MemoryLog(hub), ["a"]) as two:
            one.rooms["a"].send("1")
            await until(lambda: two.rooms["a"].got == ["1"])
            logs = {channel: list(kept) for channel, kept in hub.logs.items()}
            lasts = dict(hub.lasts)
            for text in "234":
                one.rooms["a"].send(text)
                await until(lambda text=text: two.rooms["a"].got[-1] == text)
            hub.leave()
            hub.come_back(is_empty=True)
            for channel, kept in logs.items():
                hub.logs[channel] = deque(kept, maxlen=1000)
                hub.counts[channel] = len(kept)
            hub.lasts.update(lasts)
            one.rooms["a"].send("5")
            await until(lambda: len(two.rooms["a"].got) >= 5)
            assert two.rooms["a"].got == one.rooms["a"].got == list("12345")

    run(steps)


def test_a_full_queue_loses_the_newest_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("citius.observability.logging.warning", said.append)

    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"], queue_bytes_max=1000) as one:
            hub.leave()
            lost = [one.rooms["a"].send("x" * 100) for _ in range(10)]
            assert lost == [0] * 4 + [1] * 6
            assert one.stats.lost == 6
            hub.come_back()
            await until(lambda: len(one.rooms["a"].got) == 4)
            assert one.rooms["a"].send("again") == 0
            await until(lambda: one.rooms["a"].got[-1] == "again")

    run(steps)
    assert len([text for text in said if "wait for the engine" in text]) == 1


def test_local_delivery_while_the_engine_is_away() -> None:
    async def steps() -> None:
        hub = Hub()
        one = Node(MemoryLog(hub), ["a"], when_down="local")
        async with one, Node(MemoryLog(hub), ["a"], when_down="local") as two:
            one.rooms["a"].send("0")
            await until(lambda: two.rooms["a"].got == ["0"])
            hub.leave()
            one.rooms["a"].send("1")
            two.rooms["a"].send("2")
            await until(lambda: one.rooms["a"].got == ["0", "1"])
            await until(lambda: two.rooms["a"].got == ["0", "2"])
            hub.come_back()
            await until(lambda: sorted(one.rooms["a"].got) == sorted(two.rooms["a"].got))
            assert sorted(one.rooms["a"].got) == ["0", "1", "2"]

    run(steps)


def test_a_node_that_comes_late_gets_the_history_as_history() -> None:
    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"], history=3) as one:
            for number in range(5):
                one.rooms["a"].send(str(number))
                await until(lambda number=number: one.rooms["a"].got[-1:] == [str(number)])
            async with Node(MemoryLog(hub), ["a"], history=3) as two:
                assert two.rooms["a"].old == ["2", "3", "4"]
                assert two.rooms["a"].got == []
                one.rooms["a"].send("5")
                await until(lambda: two.rooms["a"].got == ["5"])

    run(steps)


def test_foreign_records_are_counted_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("citius.observability.logging.warning", said.append)

    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one:
            for data in (b"rubbish", b"rubbish", b"CTS\x07" + bytes(50), b"CTS\x01" + bytes(50)):
                one.cluster.record(b"a", data, is_old=False)
            one.rooms["a"].send("ours")
            await until(lambda: one.rooms["a"].got == ["ours"])
            assert one.stats.foreign == {"not ours": 2, "version": 1, "key": 1}

    run(steps)
    assert len(said) == 3


def test_a_gap_is_counted() -> None:
    async def steps() -> None:
        hub = Hub(records_max=2)
        async with Node(MemoryLog(hub), ["a"]) as one, Node(MemoryLog(hub), ["a"]) as two:
            one.rooms["a"].send("0")
            await until(lambda: two.rooms["a"].got == ["0"])
            two.cluster._tasks[0].cancel()
            await asyncio.sleep(0.01)  # the task ends
            for number in range(5):
                one.rooms["a"].send(str(number))
                await until(lambda: one.stats.queued_bytes == 0)
            two.cluster._tasks[0] = asyncio.ensure_future(two.cluster._log.run(two.cluster))
            await until(lambda: len(two.rooms["a"].got) == 3)
            assert two.rooms["a"].got == ["0", "3", "4"]
            assert two.stats.gaps == 3

    run(steps)


def test_threads_may_send() -> None:
    async def steps() -> None:
        hub = Hub()
        async with Node(MemoryLog(hub), ["a"]) as one:

            def many(name: str) -> None:
                for number in range(500):
                    one.rooms["a"].send(f"{name}-{number}")

            await asyncio.gather(*(asyncio.to_thread(many, name) for name in "abc"))
            await until(lambda: len(one.rooms["a"].got) == 1500)
            for name in "abc":
                got = [text for text in one.rooms["a"].got if text.startswith(name)]
                assert got == [f"{name}-{number}" for number in range(500)]

    run(steps)


def test_a_task_that_takes_a_cancellation_for_an_outage_ends_all_the_same() -> None:
    async def steps() -> None:
        calls = 0

        async def call() -> None:
            nonlocal calls
            calls += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise EngineAway("as some clients do") from None

        async def work() -> None:
            while calls < 3:
                with contextlib.suppress(EngineAway):
                    await call()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        await cancel([task])
        assert task.done()
        assert calls == 3

    run(steps)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("redis://bob:hunter2@host:1/0", "redis://***@host:1/0"),
        ("redis://:hun@ter2@host", "redis://***@host"),
        ("redis://:hun/ter2@host is none", "redis://***@host is none"),
        ("nats://hunter2@a, nats://hunter2@b", "nats://***@a, nats://***@b"),
        ("OSError('rediss://:hunter2@host?ssl_password=hunter2&db=1')", "OSError('rediss://***@host?ssl_password=***&db=1')"),
        ("redis:hunter2@host", "***@host"),
        ("unix:///run/redis.sock?db=1&password=hunter2", "unix:///run/redis.sock?db=1&password=***"),
        ("redis://host/0 refuses", "redis://host/0 refuses"),
    ],
)  # fmt: skip
def test_credentials_of_urls_are_taken_out(text: str, said: str) -> None:
    assert without_credentials(text) == said


@pytest.mark.parametrize(
    "url", ["redis://:hunter2/x@host", "redis:hunter2@host", "http://:hunter2@host", "bob:hunter2@host"]
)  # fmt: skip
def test_a_url_that_is_none_is_refused_without_its_password(url: str) -> None:
    for options in ({"url": url}, {"messages": url}):
        with pytest.raises(ConfigError) as refused:
            Cluster(**options)
        assert "hunter2" not in str(refused.value)


def test_pauses_between_tries_grow_and_differ() -> None:
    """So that nodes do not come back to an engine at once."""

    def pauses() -> list[float]:
        loop = VirtualLoop()
        backoff, found = Backoff(), list[float]()

        async def steps() -> None:
            for _ in range(12):
                before = loop.time()
                await backoff.wait()
                found.append(loop.time() - before)
            backoff.reset()
            before = loop.time()
            await backoff.wait()
            assert loop.time() - before <= BACKOFF_S + 0.001

        loop.run_until_complete(steps())
        loop.close()
        return found

    one, two = pauses(), pauses()
    for number, found in enumerate(zip(one, two, strict=True)):
        longest = min(BACKOFF_S * 2**number, BACKOFF_S_MAX)
        assert all(longest / 2 - 0.001 <= pause <= longest + 0.001 for pause in found)
    assert all(abs(first - second) > 1e-6 for first, second in zip(one, two, strict=True))
