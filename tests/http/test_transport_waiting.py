"""Requests that wait for a connection, or for a place on one: what other requests come to is not theirs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from citius._core import HttpOrigin
from citius.http import errors
from citius.http.transport.addresses import Way, connect_to
from h2peer import ACK, END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame
from http_peer import FIVE, Peer, Talk, get, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.http.transport import Pool

OK = b"\x88"
"""A status of 200, as HPACK has it."""
TOO_LARGE = OK + b"\x0f\x0d\x0899999999"
UNREADABLE = OK + b"\x00\x01x\x03a\x00b"


class Speaker:
    """A server of HTTP/2 that takes ``streams`` at once, and calls ``act`` with each of them."""

    def __init__(self, act: Callable[[Speaker, int], object], streams: int = 1) -> None:
        self._act, self._streams = act, streams
        self.requests = 0

    def __call__(self, talk: Talk) -> None:
        self.talk = talk
        read = talk.socket.makefile("rb").read
        assert len(read(24)) == 24
        self.say(SETTINGS, 0, 0, b"\0\3" + self._streams.to_bytes(4, "big"))
        while head := read(9):
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            read(size)
            if kind == SETTINGS and not flags & ACK:
                self.say(SETTINGS, ACK, 0)
            elif kind == HEADERS:
                self.requests += 1
                self._act(self, int.from_bytes(head[5:], "big"))

    def say(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self.talk.say(frame(kind, flags, stream, payload))

    def respond(self, stream: int, block: bytes = OK) -> None:
        self.say(HEADERS, END_HEADERS | END_STREAM, stream, block)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("kind", "flags", "payload", "error"),
    [
        pytest.param(3, 0, b"\0\0\0\2", errors.RemoteProtocolError, id="reset"),
        pytest.param(HEADERS, END_HEADERS, TOO_LARGE, errors.TooLarge, id="too large"),
        pytest.param(HEADERS, END_HEADERS, UNREADABLE, errors.RemoteProtocolError, id="unreadable"),
    ],
)
def test_a_stream_that_fails_makes_room_for_what_waits(
    kind: int, flags: int, payload: bytes, error: type[errors.RequestError]
) -> None:
    def act(speaker: Speaker, stream: int) -> None:
        if speaker.requests == 2:
            speaker.say(kind, flags, stream, payload)
        else:
            speaker.respond(stream)

    with Peer(Speaker(act)) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            await get(pool, origin)  # now it is known how many streams there may be
            calls = (get(pool, origin, f"/{n}") for n in range(3))
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert type(found[0]) is error
            assert [one.status for one in found[1:]] == [200, 200]
            assert peer.accepted == 1

        run(work, h2="prior", connections_per_origin_max=1)


def test_an_idle_connection_of_http_2_makes_room_for_another_server() -> None:
    respond = Speaker.respond
    with Peer(Speaker(respond)) as one, Peer(Speaker(respond)) as other:

        async def work(pool: Pool) -> None:
            for peer in (one, other, one):
                assert (await get(pool, peer.origin())).status == 200
                assert (pool.stats()["open"], pool.stats()["idle"]) == (1, 1)
            assert (one.accepted, other.accepted) == (2, 1)

        run(work, h2="prior", connections_max=1)


def test_a_connection_of_http_2_that_becomes_idle_goes_to_the_server_that_is_waited_for() -> None:
    goes_on = threading.Event()

    def later(speaker: Speaker, stream: int) -> None:
        goes_on.wait(10)
        speaker.respond(stream)

    with Peer(Speaker(later)) as one, Peer(Speaker(Speaker.respond)) as other:

        async def work(pool: Pool) -> None:
            first = asyncio.ensure_future(get(pool, one.origin()))
            await until(lambda: pool.stats()["open"] == 1)
            second = asyncio.ensure_future(get(pool, other.origin()))
            await until(lambda: pool.stats()["waiting"] == 1)
            goes_on.set()
            assert (await first).status == 200
            assert (await second).status == 200

        run(work, h2="prior", connections_max=1)


def test_a_server_of_http_2_that_is_gone_fails_one_request() -> None:
    """The ping that doubts it is waited for, although the connection has no request any more."""

    def act(speaker: Speaker, stream: int) -> None:
        if speaker.requests == 1:
            speaker.respond(stream)

    with Peer(Speaker(act)) as peer:

        async def work(pool: Pool) -> None:
            await get(pool, peer.origin())
            with pytest.raises(errors.ReadTimeout):
                await get(pool, peer.origin(), deadlines=(5.0, 0.1, 5.0, 5.0, 10.0))
            await until(lambda: pool.stats()["open"] == 0)

        run(work, h2="prior")


def test_a_response_that_is_dropped_and_trickles_does_not_keep_its_connection() -> None:
    begun = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n")
        begun.set()
        while True:
            talk.say(b"x")
            threading.Event().wait(0.05)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            call = asyncio.ensure_future(get(pool, peer.origin()))
            await until(begun.is_set)
            # Until the head has come, which nothing shows; before, the connection ends at once.
            await asyncio.sleep(0.2)
            call.cancel()
            await until(lambda: pool.stats()["open"] == 0)
            with contextlib.suppress(asyncio.CancelledError):
                await call

        run(work)


@pytest.fixture
def deaf() -> Iterator[HttpOrigin]:
    """Where connecting does not end: the queue of the listener is full."""
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            made = opened.enter_context(socket.socket())
            made.setblocking(False)
            made.connect_ex(listener.getsockname())
        yield HttpOrigin("http", "127.0.0.1", listener.getsockname()[1])


def connecting(seconds: float) -> tuple[float, ...]:
    return (seconds, *FIVE[1:4], 60.0)


def test_each_request_has_its_own_time_to_connect(deaf: HttpOrigin) -> None:
    async def work(pool: Pool) -> None:
        patient = asyncio.ensure_future(get(pool, deaf, deadlines=connecting(50.0)))
        await until(lambda: pool.stats()["connecting"] == 1)
        with pytest.raises(errors.ConnectTimeout, match=r"within 0\.2 s"):
            await get(pool, deaf, deadlines=connecting(0.2))
        await until(lambda: pool.stats()["connecting"] == 1)
        assert not patient.done()
        patient.cancel()

    run(work)


def test_the_time_to_connect_is_not_that_of_a_request_that_has_left(deaf: HttpOrigin) -> None:
    async def work(pool: Pool) -> None:
        patient = asyncio.ensure_future(get(pool, deaf, deadlines=connecting(50.0)))
        await until(lambda: pool.stats()["connecting"] == 1)
        patient.cancel()
        await until(lambda: pool.stats()["waiting"] == 0)
        assert pool.stats()["connecting"] == 1
        with pytest.raises(errors.ConnectTimeout, match=r"within 0\.2 s"):
            await get(pool, deaf, deadlines=connecting(0.2))

    run(work)


def test_a_request_does_not_fail_with_the_attempt_of_one_that_has_left(deaf: HttpOrigin) -> None:
    async def work(pool: Pool) -> None:
        hasty = asyncio.ensure_future(get(pool, deaf, deadlines=connecting(0.3)))
        await until(lambda: pool.stats()["connecting"] == 1)
        hasty.cancel()
        await until(lambda: pool.stats()["waiting"] == 0)
        patient = asyncio.ensure_future(get(pool, deaf, deadlines=connecting(50.0)))
        done, _ = await asyncio.wait([patient], timeout=1.0)
        assert not done
        patient.cancel()

    run(work)


async def test_the_socket_of_a_server_that_resets_it_at_once_is_closed() -> None:
    """It has no peer any more when its address is asked for."""
    made = socket.socket()

    class Home:
        async def connect_to(self, family: int, where: object) -> socket.socket:
            return made

    way: Any = Way(cast("Any", Home()), None, None)
    with pytest.raises(OSError, match="not connected"):
        await connect_to(way, "127.0.0.1", 9, is_target=False)
    assert made.fileno() == -1
