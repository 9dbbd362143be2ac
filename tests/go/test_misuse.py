"""Deadlocks and misuse end with an error that says what to do, not with a standstill."""

from __future__ import annotations

import signal
import warnings
from pathlib import Path

import pytest
from citius.go import ChannelMisuse, WaitGroup, after, chan, go, select, sleep
from places import LOOPS, check_alone, program, run_async
from rig import application


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
    check_alone(program("waiting_threads"))


def test_greenlets_that_all_wait_are_told() -> None:
    pytest.importorskip("gevent")
    check_alone(program("waiting_greenlets"))


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


def test_a_signal_handler_may_serve_a_channel() -> None:
    """It can run while the main thread waits, so nothing is said of a deadlock."""
    check_alone("""
        import os, signal, time
        from citius.go import *
        channel = chan(1)
        signal.signal(signal.SIGUSR1, lambda *_: channel.send("signalled"))
        # From another process: a thread of this one would be a party of its own.
        if not os.fork():
            time.sleep(1.0)
            os.kill(os.getppid(), signal.SIGUSR1)
            os._exit(0)
        assert channel.recv() == ("signalled", True)
        os.wait()
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        try:
            chan().recv()
        except Deadlock:
            pass
        else:
            raise AssertionError
    """)


def test_a_signal_handler_of_gevent_may_serve_a_channel() -> None:
    pytest.importorskip("gevent")
    check_alone("""
        import gevent, os, signal, time
        from citius.go import *
        gevent.get_hub()
        channel = chan(1)
        if not os.fork():
            time.sleep(0.5)
            os.kill(os.getppid(), signal.SIGUSR1)
            os._exit(0)
        handler = gevent.signal_handler(signal.SIGUSR1, channel.send, "signalled")
        assert channel.recv() == ("signalled", True)
        os.wait()
        handler.cancel()
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        try:
            chan().recv()
        except Deadlock:
            pass
        else:
            raise AssertionError
    """)


def test_a_thread_that_python_does_not_know_may_serve_a_channel() -> None:
    check_alone(program("unknown_thread"))


@pytest.mark.parametrize("seconds", ["float('nan')", "-float('nan')"])
def test_a_time_that_is_no_number_is_refused_and_other_timers_fire(seconds: str) -> None:
    check_alone(f"""
        from citius.go import *
        for wait in after, sleep:
            try:
                wait({seconds})
            except ValueError as error:
                assert "nan" in str(error).lower()
            else:
                raise AssertionError
        assert after(0.05).recv()[1]
        assert select(after(float("inf")), after(0.05)).case == 1
        assert after(-1).recv()[1]
    """)


def test_a_thread_sleeps_as_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr("citius.go.time.sleep", asked.append)
    for seconds in (-1, float("-inf"), 1e300, float("inf")):
        sleep(seconds)  # of the test: it returns at once
    assert asked == [0, 0, 1e9, 1e9]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_time_that_is_no_number_is_refused_on_a_loop(loop: str) -> None:
    async def main() -> None:
        for wait in after, sleep:
            with pytest.raises(ValueError, match="nan"):
                wait(float("nan"))
        assert (await select(after(float("inf")), after(0.01))).case == 1

    run_async(main, loop)


def test_channels_of_the_parent_are_refused_in_a_child() -> None:
    check_alone("""
        import os
        from citius.go import *
        channel, group, goroutine = chan(1), WaitGroup(), go(chan().recv)
        channel.send(1)
        child = os.fork()
        if not child:
            operations = [
                channel.recv, lambda: channel.send(1), lambda: select(channel, default=True), channel.close,
                lambda: list(channel), lambda: len(channel), lambda: channel.closed, group.add, group.wait,
                goroutine.join, lambda: group.done(), lambda: select((channel, 1)), channel.__exit__,
            ]
            for operation in operations:
                try:
                    operation()
                except ChannelMisuse as error:
                    assert "before the fork" in str(error)
                else:
                    os._exit(1)
            assert repr(channel) == "<Chan of the parent process>"
            own = chan()
            go(own.send, 2)
            os._exit(0 if own.recv() == (2, True) and after(0).recv()[1] else 2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert channel.recv() == (1, True)
    """)


def test_a_child_forked_while_a_goroutine_begins_to_wait() -> None:
    check_alone("""
        import os
        from citius.go import chan, go
        go(chan().recv)
        child = os.fork()
        if not child:
            own = chan()
            go(own.send, 2)
            os._exit(0 if own.recv() == (2, True) else 2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)


WAITING_HANDLER = application("channel_misuse_app")


@pytest.mark.parametrize("interface", ["native", "wsgi"])
def test_a_handler_on_the_servers_own_thread_must_not_wait(serve, interface: str) -> None:
    if interface == "native":
        server = serve(WAITING_HANDLER, "--loop", "none")
        assert server.get("/blocking").body == b"in a thread"
    else:
        server = serve(Path(f"{WAITING_HANDLER}:application"), "--threads", "0")
    assert b"blocking=True" in server.get("/").body
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
