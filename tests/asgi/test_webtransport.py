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
def server(serve, tmp_path):
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
    tls = ("--ssl-certfile", certificate, "--ssl-keyfile", key)
    return serve(APP, *tls, "--http", "1,2,3", "--webtransport")


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


def test_without_the_option_sessions_are_refused(serve, tmp_path) -> None:
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
    server = serve(APP, "--ssl-certfile", certificate, "--ssl-keyfile", key, "--http", "1,2,3")

    async def scenario(client) -> None:
        assert await client.status(client.ask("/echo")) == 501

    play(server, scenario)
    server = serve(APP, "--webtransport", ready=False)
    assert server.process.wait(20) != 0
    assert "webtransport is served over HTTP/3 only" in server.err
