"""Rooms over a real NATS with JetStream that is killed, emptied, stopped, and written to by others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from engines_rig import Cable, Nats
from nodes import FakeRoom, Node, until

if Nats.program() is None:
    pytest.skip("nats-server is not installed", allow_module_level=True)
nats_py = pytest.importorskip("nats", reason="nats-py is not installed")

from citius.cluster.natslog import NatsLog  # noqa: E402


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[Nats]:
    made = Nats(tmp_path / "nats")
    yield made
    made.close()


def log(nats: Nats, keep: int = 1000) -> NatsLog:
    return NatsLog([nats.url], "test", keep=keep)


def run(steps: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(steps())  # pyright: ignore[reportArgumentType]


def test_one_order_for_all(nats: Nats) -> None:
    async def steps() -> None:
        async with Node(log(nats), ["a", "b"]) as one, Node(log(nats), ["a"]) as two:
            for number in range(200):
                one.rooms["a"].send(f"1-{number}")
                two.rooms["a"].send(f"2-{number}")
                one.rooms["b"].send(f"b-{number}")
                if number % 20 == 0:
                    await asyncio.sleep(0.001)  # several batches
            await until(lambda: len(one.rooms["a"].got) == len(two.rooms["a"].got) == 400)
            await until(lambda: len(one.rooms["b"].got) == 200)
            assert one.rooms["a"].got == two.rooms["a"].got
            for sender in "12":
                got = [text for text in two.rooms["a"].got if text.startswith(sender)]
                assert got == [f"{sender}-{number}" for number in range(200)]

    run(steps)


@pytest.mark.parametrize("empty", [False, True])
def test_a_nats_that_is_killed_loses_nothing(nats: Nats, empty: bool) -> None:
    async def steps() -> None:
        async with Node(log(nats), ["a"]) as one, Node(log(nats), ["a"]) as two:
            sent: list[str] = []

            async def send(count: int) -> None:
                for _ in range(count):
                    sent.append(str(len(sent)))
                    assert one.rooms["a"].send(sent[-1]) == 0
                    await asyncio.sleep(0.002)  # the pace of the sender

            await send(50)
            await asyncio.to_thread(nats.kill)
            await send(50)
            if empty:
                nats.empty()
            await asyncio.gather(asyncio.to_thread(nats.start), send(50))
            await send(50)
            await until(lambda: min(len(n.rooms["a"].got) for n in (one, two)) >= len(sent))
            assert one.rooms["a"].got == sent
            assert two.rooms["a"].got == sent

    run(steps)


def test_a_nats_that_hangs_holds_up_no_sender(nats: Nats) -> None:
    async def steps() -> None:
        async with Node(log(nats), ["a"]) as one, Node(log(nats), ["a"]) as two:
            one.rooms["a"].send("1")
            await until(lambda: two.rooms["a"].got == ["1"])
            nats.hang()
            for number in range(2, 100):
                one.rooms["a"].send(str(number))
            await until(lambda: one.stats.outages == two.stats.outages == 1)
            nats.go_on()
            await until(lambda: len(two.rooms["a"].got) == len(one.rooms["a"].got) == 99)
            assert two.rooms["a"].got == one.rooms["a"].got == [str(n) for n in range(1, 100)]

    run(steps)


def test_a_late_node_gets_the_history(nats: Nats) -> None:
    async def steps() -> None:
        async with Node(log(nats), ["a", "b"], history=3) as one:
            for number in range(5):
                one.rooms["a"].send(str(number))
                await until(lambda number=number: one.rooms["a"].got[-1:] == [str(number)])
            async with Node(log(nats), ["a"], history=3) as two:
                assert two.rooms["a"].old == ["2", "3", "4"]
                assert two.rooms["a"].got == []
                one.rooms["a"].send("5")
                await until(lambda: two.rooms["a"].got == ["5"])

    run(steps)


@pytest.mark.parametrize("history", [0, 3])
def test_a_room_that_is_made_late_gets_its_own_messages_and_those_of_others(
    nats: Nats, history: int
) -> None:
    """issue 32 H: in the turn in which it is made, it sends, and so does another node; each comes once."""

    async def steps() -> None:
        async with (
            Node(log(nats), ["a"], history=history) as one,
            Node(log(nats), ["b"], history=history) as two,
        ):
            for number in range(2):
                one.rooms["a"].send(f"before {number}")
            await until(lambda: len(one.rooms["a"].got) == 2)
            room = FakeRoom(history)
            two.cluster.share("a", room)
            for number in range(3):
                room.send(f"own {number}")
                one.rooms["a"].send(f"other {number}")
            await until(lambda: len(one.rooms["a"].got) == 8)
            sent = one.rooms["a"].got[2:]
            await until(lambda: len(room.got) == len(sent))
            assert room.got == sent
            assert [text for text in sent if text.startswith("own")] == ["own 0", "own 1", "own 2"]

    run(steps)


def test_what_others_write_is_counted_and_dropped(nats: Nats) -> None:
    async def steps() -> None:
        async with Node(log(nats), ["a"]) as one:
            stranger = await nats_py.connect(nats.url)
            subject = "citius.test." + b"a".hex()
            for data in (b"rubbish", b"CTS\x09" + bytes(50), b"CTS\x01" + bytes(50)):
                await stranger.publish(subject, data)
            await stranger.publish("citius.test.nonsense", b"x")
            await stranger.flush()
            one.rooms["a"].send("ours")
            await until(lambda: one.rooms["a"].got == ["ours"])
            assert one.stats.foreign == {"not ours": 1, "version": 1, "key": 1}
            await stranger.close()

    run(steps)


class TellingRoom(FakeRoom):
    """A room that notes gaps; 0: it is not known how many messages are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[int] = []

    def _gap(self, count: int) -> None:
        self.gaps.append(count)


class TellingNode(Node):
    def __init__(self, log: NatsLog) -> None:
        super().__init__(log, [])
        for name in ("a", "quiet"):
            self.rooms[name] = TellingRoom()
            self.cluster.share(name, self.rooms[name])


@pytest.mark.parametrize("count", [50, 900])
@pytest.mark.parametrize("is_quiet", [False, True], ids=["alone", "beside a quiet room"])
def test_a_node_that_is_cut_off_is_told_of_what_it_has_missed(
    nats: Nats, count: int, is_quiet: bool
) -> None:
    """Scale S6: the messages of another room that are still kept are no sign that all are."""

    async def steps() -> None:
        cable = Cable(nats)
        away = TellingNode(NatsLog([cable.url], "test", keep=100))
        async with away, TellingNode(log(nats, keep=100)) as other:
            if is_quiet:
                other.rooms["quiet"].send("early")
                await until(lambda: away.rooms["quiet"].got == ["early"])
            sent = 0

            async def send(more: int) -> None:
                nonlocal sent
                for _ in range(more):
                    other.rooms["a"].send(f"{sent}")
                    sent += 1
                    await until(lambda: len(other.rooms["a"].got) == sent)

            await send(5)
            await until(lambda: len(away.rooms["a"].got) == sent)
            cable.cut()
            await send(count)
            if count > 100:
                await until(lambda: not away.stats.is_connected)
            cable.join()
            await until(lambda: away.stats.is_connected)
            await send(5)
            room = away.rooms["a"]
            await until(lambda: room.got[-1] == str(sent - 1))
            got = [int(one) for one in room.got]
            assert got == sorted(set(got))
            assert isinstance(room, TellingRoom)
            if count <= 100:
                assert (len(got), room.gaps) == (sent, [])
            else:
                assert len(got) < sent
                assert room.gaps
                assert sum(room.gaps) == sent - len(got)
            assert away.rooms["quiet"].got == ["early"] * is_quiet
            assert other.rooms["a"].got == [str(number) for number in range(sent)]
        cable.close()

    run(steps)
