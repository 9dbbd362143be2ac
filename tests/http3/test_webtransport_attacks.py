"""What a client of WebTransport can do to cost more than it pays, each with its bound."""

# pyright: basic

from __future__ import annotations

import asyncio

import pytest
from quicframes import GROWTH_KIB_MAX, memory_kib
from rig import application
from wtpeer import to_http3, wt_client

APP = application("webtransport_app")
REJECTED, BUFFERED_REJECTED = 0x10B, 0x3994BD84


def test_sessions_and_streams_beyond_the_limits(serve_h3) -> None:
    """webtransport_sessions_max, webtransport_streams_max"""
    limits = ("--webtransport-sessions-max", "2", "--webtransport-streams-max", "4")
    server = serve_h3(*limits, app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            first, _ = await client.session("/waits"), await client.session("/waits")
            third = client.ask("/waits")
            await client.until(lambda: third.id in client.streams)
            assert client.streams[third.id].reset == REJECTED
            streams = [first.open(b"x") for _ in range(5)]
            await client.until(lambda: streams[-1] in client.streams)
            assert client.streams[streams[-1]].reset == BUFFERED_REJECTED
            assert not {*streams[:4]} & {*client.streams}
            # Other requests are served.
            assert (await client.get("/events")).status == 200

    asyncio.run(main())


def test_a_stream_beyond_the_limit_is_not_opened(serve_h3) -> None:
    server = serve_h3("--webtransport-streams-max", "1", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/opens")
            assert await session.closed() == (1011, "")

    asyncio.run(main())
    server.wait_for_log("webtransport_streams_max")


def test_what_waits_for_a_session_is_bounded(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with wt_client(server, max_stream_data=1 << 20) as client:
            session = client.ask("/late")
            for n in range(40):
                session.send_datagram(b"%d" % n)
            streams = [session.open(b"early", ends=True) for _ in range(20)]
            await client.until(lambda: streams[-1] in client.streams)
            rejected = [one for one in streams if one in client.streams]
            assert rejected == streams[16:]
            assert {client.streams[one].reset for one in rejected} == {BUFFERED_REJECTED}
            assert (await client.get("/go")).status == 200
            for one in streams[:16]:
                assert await client.ended(one) == b"early"
            await client.until(lambda: session.datagrams)
            assert len(session.datagrams) <= 16

    asyncio.run(main())


def test_a_flood_of_datagrams_costs_the_oldest(serve_h3) -> None:
    """webtransport_datagrams_max"""
    server = serve_h3("--webtransport-datagrams-max", "10", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/slow")
            for _ in range(500):
                session.send_datagram(b"x" * 100)
            waits, dropped = (await client.ended(session.open(b"now", ends=True))).split()
            assert int(waits) == 10
            assert int(dropped) > 10

    asyncio.run(main())


def test_streams_that_are_not_read_wait_at_the_client(serve_h3) -> None:
    """body_window_bytes, quic_window_bytes"""
    server = serve_h3("--body-window-bytes", "65536", "--quic-window-bytes", "262144", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/waits")
            for _ in range(20):
                session.open(b"x" * 1_000_000, uni=False)
            # What would come in this time must not.
            await asyncio.sleep(0.3)
            quic = client._quic
            # The credit of the connection is not renewed.
            assert quic._remote_max_data <= 2 * 262144
            sent = [
                quic._streams[one].sender.highest_offset for one in quic._streams if one % 4 == 0
            ]
            assert sum(sent) <= 2 * 262144

    asyncio.run(main())


@pytest.mark.parametrize("uni", [True, False], ids=["one way", "both ways"])
def test_streams_that_are_over_before_they_are_taken_are_bounded(serve_h3, *, uni: bool) -> None:
    """webtransport_streams_max, although few streams are open at any time"""
    server = serve_h3("--webtransport-streams-max", "20", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/slow-to-take")
            for _ in range(100):
                stream = session.open(uni=uni, ends=True)
                if not uni:
                    client._quic.stop_stream(stream, to_http3(1))
                    client.transmit()
                # The server has read it: the stream is over, and its place is free.
                assert (await client.get("/events")).status == 200
            session.send_datagram(b"count")
            await client.until(lambda: session.datagrams)
            assert session.datagrams == [b"20"]
            # What the handler takes makes room for others.
            assert await client.ended(session.open(b"one more", ends=True)) == b"one more"

    asyncio.run(main())


def test_a_flood_of_streams_leaves_time_for_others(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with wt_client(server) as client, wt_client(server) as other:
            session = await client.session("/echo")
            for _ in range(3000):
                if client.terminated is not None:
                    break
                stream = session.open(b"x", uni=True)
                client._quic.reset_stream(stream, 0)
                client.transmit()
                await asyncio.sleep(0)
            assert (await asyncio.wait_for(other.get("/events"), 5)).status == 200

    asyncio.run(main())


def test_messages_that_found_no_stream_are_forgotten_with_their_session(serve_h3) -> None:
    """A client lets the server open no streams, and begins and ends sessions that are sent a history."""
    server = serve_h3(app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            assert (await client.get("/kept/1000")).status == 200
            client._quic._write_connection_limits = lambda *_, **__: None

            async def come_and_go() -> None:
                session = await client.session("/kept")
                # It has joined when the next request is answered.
                assert (await client.get("/events")).status == 200
                session.close(0)
                await client.until(lambda: session.id in client.has_ended)

            for _ in range(50):
                await come_and_go()
            before = memory_kib(server)
            for _ in range(1000):
                await come_and_go()
            assert memory_kib(server) - before < GROWTH_KIB_MAX

    asyncio.run(main())
