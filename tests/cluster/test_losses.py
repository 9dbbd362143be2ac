"""What a cluster loses it tells the members it is lost for, and how many messages it is (scale S6, S9)."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest
from citius.cluster.memorylog import Hub, MemoryLog
from citius.cluster.redislog import RedisLog
from engines_rig import Cable, Redis
from nodes import FakeRoom, Node, client, run, until

NO_REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")


class TellingRoom(FakeRoom):
    """A room that notes gaps where they are."""

    def __init__(self, history: int = 0) -> None:
        super().__init__(history)
        self.missed = 0

    def _gap(self, count: int) -> None:
        assert count > 0, "it is known how many"
        self.missed += count
        self.got.append(f"gap {count}")

    @property
    def messages(self) -> list[str]:
        return [one for one in self.got if not one.startswith("gap ")]


class TellingNode(Node):
    def __init__(self, log: Any, **options: Any) -> None:
        super().__init__(log, [], **options)
        self.room = TellingRoom()
        self.rooms["a"] = self.room
        self.cluster.share("a", self.room)


@pytest.mark.parametrize("when_down", ["queue", "local"])
def test_what_found_the_queue_full_is_told_on_all_nodes(when_down: Any) -> None:
    """Those between others where they are, and the last ones without a message behind them."""

    async def steps() -> None:
        hub = Hub()
        options: dict[str, Any] = {"queue_bytes_max": 1000, "when_down": when_down}
        async with (
            TellingNode(MemoryLog(hub), **options) as one,
            TellingNode(MemoryLog(hub), **options) as two,
        ):
            one.room.send("first")
            await until(lambda: two.room.got == ["first"])
            hub.leave()
            for number in range(20):
                one.room.send(f"m{number}")
            lost = one.stats.lost
            kept = 20 - lost
            assert lost > 5
            hub.come_back()
            expected = ["first", *(f"m{number}" for number in range(kept)), f"gap {lost}"]
            await until(lambda: two.room.got == one.room.got == expected)
            one.room.send("last")
            await until(lambda: two.room.got == one.room.got == [*expected, "last"])
            for node in (one, two):
                assert node.stats.gaps == lost
                assert node.room.missed == lost
            assert one.stats.queued_bytes == 0

    run(steps)


def test_gaps_are_where_messages_are_missing() -> None:
    async def steps() -> None:
        hub = Hub()
        async with (
            TellingNode(MemoryLog(hub), queue_bytes_max=500) as one,
            TellingNode(MemoryLog(hub)) as two,
        ):
            hub.leave()
            assert one.room.send("a" * 10) == 0
            assert one.room.send("b" * 10) == 0
            assert one.room.send("too long" * 100) == 1
            assert one.room.send("c" * 10) == 0
            assert one.room.send("too long" * 100) == 1
            hub.come_back()
            expected = ["a" * 10, "b" * 10, "gap 1", "c" * 10, "gap 1"]
            await until(lambda: two.room.got == expected)
            await until(lambda: one.room.got == expected)

    run(steps)


def test_a_batch_that_was_refused_is_not_taken_for_one_that_is_there() -> None:
    """What follows a loss is appended behind what came before it, and never in its place."""

    async def steps() -> None:
        hub = Hub()
        log = MemoryLog(hub)
        async with (
            TellingNode(log, queue_bytes_max=500) as one,
            TellingNode(MemoryLog(hub)) as two,
        ):
            one.room.send("begin")
            await until(lambda: two.room.got == ["begin"])
            hub.leave()
            one.room.send("a")
            await asyncio.sleep(0.01)  # so that it is a batch of its own
            one.room.send("too long" * 100)
            one.room.send("b")
            hub.come_back()
            await until(lambda: two.room.got == ["begin", "a", "gap 1", "b"])

    run(steps)


@NO_REDIS
@pytest.mark.parametrize("is_own", [False, True], ids=["url", "client"])
@pytest.mark.parametrize("senders", [1, 3])
def test_a_node_that_is_cut_off_is_told_how_many_it_has_missed(
    redis: Redis, senders: int, *, is_own: bool
) -> None:
    """Scale S6: what has come and what is told as missing is all that was sent."""

    async def steps() -> None:
        cable = Cable(redis)
        away = TellingNode(RedisLog(client(cable.url, 0.5, is_own=is_own), "p", keep=100))
        others = [
            TellingNode(RedisLog(client(redis.url, is_own=is_own), "p", keep=100))
            for _ in range(senders)
        ]
        async with away:
            for one in others:
                await one.__aenter__()
            sent = 0

            async def send(count: int) -> None:
                nonlocal sent
                for _ in range(count):
                    for one in others:
                        one.room.send(f"{sent}")
                        sent += 1
                    # One record for each: the loop has a turn, and Redis has it.
                    await until(lambda: all(len(one.room.got) == sent for one in others))

            await send(5)
            await until(lambda: len(away.room.got) == sent)
            cable.cut()
            await send(900 // senders)
            await until(lambda: not away.stats.is_connected)
            cable.join()
            await until(lambda: away.stats.is_connected)
            await send(5)
            await until(lambda: len(away.room.messages) + away.room.missed == sent)
            assert away.room.missed > 300
            assert away.stats.gaps == away.room.missed
            for number in range(senders):
                # Each sender's in order, and none twice.
                own = [int(one) for one in away.room.messages if int(one) % senders == number]
                assert own == sorted(set(own))
            for one in others:
                assert one.room.missed == 0
                await one.__aexit__()
        cable.close()

    run(steps)


@NO_REDIS
def test_what_a_dead_sender_has_sent_is_told_without_a_message_behind_it(redis: Redis) -> None:
    """Scale S6: the stream has ended or was given up, and nothing else is sent."""

    async def steps() -> None:
        cable = Cable(redis)
        async with TellingNode(RedisLog(client(cable.url, 0.5), "p")) as away:
            async with TellingNode(RedisLog(client(redis.url), "p")) as other:
                other.room.send("0")
                await until(lambda: away.room.got == ["0"])
                cable.cut()
                for number in range(1, 31):
                    other.room.send(f"{number}")
                await until(lambda: len(other.room.got) == 31)
                await until(lambda: not away.stats.is_connected)
            redis.cli("DEL", "p:log:{a}")
            cable.join()
            await until(lambda: away.room.got == ["0", "gap 30"])
        cable.close()

    run(steps)


@NO_REDIS
def test_a_node_that_was_away_shortly_misses_nothing_and_is_told_of_nothing(redis: Redis) -> None:
    """Also over a Redis that has lost its memory meanwhile: senders send theirs again."""

    async def steps() -> None:
        cable = Cable(redis)
        async with (
            TellingNode(RedisLog(client(cable.url, 0.5), "p")) as away,
            TellingNode(RedisLog(client(redis.url), "p")) as other,
        ):
            for outage in range(3):
                cable.cut()
                for number in range(50):
                    other.room.send(f"{outage} {number}")
                await until(lambda: len(other.room.got) == 50 * (outage + 1))
                await until(lambda: not away.stats.is_connected)
                if outage == 1:
                    await asyncio.to_thread(redis.restart, empty=True)
                cable.join()
                await until(lambda: len(away.room.messages) == 50 * (outage + 1))
            assert away.room.missed == other.room.missed == 0
        cable.close()

    run(steps)


@NO_REDIS
def test_a_channel_forgets_senders_that_are_gone(redis: Redis) -> None:
    """Scale S9: its hash has the senders of the last records, and those that come back begin again."""

    async def steps() -> None:
        own = client(redis.url)
        keep = 50
        async with (
            TellingNode(RedisLog(client(redis.url), "p", keep=keep)) as seldom,
            TellingNode(RedisLog(client(redis.url), "p", keep=keep)) as last,
        ):
            seldom.room.send("seldom 1")
            await until(lambda: last.room.got == ["seldom 1"])
            for number in range(30):
                async with TellingNode(RedisLog(own, "p", keep=keep)) as node:
                    node.cluster._log.close = _nothing  # type: ignore[method-assign]
                    for turn in range(20):
                        node.room.send(f"{number} {turn}")
                        await until(lambda t=turn: f"{number} {t}" in node.room.got)
            fields = redis.cli("HKEYS", "p:meta:{a}").split()
            assert len([name for name in fields if not name.startswith("@")]) < 2 + 30
            seldom.room.send("seldom 2")
            await until(lambda: last.room.got[-1] == "seldom 2")
            assert last.room.got.count("seldom 1") == 1
            assert last.room.missed == seldom.room.missed == 0

    run(steps)


async def _nothing() -> None:
    """The client is that of several nodes."""


class LateRoom(TellingRoom):
    """One whose gaps may be of a number that is not known."""

    def _gap(self, count: int) -> None:
        self.got.append(f"gap {count}")


@pytest.mark.parametrize("is_own", [False, True])
@NO_REDIS
def test_a_room_that_is_made_late_is_followed_at_once(redis: Redis, is_own: bool) -> None:
    """hostile 4, 7, their kind: for half a second its members had nothing of other nodes, without a sign."""

    async def steps() -> None:
        def log() -> RedisLog:
            return RedisLog(client(redis.url, is_own=is_own), "p")

        async with Node(log(), ["a", "b"]) as one, Node(log(), ["c"]) as two:
            loop = asyncio.get_running_loop()
            waited: list[float] = []
            for name in ("a", "b"):
                one.rooms[name].send("before")
                await until(lambda name=name: one.rooms[name].got == ["before"])
                late = LateRoom()
                made_at = loop.time()
                two.cluster.share(name, late)
                number = 0
                while not late.got:
                    number += 1
                    one.rooms[name].send(str(number))
                    await asyncio.sleep(0.001)  # the room's messages go on until one comes
                waited.append(loop.time() - made_at)
                last = str(number)
                await until(lambda late=late, last=last: late.got[-1] == last)
                # Without holes from the first on.
                assert late.got == [str(at) for at in range(int(late.got[0]), number + 1)]
            # The next look of its own would be after half a second.
            assert min(waited) < 0.25

    run(steps)


@pytest.mark.parametrize("is_made_late", [False, True])
@NO_REDIS
def test_members_who_came_before_the_engine_are_told_of_a_gap(
    redis: Redis, is_made_late: bool
) -> None:
    """A node that has no engine when its room's first members come; what others send then is not known."""

    async def steps() -> None:
        cable = Cable(redis)
        one = Node(RedisLog(client(redis.url), "p"), ["a"])
        two = Node(RedisLog(client(cable.url, 0.5), "p"), ["b"])
        late = LateRoom()
        try:
            async with one:
                if is_made_late:
                    await two.cluster.start(5)
                    await until(lambda: two.cluster.is_connected)
                    cable.cut()
                    await until(lambda: not two.cluster.is_connected)
                    two.cluster.share("a", late)
                else:
                    cable.cut()
                    two.cluster.share("a", late)
                    await two.cluster.start(0.1)
                # A member joins `late` here, and misses this.
                one.rooms["a"].send("missed")
                await until(lambda: one.rooms["a"].got == ["missed"])
                await asyncio.sleep(0.3)  # longer than it takes where the engine is there
                cable.join()
                await until(lambda: late.got == ["gap 0"])
                one.rooms["a"].send("next")
                await until(lambda: late.got == ["gap 0", "next"])
        finally:
            await two.cluster.stop()
            cable.close()

    run(steps)
