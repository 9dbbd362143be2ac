"""The queues of a session without a network: what a cancelled wait leaves, and what ends a wait."""

# pyright: basic

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from citius import ConnectionClosed, StreamReset
from citius.web.realtime.webtransport import WebTransportSession


class Core:
    """What the extension is to a session; keeps the commands."""

    request = None

    def __init__(self) -> None:
        self.said: list[tuple] = []
        self.is_open = True
        self.close_code: int | None = None
        self.close_reason: str | None = None
        self.datagram_bytes_max = 1000

    def limit(self, name: str) -> int:
        return {
            "body_window_bytes": 100, "write_queue_bytes_max": 10, "webtransport_datagrams_max": 3,
        }.get(name, 0)  # fmt: skip

    def attach(self, listener) -> None:
        self.listener = listener

    def send(self, stream, data, fin) -> int:
        self.said.append(("send", stream, bytes(data), fin))
        return len(data)

    def close(self, code, reason) -> None:
        self.end(code, reason)

    def end(self, code=1006, reason="") -> bool:
        self.is_open, self.close_code, self.close_reason = False, code, reason
        return self.listener._on_closed(code, reason)

    def __getattr__(self, name):
        return lambda *given: self.said.append((name, *given))


def play(scenario) -> None:
    async def main() -> None:
        core = Core()
        session = WebTransportSession(core)  # pyright: ignore[reportArgumentType]
        await scenario(core, session)

    asyncio.run(main())


async def cancelled(task: asyncio.Task) -> None:
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_stream_that_opens_after_its_wait_was_cancelled_is_reset() -> None:
    async def scenario(core, session) -> None:
        await cancelled(asyncio.create_task(session.open_bidirectional()))
        assert core.said == [("open", 0, True)]
        session._on_ready(0, 9)
        assert core.said[1:] == [("reset", 9, 0), ("stop", 9, 0)]
        await cancelled(asyncio.create_task(session.open_unidirectional()))
        session._on_ready(1, None)
        task = asyncio.create_task(session.open_bidirectional())
        await asyncio.sleep(0)
        session._on_ready(2, None)
        with pytest.raises(RuntimeError, match="webtransport_streams_max"):
            await task
        assert not session._streams
        assert not session._opening

    play(scenario)


def test_reads_take_credit_once_and_survive_cancellation() -> None:
    async def scenario(core, session) -> None:
        session._on_opened(4)
        stream = await anext(session.incoming())
        await cancelled(asyncio.create_task(stream.read()))
        await cancelled(asyncio.create_task(stream.read()))
        assert core.said == [("want", 4, 100)]
        session._on_data(4, b"x" * 80)
        assert [await stream.read(50), await stream.read(50)] == [b"x" * 50, b"x" * 30]
        read = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        assert core.said[1:] == [("want", 4, 80)]
        session._on_end(4)
        assert await read == b""
        assert await stream.read() == b""
        await stream.close()
        assert not session._streams

    play(scenario)


def test_a_write_waits_for_room_and_a_cancelled_one_asks_once() -> None:
    async def scenario(core, session) -> None:
        session._on_opened(4)
        stream = await anext(session.incoming())
        await stream.write(b"short")
        first = asyncio.create_task(stream.write(b"x" * 10))
        await cancelled(first)
        second = asyncio.create_task(stream.write(b"y"))
        await asyncio.sleep(0)
        assert not second.done()
        assert core.said.count(("await_room", 4)) == 1
        session._on_writable(4)
        await second
        third = asyncio.create_task(stream.write(b"z" * 10))
        await asyncio.sleep(0)
        session._on_stopped(4, 5)
        with pytest.raises(StreamReset) as raised:
            await third
        assert raised.value.code == 5
        with pytest.raises(StreamReset):
            await stream.write(b"more")

    play(scenario)


def test_the_end_of_the_session_ends_every_wait() -> None:
    async def scenario(core, session) -> None:
        session._on_opened(4)
        stream = await anext(session.incoming())
        waits = [
            stream.read(), stream.write(b"x" * 10), session.receive_datagram(), session.open_bidirectional(),
            anext(session.incoming()), session.wait_closed(), session.wait_draining(),
        ]  # fmt: skip
        tasks = [asyncio.create_task(one) for one in waits]
        await asyncio.sleep(0)
        assert core.end(7, "why")
        results = await asyncio.gather(*tasks, return_exceptions=True)
        kinds = [type(one) for one in results]
        assert kinds[:4] == [ConnectionClosed] * 4
        assert kinds[4:] == [StopAsyncIteration, type(None), type(None)]
        assert {one.code for one in results[:4]} == {7}  # pyright: ignore
        assert [one async for one in session.datagrams()] == []

    play(scenario)


def test_nothing_that_waits_is_told_so() -> None:
    async def scenario(core, session) -> None:
        assert not core.end()

    play(scenario)


def test_datagrams_lose_the_oldest_and_what_came_is_read_after_the_end() -> None:
    async def scenario(core, session) -> None:
        for n in range(5):
            session._on_datagram(b"%d" % n)
        assert session.datagrams_dropped == 2
        core.end(0)
        assert [one async for one in session.datagrams()] == [b"2", b"3", b"4"]

    play(scenario)


def test_a_reset_comes_behind_what_was_read_before_it() -> None:
    async def scenario(core, session) -> None:
        session._on_opened(6)
        stream = await anext(session.incoming())
        assert not stream.is_writable
        session._on_data(6, b"whole")
        session._on_reset(6, None)
        assert await stream.read() == b"whole"
        with pytest.raises(StreamReset) as raised:
            await stream.read()
        assert raised.value.code is None
        with pytest.raises(ValueError, match="more than 3 bytes"):
            session._on_opened(10)
            other = await anext(session.incoming())
            session._on_data(10, b"1234")
            await other.read_all(3)
        assert core.said[-1] == ("stop", 10, 0)

    play(scenario)


def test_the_block_of_a_stream_ends_both_sides() -> None:
    async def scenario(core, session) -> None:
        session._on_opened(4)
        stream = await anext(session.incoming())
        async with stream:
            await stream.write(b"x")
        assert core.said[-2:] == [("send", 4, b"", True), ("stop", 4, 0)]
        session._on_opened(8)
        stream = await anext(session.incoming())
        with pytest.raises(KeyError):
            async with stream:
                raise KeyError
        assert core.said[-2:] == [("reset", 8, 0), ("stop", 8, 0)]
        assert not session._streams

    play(scenario)
