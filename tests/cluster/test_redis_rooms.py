"""Rooms over a real Redis that is killed, emptied, stopped, full, and written to by others."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from citius.cluster.redislog import RedisLog
from citius.cluster.shardedlog import ShardedLog
from engines_rig import REDIS_KINDS, Redis
from nodes import KEY, Node, client, run, until

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)


class OfOwnClient(Redis):
    """A Redis whose nodes ask it by a client of the application; those of the others by a URL."""


@pytest.fixture(params=[*REDIS_KINDS, OfOwnClient], ids=lambda kind: kind.__name__.lower())
def redis(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Redis]:
    made: Redis = request.param(tmp_path / "redis")
    yield made
    made.close()


def log(redis: Redis, **options: Any) -> RedisLog:
    made = client(redis.url, is_own=isinstance(redis, OfOwnClient))
    return RedisLog(made, "citius:test", **options)


def test_one_order_for_all_and_one_record_for_what_is_sent_together(redis: Redis) -> None:
    async def steps() -> None:
        async with Node(log(redis), ["a", "b"]) as one, Node(log(redis), ["a"]) as two:
            for number in range(300):
                one.rooms["a"].send(f"1-{number}")
                two.rooms["a"].send(f"2-{number}")
                one.rooms["b"].send(f"b-{number}")
                if number % 20 == 0:
                    await asyncio.sleep(0.001)  # several batches
            await until(lambda: len(one.rooms["a"].got) == len(two.rooms["a"].got) == 600)
            await until(lambda: len(one.rooms["b"].got) == 300)
            assert one.rooms["a"].got == two.rooms["a"].got
            for sender in "12":
                got = [text for text in two.rooms["a"].got if text.startswith(sender)]
                assert got == [f"{sender}-{number}" for number in range(300)]
            assert one.stats.batches_sent < 100
            # A room that is not here is not sent here.
            assert two.stats.batches_received < one.stats.batches_received

    run(steps)


@pytest.mark.parametrize("empty", [False, True])
def test_a_redis_that_is_killed_loses_nothing(redis: Redis, empty: bool) -> None:
    """With its file, and restarted empty: senders go on all the time."""

    async def steps() -> None:
        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["a"]) as two:
            sent: list[str] = []

            async def send(count: int) -> None:
                for _ in range(count):
                    sent.append(str(len(sent)))
                    assert one.rooms["a"].send(sent[-1]) == 0
                    await asyncio.sleep(0.001)  # the pace of the sender

            await send(100)
            for _ in range(2):
                await asyncio.to_thread(redis.kill)
                await send(100)
                if empty:
                    redis.empty()
                await asyncio.gather(asyncio.to_thread(redis.start), send(100))
                await send(100)
                # Two outages, not a longer one.
                await until(lambda: one.cluster.is_connected and two.cluster.is_connected)
            await until(lambda: min(len(n.rooms["a"].got) for n in (one, two)) >= len(sent))
            assert one.rooms["a"].got == sent
            assert two.rooms["a"].got == sent
            assert one.stats.outages == two.stats.outages == 2
            await until(lambda: one.stats.queued_bytes == 0)

    run(steps)


def test_what_an_emptied_redis_had_confirmed_comes_again(redis: Redis) -> None:
    """The receiver was cut off; its sender sends nothing after the loss."""

    async def steps() -> None:
        async with Node(log(redis), ["a"]) as one:
            two = Node(log(redis), ["a"])
            async with two:
                one.rooms["a"].send("1")
                await until(lambda: two.rooms["a"].got == ["1"])
                two.cluster._tasks[0].cancel()
                await asyncio.wait([two.cluster._tasks[0]])
                one.rooms["a"].send("2")
                await until(lambda: one.stats.queued_bytes == 0)
                await asyncio.to_thread(redis.restart, empty=True)
                two.cluster._tasks[0] = asyncio.ensure_future(two.cluster._log.run(two.cluster))
                await until(lambda: two.rooms["a"].got == ["1", "2"])
                assert one.rooms["a"].got == ["1", "2"]

    run(steps)


def test_a_redis_that_goes_back_in_time_stops_nothing(redis: Redis, tmp_path: Path) -> None:
    """Restored from a copy of its file that is older than what nodes have seen."""

    async def steps() -> None:
        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["a"]) as two:
            one.rooms["a"].send("1")
            await until(lambda: two.rooms["a"].got == ["1"])
            shutil.copytree(redis.directory / "appendonlydir", tmp_path / "copy")
            for text in ("2", "3", "4"):
                one.rooms["a"].send(text)
                await until(lambda text=text: two.rooms["a"].got[-1] == text)
            await asyncio.to_thread(redis.kill)
            redis.empty()
            shutil.copytree(tmp_path / "copy", redis.directory / "appendonlydir")
            await asyncio.to_thread(redis.start)
            two.rooms["a"].send("5")
            one.rooms["a"].send("6")
            await until(lambda: len(two.rooms["a"].got) == len(one.rooms["a"].got) == 6)
            assert one.rooms["a"].got[:4] == two.rooms["a"].got[:4] == ["1", "2", "3", "4"]
            assert sorted(one.rooms["a"].got) == sorted(two.rooms["a"].got) == list("123456")

    run(steps)


def test_a_node_without_an_engine_gets_its_own_messages_when_there_is_one(redis: Redis) -> None:
    async def steps() -> None:
        redis.kill()
        node = Node(log(redis), ["a"])
        await node.cluster.start(0.05)
        node.rooms["a"].send("early")
        await until(lambda: node.stats.outages == 1)
        await asyncio.to_thread(redis.start)
        await until(lambda: node.rooms["a"].got == ["early"])
        await node.cluster.stop()

    run(steps)


def test_a_redis_that_hangs_holds_up_no_sender(redis: Redis) -> None:
    async def steps() -> None:
        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["a"]) as two:
            one.rooms["a"].send("1")
            await until(lambda: two.rooms["a"].got == ["1"])
            redis.hang()
            begun = asyncio.get_running_loop().time()
            for number in range(2, 200):
                one.rooms["a"].send(str(number))
            assert asyncio.get_running_loop().time() - begun < 1
            await until(lambda: one.stats.outages == two.stats.outages == 1)
            redis.go_on()
            await until(lambda: len(two.rooms["a"].got) == len(one.rooms["a"].got) == 199)
            assert two.rooms["a"].got == one.rooms["a"].got == [str(n) for n in range(1, 200)]

    run(steps)


def test_a_node_that_was_away_reads_what_it_has_missed(redis: Redis) -> None:
    async def steps() -> None:
        one, two = Node(log(redis, keep=50), ["a"]), Node(log(redis, keep=50), ["a"])
        async with one, two:
            one.rooms["a"].send("0")
            await until(lambda: two.rooms["a"].got == ["0"])
            redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
            for number in range(1, 40):
                one.rooms["a"].send(str(number))
                await until(lambda: one.stats.queued_bytes == 0)
            await until(lambda: len(two.rooms["a"].got) == 40)
            assert two.rooms["a"].got == [str(number) for number in range(40)]
            assert two.stats.gaps == 0

    run(steps)


def test_what_is_no_longer_kept_is_counted(redis: Redis) -> None:
    async def steps() -> None:
        one, two = Node(log(redis, keep=10), ["a"]), Node(log(redis, keep=10), ["a"])
        async with one, two:
            one.rooms["a"].send("0")
            await until(lambda: two.rooms["a"].got == ["0"])
            two.cluster._tasks[0].cancel()
            await asyncio.wait([two.cluster._tasks[0]])
            # Redis gives up nodes of a hundred records as a whole.
            for number in range(1, 300):
                one.rooms["a"].send(str(number))
                await until(lambda: one.stats.queued_bytes == 0)
            two.cluster._tasks[0] = asyncio.ensure_future(two.cluster._log.run(two.cluster))
            await until(lambda: two.rooms["a"].got[-1] == "299")
            assert two.stats.gaps == 300 - len(two.rooms["a"].got) > 0

    run(steps)


def test_a_late_node_gets_the_history_and_nothing_twice(redis: Redis) -> None:
    async def steps() -> None:
        async with Node(log(redis), ["a"], history=3) as one:
            for number in range(5):
                one.rooms["a"].send(str(number))
                await until(lambda number=number: one.rooms["a"].got[-1:] == [str(number)])
            async with (
                Node(log(redis), ["a"], history=3) as two,
                Node(log(redis), ["a"]) as three,
            ):
                assert two.rooms["a"].old == ["2", "3", "4"]
                assert three.rooms["a"].old == []
                # Their first outage makes them read all of it again.
                await asyncio.to_thread(redis.restart)
                one.rooms["a"].send("5")
                await until(lambda: two.rooms["a"].got and three.rooms["a"].got)
                assert two.rooms["a"].got == three.rooms["a"].got == ["5"]

    run(steps)


def test_a_room_that_is_made_later_is_followed_too(redis: Redis) -> None:
    async def steps() -> None:
        from nodes import FakeRoom

        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["b"]) as two:
            room = FakeRoom()
            two.cluster.share("a", room)
            await until(lambda: b"a" in two.cluster._log._positions)
            one.rooms["a"].send("hello")
            await until(lambda: room.got == ["hello"])

    run(steps)


def test_what_others_write_is_counted_and_displaces_nothing(redis: Redis) -> None:
    """Other versions, other secrets, rubbish, and records with the next numbers."""

    async def steps() -> None:
        from citius.cluster.records import Message, Record, key_of, pack

        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["a"]) as two:
            one.rooms["a"].send("1")
            await until(lambda: two.rooms["a"].got == ["1"])
            say, stream = "citius:test:say:{a}", "citius:test:log:{a}"
            (birth,) = {one_log._positions[b"a"][0] for one_log in (one.cluster._log,)}
            stranger = client(redis.url)
            other = pack(key_of("x", "y"), b"a", Record(b"stranger", 1, (Message(True, b"?"),)))
            published = [
                b"rubbish",
                b"%d-2 rubbish" % birth,
                b"%d-2 " % birth + other,
                b"%d-2 CTS\x09" % birth + bytes(50),
            ]
            counts = two.stats.foreign
            async with asyncio.timeout(20):
                # Again, if need be: a node whose connection was lost hears nothing until it has another.
                while not (counts.get("not ours", 0) >= 2 and counts.keys() >= {"key", "version"}):
                    await stranger.pipeline([["PUBLISH", say, data] for data in published])
                    await asyncio.sleep(0.05)  # the node hears it, or connects
            added = [
                ["XADD", stream, f"{birth}-2", "r", other],
                ["XADD", stream, f"{birth}-900", "x", "y"],
            ]
            await stranger.pipeline(added)
            for text in "234":
                one.rooms["a"].send(text)
            await until(lambda: len(two.rooms["a"].got) == 4)
            assert two.rooms["a"].got == one.rooms["a"].got == list("1234")
            await stranger.pipeline([["SET", stream, "another type"]])
            one.rooms["a"].send("5")
            await until(lambda: two.rooms["a"].got[-1] == "5")

    run(steps)


def test_what_others_have_put_in_the_place_of_a_log_is_replaced(redis: Redis) -> None:
    """And the other rooms go on meanwhile."""

    async def steps() -> None:
        redis.cli("RPUSH", "citius:test:meta:{a}", "theirs")
        redis.cli("SET", "citius:test:log:{b}", "theirs")
        redis.cli("HSET", "citius:test:meta:{c}", "b", "theirs", "n", "theirs")
        async with Node(log(redis), ["a", "b", "c", "d"], 5) as node:
            assert node.cluster.is_connected
            for room in node.rooms.values():
                room.send("ours")
            await until(lambda: all(room.got == ["ours"] for room in node.rooms.values()))
        async with Node(log(redis), ["a", "b", "c", "d"], 5) as node:
            assert all(room.old == ["ours"] for room in node.rooms.values())

    run(steps)


def test_rooms_have_any_name(redis: Redis) -> None:
    """Texts of clients may be part of it, and JSON has halves of surrogate pairs."""
    names = ["", "}", "}a", "a}b", "%7d", "%", "\ud800", "a\0b", "a\nb", "{", "{}", "\xfc"]

    async def steps() -> None:
        async with Node(log(redis), names) as one, Node(log(redis), names) as two:
            for name, room in one.rooms.items():
                room.send(name.encode(errors="surrogatepass").hex())
            for name, room in two.rooms.items():
                expected = [name.encode(errors="surrogatepass").hex()]
                await until(lambda room=room, expected=expected: room.got == expected, name)

    run(steps)
    for key in redis.cli("--no-raw", "KEYS", "citius:test:*").splitlines():
        # In a cluster the keys of a room are on the node that this says.
        assert ":{}" not in key


def test_a_node_of_a_cluster_whose_replica_was_behind_costs_no_message(redis: Redis) -> None:
    """The log goes back in time while its subscribers are connected: numbers of records come again."""

    async def steps() -> None:
        keys = ["citius:test:log:{a}", "citius:test:meta:{a}"]
        own = client(redis.url)
        async with Node(log(redis), ["a"]) as one, Node(log(redis), ["a"]) as two:
            rooms = [one.rooms["a"], two.rooms["a"]]
            for text in ("1", "2", "3"):
                if text == "2":
                    before = await own.pipeline([["DUMP", key] for key in keys])
                rooms[0].send(text)
                await until(lambda text=text: all(room.got[-1:] == [text] for room in rooms))
            state = zip(keys, before, strict=True)
            await own.pipeline([["RESTORE", key, 0, said, "REPLACE"] for key, said in state])
            for text in ("4", "5", "6"):
                rooms[1].send(text)
                await until(lambda text=text: all(room.got[-1:] == [text] for room in rooms))
            assert [room.got for room in rooms] == [[str(number) for number in range(1, 7)]] * 2
            assert one.stats.gaps == two.stats.gaps == 0

    run(steps)


def test_nodes_with_another_secret_do_not_hear_of_one_another(redis: Redis) -> None:
    async def steps() -> None:
        from citius.cluster.records import key_of

        other = Node(log(redis), ["a"], key=key_of("secret", "test"))
        async with Node(log(redis), ["a"], key=KEY) as one, other:
            one.rooms["a"].send("1")
            await until(lambda: other.stats.foreign.get("key") == 1)
            assert other.rooms["a"].got == []

    run(steps)


def test_a_redis_without_memory_is_asked_again(redis: Redis) -> None:
    async def steps() -> None:
        async with Node(log(redis), ["a"]) as one:
            redis.cli("CONFIG", "SET", "maxmemory", "1")
            for number in range(10):
                one.rooms["a"].send(str(number))
                await asyncio.sleep(0.01)  # several batches
            assert len(one.rooms["a"].got) < 2
            redis.cli("CONFIG", "SET", "maxmemory", "0")
            await until(lambda: len(one.rooms["a"].got) == 10)
            assert one.rooms["a"].got == [str(number) for number in range(10)]

    run(steps)


def test_rooms_are_divided_between_several(tmp_path: Path) -> None:
    """One of them is away: rooms of the others go on, its own wait."""
    engines = [Redis(tmp_path / str(number)) for number in range(3)]
    names = [f"room-{number}" for number in range(30)]

    def sharded() -> ShardedLog:
        return ShardedLog([log(one) for one in engines], [one.url for one in engines])

    async def steps() -> None:
        async with Node(sharded(), names) as one, Node(sharded(), names) as two:
            where = {name: one.cluster._log.log_of(name.encode()) for name in names}
            assert set(where.values()) == {0, 1, 2}
            await asyncio.to_thread(engines[0].kill)
            for name in names:
                one.rooms[name].send("1")
            there = [name for name in names if where[name] != 0]
            await until(lambda: all(two.rooms[name].got == ["1"] for name in there))
            assert all(two.rooms[name].got == [] for name in names if where[name] == 0)
            await asyncio.to_thread(engines[0].start)
            await until(lambda: all(two.rooms[name].got == ["1"] for name in names))

    try:
        run(steps)
    finally:
        for engine in engines:
            engine.close()
