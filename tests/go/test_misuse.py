"""Deadlocks and misuse end with an error that says what to do, not with a standstill."""

from __future__ import annotations

import warnings

import pytest
from citius.go import ChannelMisuse, WaitGroup, chan, go, select
from places import LOOPS, check_alone, run_async


def test_a_lone_thread_that_waits_is_told() -> None:
    for wait in ("chan().recv()", "chan().send(1)", "select()", "select(None, chan())"):
        check_alone(f"""
            from citius.go import *
            try:
                {wait}
            except Deadlock as error:
                assert "nobody is left who could send" in str(error)
            else:
                raise AssertionError
        """)


def test_all_threads_that_wait_are_told_and_a_busy_one_counts() -> None:
    check_alone("""
        import time, logging
        from citius.go import *
        logging.disable()
        def fail():
            1 / 0
        channel = chan()
        go(chan().recv)
        go(fail)
        began = time.monotonic()
        def late():
            time.sleep(0.6)
            channel.send("late")
        go(late)
        assert channel.recv() == ("late", True)
        assert time.monotonic() - began > 0.5
        # A pending `after` is somebody who will send.
        assert select(channel, after(0.6)).case == 1
        try:
            channel.recv()
        except Deadlock:
            pass
        else:
            raise AssertionError
    """)


def test_greenlets_that_all_wait_are_told() -> None:
    pytest.importorskip("gevent")
    check_alone("""
        import gevent, time, threading
        from citius.go import *
        gevent.get_hub()
        channel = chan()
        go(chan().recv)
        try:
            channel.recv()
        except Deadlock as error:
            assert "all greenlets of this thread wait" in str(error)
        else:
            raise AssertionError
        # Another thread may send.
        threading.Thread(target=lambda: (time.sleep(0.3), channel.send(1))).start()
        assert channel.recv() == (1, True)
        # A callback of the hub's must not wait.
        errors = []
        def call():
            try:
                channel.recv()
            except ChannelMisuse as error:
                errors.append(str(error))
        gevent.get_hub().loop.run_callback(call)
        gevent.sleep(0.01)
        assert "spawn a greenlet" in errors[0]
    """)


@pytest.mark.parametrize("loop", LOOPS)
def test_blocking_on_a_loop_says_await(loop: str) -> None:
    async def main() -> None:
        channel = chan(1)
        with pytest.raises(ChannelMisuse, match="use `await`"):
            _value, _ok = channel.recv()
        with pytest.raises(ChannelMisuse, match="`async for`"):
            for _ in channel:
                pass
        with pytest.raises(ChannelMisuse, match="use `await`"):
            _case, _value, _ok = select(channel)
        busy = go(WaitGroup().wait)
        await busy
        other = go(chan().recv)
        with pytest.raises(ChannelMisuse, match="use `await`"):
            other.join()
        assert busy.join() is None

    run_async(main, loop)


def test_what_is_never_awaited_is_warned_of_and_not_done() -> None:
    async def main() -> None:
        channel = chan(1)
        with pytest.warns(RuntimeWarning, match="a send was never awaited"):
            channel.send(1)
        assert len(channel) == 0
        operation = channel.send(2)
        await operation
        with pytest.raises(RuntimeError, match="can be awaited once"):
            await operation

    run_async(main)


def test_awaiting_without_a_loop_is_refused() -> None:
    async def main():
        return chan().recv()

    operation = run_async(main)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="where no asyncio loop runs"):
        warnings.simplefilter("ignore")
        operation.__await__().__next__()


def test_an_async_function_without_a_loop_is_refused() -> None:
    async def work() -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="needs a running asyncio loop"):
        go(work)
