"""The extension `webtransport`: docs/internals/asgi-webtransport.md, with aioquic as the client."""

# pyright: basic

from __future__ import annotations

import asyncio
import json

import pytest
import trustme
from pki import Pki
from rig import application, wait_for
from wtpeer import DRAIN, to_http3, wt_client

APP = application("asgi_webtransport_app")


@pytest.fixture
def start(serve, tmp_path):
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
    tls = ("--ssl-certfile", certificate, "--ssl-keyfile", key)
    return lambda *options: serve(APP, *tls, "--http", "1,2,3", "--webtransport", *options)


@pytest.fixture
def server(start):
    return start()


def play(server, scenario) -> None:
    async def main() -> None:
        async with wt_client(server) as client:
            await scenario(client)

    asyncio.run(main())


async def told(client, what) -> None:
    async def wait() -> None:
        while what not in json.loads((await client.get("/")).body):
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), 10)


def test_streams_and_datagrams(server) -> None:
    async def scenario(client) -> None:
        session = await client.session("/echo")
        assert client.responses[session.id].headers["x-echo"] == "1"
        both = session.open(b"x" * 300_000, ends=True)
        assert await client.ended(both) == b"x" * 300_000
        session.open(b"one way", uni=True, ends=True)
        await client.until(lambda: any(one.data == b"one way" for one in client.streams.values()))
        session.send_datagram(b"datagram")
        await client.until(lambda: session.datagrams == [b"datagram"])
        reset = session.open(b"x")
        assert (await client.get("/")).status == 200
        client._quic.reset_stream(reset, to_http3(3))
        client.transmit()
        await told(client, {"type": "webtransport.stream.reset", "stream": reset, "code": 3})
        session.capsule(DRAIN)
        await told(client, {"type": "webtransport.drain"})
        session.close(9, "bye")
        await told(client, [9, "bye"])

    play(server, scenario)


def test_refusals_and_ends(server) -> None:
    async def scenario(client) -> None:
        assert await client.status(client.ask("/refused")) == 403
        answered = client.ask("/answered")
        assert await client.status(answered) == 418
        await client.until(lambda: answered.id in client.has_ended)
        assert client.responses[answered.id].body == b"teapot"
        assert client.responses[answered.id].headers["x-why"] == "because"
        assert await client.status(client.ask("/forgets")) == 500
        offer = ("wt-available-protocols", '"a", "b"')
        closes = await client.session("/closes", offer)
        assert client.responses[closes.id].headers["wt-protocol"] == '"a"'
        assert await closes.closed() == (5, "done")
        await told(client, [5, "done"])
        assert await (await client.session("/fails")).closed() == (1011, "")

    play(server, scenario)
    wait_for(lambda: "ValueError: on purpose" in server.err, "the traceback")
    assert "returned without accepting or closing" in server.err


def test_what_an_application_does_not_take_is_bounded(start) -> None:
    """quic_window_bytes, and body_window_bytes of each open stream"""
    window, windows = 16_384, 65_536
    limits = ("--body-window-bytes", window, "--quic-window-bytes", windows)
    server = start(*map(str, limits), "--webtransport-streams-max", "20")

    async def scenario(client) -> None:
        session = await client.session("/sleepy")
        async with wt_client(server) as other:
            streams = []
            for _ in range(60):
                # One after another: each is over, and not open any more, before the next one comes.
                streams.append(session.open(b"x" * 10_000, uni=True, ends=True))
                assert (await other.get("/")).status == 200
            session.send_datagram(b"last")
            assert (await other.get("/go")).status == 200
            await told(other, "last")
            for one in streams[:6]:
                await told(other, [one, 0, False])
            events = json.loads((await other.get("/")).body)
        # Of 600 kB. Streams that found no room were left with QUIC, but those that were open already.
        waited = [one for one in events[: events.index("last")] if one[2:] == [True]]
        assert sum(length for _, length, _ in waited) <= windows + 20 * window

    play(server, scenario)


def test_streams_that_are_over_before_they_are_taken_are_bounded(start) -> None:
    server = start("--webtransport-streams-max", "10")

    async def scenario(client) -> None:
        session = await client.session("/sleepy")
        for _ in range(100):
            session.open(uni=True, ends=True)
            assert (await client.get("/")).status == 200
        session.send_datagram(b"last")
        assert (await client.get("/go")).status == 200
        await told(client, "last")
        ends = [one for one in json.loads((await client.get("/")).body) if one[1:] == [0, False]]
        assert len(ends) == 20
        # There is room again.
        await told(client, [session.open(b"abc", uni=True, ends=True), 3, True])

    play(server, scenario)


def test_bytes_of_a_stream_are_one_message_until_they_are_taken(server) -> None:
    async def scenario(client) -> None:
        session = await client.session("/sleepy")
        stream = session.open()
        for _ in range(50):
            session.send(stream, b"x")
            assert (await client.get("/")).status == 200
        assert (await client.get("/go")).status == 200
        await told(client, [stream, 50, True])

    play(server, scenario)


def test_sending_on_a_stream_that_the_client_has_stopped_ends(server) -> None:
    async def scenario(client) -> None:
        session = await client.session("/stubborn")
        stream = session.open(b"x")
        assert (await client.get("/")).status == 200
        client._quic.stop_stream(stream, to_http3(3))
        client.transmit()
        await told(client, "has sent")

    play(server, scenario)


def test_without_the_option_sessions_are_refused(serve, tmp_path) -> None:
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
    server = serve(APP, "--ssl-certfile", certificate, "--ssl-keyfile", key, "--http", "1,2,3")

    async def scenario(client) -> None:
        assert await client.status(client.ask("/echo")) == 501

    play(server, scenario)
    server = serve(APP, "--webtransport", ready=False)
    assert server.process.wait(20) != 0
    assert "webtransport is served over HTTP/3 only" in server.err
