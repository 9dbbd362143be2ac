"""Go's rules for channels, in every place. Greenlets run in processes of their own."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest
from citius.go import Chan, ChannelClosed, Selected, WaitGroup, after, chan, go, select, sleep
from places import LOOPS, check_alone, program, run_async


class TestThreads:
    def test_values_come_in_the_order_sent(self) -> None:
        for capacity in (0, 1, 5):
            channel = chan(capacity)

            def produce() -> None:
                with channel:
                    for n in range(50):
                        channel.send(n)

            goroutine = go(produce)
            assert list(channel) == list(range(50))
            assert goroutine.join() is None
            assert channel.closed

    def test_a_closed_channel_yields_what_is_left_and_then_nothing(self) -> None:
        channel = chan(2)
        channel.send("a")
        channel.send("b")
        channel.close()
        assert [channel.recv() for _ in range(4)] == [
            ("a", True), ("b", True), (None, False), (None, False),
        ]  # fmt: skip

    def test_sending_on_a_closed_channel_and_closing_twice_raise(self) -> None:
        channel = chan(1)
        channel.close()
        with pytest.raises(ChannelClosed, match="send on a closed channel"):
            channel.send(1)
        with pytest.raises(ChannelClosed, match="send on a closed channel"):
            select((channel, 1))
        with pytest.raises(ChannelClosed, match="close of a closed channel"):
            channel.close()
        with channel:
            pass

    def test_a_waiting_sender_is_told_of_the_close(self) -> None:
        channel = chan()
        sender = go(channel.send, 1)
        while "1 sending" not in repr(channel):
            time.sleep(0.001)
        channel.close()
        with pytest.raises(ChannelClosed):
            sender.join()

    def test_select_takes_what_can_be_done(self) -> None:
        a, b = chan(1), chan(1)
        b.send(5)
        assert select(a, b, None) == Selected(1, 5, True)
        assert select(a, b, default=True) == Selected(None, None, False)
        assert select(a, (b, 6)) == Selected(1, None, True)
        assert select(b) == (0, 6, True)
        a.close()
        assert select(b, a) == Selected(1, None, False)
        assert select(None, (None, 1), default=True).case is None

    def test_select_is_even(self) -> None:
        a, b = chan(1), chan(1)
        a.send(0)
        b.send(0)
        chosen = [0, 0]
        for _ in range(2000):
            case = select(a, b).case
            assert case is not None
            chosen[case] += 1
            (a, b)[case].send(0)
        assert min(chosen) > 800

    def test_select_waits_and_sends(self) -> None:
        a, b = chan(), chan()
        receiver = go(b.recv)
        assert select(a, (b, "x")).case == 1
        assert receiver.join() == ("x", True)
        assert (repr(a), repr(b)) == ("<Chan 0/0, 0 receiving, 0 sending>",) * 2

    def test_after_and_sleep(self) -> None:
        began = time.monotonic()
        sleep(0.02)  # that of citius.go, under test
        timeout = after(0.02)
        case, told, ok = select(chan(), timeout)
        assert (case, ok) == (1, True)
        assert abs(time.time() - told) < 5
        assert time.monotonic() - began >= 0.04

    def test_wait_group(self) -> None:
        group = WaitGroup()
        group.wait()
        results = []
        for n in range(5):
            group.add()

            def work(n: int = n) -> None:
                results.append(n)
                group.done()

            go(work)
        group.wait()
        assert sorted(results) == [0, 1, 2, 3, 4]
        assert (group.count, repr(group)) == (0, "<WaitGroup 0>")
        with pytest.raises(ValueError, match="below zero"):
            group.done()

    def test_len_cap_bool_and_repr(self) -> None:
        channel: Chan[int] = chan(3)
        channel.send(1)
        assert (len(channel), channel.cap, bool(chan())) == (1, 3, True)
        assert repr(channel) == "<Chan 1/3, 0 receiving, 0 sending>"
        channel.close()
        assert repr(channel) == "<Chan 1/3, 0 receiving, 0 sending, closed>"
        assert repr(Chan[int]) == "citius._core.Chan[int]"

    def test_wrong_arguments_are_named(self) -> None:
        with pytest.raises(ValueError, match="0 or more, not -1"):
            chan(-1)
        with pytest.raises(TypeError, match="case 1 of select must be .* got int"):
            select(chan(), 3)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="go takes a function"):
            go(3)  # type: ignore[call-overload]

    def test_waiters_are_served_in_their_order(self) -> None:
        channel, order = chan(), []

        def receive(name: int) -> None:
            order.append((name, channel.recv()[0]))

        waiting = []
        for name in range(4):
            waiting.append(go(receive, name))
            while f"{name + 1} receiving" not in repr(channel):
                time.sleep(0.001)
        for n in range(4):
            channel.send(n)
            waiting[n].join()
        assert order == [(n, n) for n in range(4)]

    def test_what_is_in_a_channel_is_collected_with_it(self) -> None:
        class Thing:
            pass

        channel = chan(1)
        thing = Thing()
        thing.channel = channel  # type: ignore[attr-defined]
        channel.send(thing)
        gone = weakref.ref(channel)
        del channel, thing
        gc.collect()
        assert gone() is None

    def test_a_value_whose_end_uses_the_channel_does_no_harm(self) -> None:
        channel = chan(4)

        class Sender:
            def __del__(self) -> None:
                channel.send("from the end of a value")

        channel.send(Sender())
        channel.recv()
        assert channel.recv() == ("from the end of a value", True)


@pytest.mark.parametrize("loop", LOOPS)
class TestCoroutines:
    def test_values_come_in_the_order_sent(self, loop: str) -> None:
        async def main() -> None:
            for capacity in (0, 1, 5):
                channel = chan(capacity)

                async def produce(channel: Chan[int] = channel) -> str:
                    with channel:
                        for n in range(500):
                            await channel.send(n)
                    return "done"

                goroutine = go(produce)
                assert [n async for n in channel] == list(range(500))
                assert await goroutine == "done"
                assert await channel.recv() == (None, False)
                with pytest.raises(ChannelClosed):
                    await channel.send(1)

        run_async(main, loop)

    def test_select_and_after(self, loop: str) -> None:
        async def main() -> None:
            a, b = chan(), chan()
            timeout = after(0.01)
            assert (await select(a, b, timeout)).case == 2
            go(b.send, 7)
            assert await select(a, b) == Selected(1, 7, True)
            assert (await select(a, default=True)).case is None
            assert select(a, default=True).case is None
            await sleep(0)

        run_async(main, loop)

    def test_wait_group(self, loop: str) -> None:
        async def main() -> None:
            group = WaitGroup()
            group.add(100)
            results = []

            async def work(n: int) -> None:
                await sleep(0)
                results.append(n)
                group.done()

            for n in range(100):
                go(work, n)
            await group.wait()
            assert results == list(range(100))

        run_async(main, loop)

    def test_other_callbacks_have_their_turn(self, loop: str) -> None:
        """A pair that never pauses does not keep others from running."""

        async def main() -> None:
            import asyncio

            there, back, stop = chan(), chan(), []

            async def echo() -> None:
                async for n in there:
                    await back.send(n)

            go(echo)
            asyncio.get_running_loop().call_later(0.01, stop.append, 1)
            count = 0
            while not stop:
                await there.send(count)
                assert await back.recv() == (count, True)
                count += 1
                assert count < 1_000_000
            there.close()

        run_async(main, loop)


def test_threads_run_while_another_waits() -> None:
    channel = chan()
    waiting = threading.Thread(target=channel.recv)
    waiting.start()
    assert sum(range(1000)) == 499500
    channel.send(1)
    waiting.join(5)
    assert not waiting.is_alive()


class TestGreenlets:
    def test_rules(self) -> None:
        pytest.importorskip("gevent")
        check_alone(program("greenlet_rules"))

    def test_patched(self) -> None:
        pytest.importorskip("gevent")
        check_alone(program("patched_rules"))

    def test_a_killed_receiver_loses_no_value(self) -> None:
        pytest.importorskip("gevent")
        check_alone(program("killed_receiver"))
