"""What ``go`` starts: results, exceptions, cancelling; and cancelled waits that lose nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextvars import ContextVar

import pytest
from citius.go import Chan, chan, go, select
from places import LOOPS, check_alone, program, run_async

colour: ContextVar[str] = ContextVar("colour", default="none")


def test_a_thread_has_a_result_and_the_callers_context() -> None:
    token = colour.set("red")
    try:
        goroutine = go(lambda x, *, y: (x + y, colour.get(), threading.current_thread()), 1, y=2)
    finally:
        colour.reset(token)
    result, seen, thread = goroutine.join()
    assert (result, seen) == (3, "red")
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert (goroutine.done, goroutine.cancel()) == (True, False)
    assert "done" in repr(goroutine)


def test_an_exception_is_logged_at_once_and_raised_by_join(caplog) -> None:
    def fail() -> None:
        raise LookupError("nothing there")

    goroutine = go(fail)
    with pytest.raises(LookupError, match="nothing there"):
        goroutine.join()
    (record,) = [record for record in caplog.records if record.name == "citius.go"]
    assert "fail raised" in record.getMessage()
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


@pytest.mark.parametrize("loop", LOOPS)
class TestTasks:
    def test_results_and_exceptions(self, loop: str, caplog) -> None:
        async def fail() -> None:
            raise LookupError("nothing there")

        async def double(n: int) -> int:
            await asyncio.sleep(0)
            return 2 * n

        async def main() -> None:
            assert await go(double, 4) == 8
            # A plain function may block: it gets a thread.
            assert await go(lambda: threading.current_thread()) is not threading.current_thread()
            goroutine = go(fail)
            with pytest.raises(LookupError):
                await goroutine
            with pytest.raises(LookupError):
                goroutine.join()

        run_async(main, loop)
        assert [record.name for record in caplog.records].count("citius.go") == 1

    def test_cancel(self, loop: str) -> None:
        async def main() -> None:
            channel = chan()
            for started in (False, True):
                goroutine = go(wait_for, channel)
                if started:
                    await asyncio.sleep(0)
                assert goroutine.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await goroutine
                assert not goroutine.cancel()
            assert repr(channel) == "<Chan 0/0, 0 receiving, 0 sending>"

        async def wait_for(channel: Chan[int]) -> None:
            await channel.recv()

        run_async(main, loop)

    def test_functions_of_asyncio_take_operations(self, loop: str) -> None:
        async def main() -> None:
            channel = chan(1)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(channel.recv(), 0.01)
            assert repr(channel) == "<Chan 0/1, 0 receiving, 0 sending>"
            assert await asyncio.gather(channel.recv(), channel.send(5)) == [(5, True), None]

        run_async(main, loop)

    def test_a_cancelled_receiver_loses_no_value(self, loop: str) -> None:
        async def receive(channel: Chan[int], *, by_select: bool) -> None:
            if by_select:
                await select(chan(), channel)
            else:
                await channel.recv()

        async def main() -> None:
            for by_select in (False, True):
                # Before anything came.
                channel = chan()
                task = asyncio.create_task(receive(channel, by_select=by_select))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert repr(channel) == "<Chan 0/0, 0 receiving, 0 sending>"
                # After it was handed over, before the task went on.
                task = asyncio.create_task(receive(channel, by_select=by_select))
                await asyncio.sleep(0)
                await channel.send(1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert len(channel) == 1
                assert await channel.recv() == (1, True)
                # And when another goroutine waits already.
                first = asyncio.create_task(receive(channel, by_select=by_select))
                await asyncio.sleep(0)
                second = go(channel_recv, channel)
                await asyncio.sleep(0)
                await channel.send(2)
                first.cancel()
                assert await second == (2, True)

        async def channel_recv(channel: Chan[int]) -> tuple[int, bool]:
            return await channel.recv()

        run_async(main, loop)

    def test_a_cancelled_sender_sends_nothing_later(self, loop: str) -> None:
        async def main() -> None:
            channel = chan()
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0.01):
                    await channel.send(1)
            assert select(channel, default=True).case is None

        run_async(main, loop)

    def test_a_loop_that_is_closed_leaves_its_values_to_others(self, loop: str) -> None:
        channel = chan()
        made = LOOPS[loop]()

        async def wait() -> None:
            await channel.recv()

        task = made.create_task(wait())
        made.call_soon(made.stop)
        made.run_forever()
        made.close()
        assert "1 receiving" in repr(channel)
        channel.send("for nobody")
        assert channel.recv() == ("for nobody", True)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is what we are about


def test_greenlets() -> None:
    pytest.importorskip("gevent")
    check_alone(program("greenlet_goroutines"))


def test_daemon_threads_that_wait_do_not_hold_the_end_up() -> None:
    check_alone("""
        from citius.go import *
        channels = [chan() for _ in range(50)]
        for channel in channels:
            go(channel.recv)
            go(lambda channel=channel: [value for value in channel])
        for channel in channels:
            channel.close()
    """)
