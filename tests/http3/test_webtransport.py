"""WebTransport with aioquic as the client: sessions, streams both ways, datagrams, codes, ends."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from rig import application
from wtpeer import DRAIN, WtClient, to_http3, wt_client

APP = application("webtransport_app")


def played(play):
    """Play with a client of the application."""

    def test(serve_h3) -> None:
        server = serve_h3(app=APP)

        async def main() -> None:
            async with wt_client(server) as client:
                await play(client)

        asyncio.run(main())
        assert "Traceback" not in server.err

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


async def events(client: WtClient) -> list[str]:
    return json.loads((await client.get("/events")).body)


async def until_told(client: WtClient, event: str) -> None:
    async def wait() -> None:
        while event not in await events(client):
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), 10)


@played
async def test_streams_and_datagrams_are_echoed(client) -> None:
    session = await client.session("/echo")
    for size in (0, 1, 1000, 300_000):
        both = session.open(b"x" * size, ends=True)
        assert await client.ended(both) == b"x" * size
    before = set(client.streams)
    session.open(b"to and fro", uni=True, ends=True)
    await client.until(lambda: any(client.streams[one].ended for one in {*client.streams} - before))
    (came,) = {*client.streams} - before
    assert (came & 3, client.streams[came].data) == (3, b"to and fro")
    for size in (0, 1, 1000):
        session.send_datagram(b"d" * size)
        await client.until(lambda size=size: b"d" * size in session.datagrams)
    session.close(77, "so long ✓")
    await until_told(client, "closed 77 so long ✓")
    await client.until(lambda: session.id in client.has_ended)


@played
async def test_both_tokens_and_the_draft_are_known(client) -> None:
    for protocol in ("webtransport", "webtransport-h3"):
        session = await client.session("/echo", protocol=protocol)
        headers = client.responses[session.id].headers
        assert headers["sec-webtransport-http3-draft"] == "draft02"
        assert await client.ended(session.open(b"hello", ends=True)) == b"hello"
    # Two sessions of one connection do not see each other's.
    assert {one.session for one in client.streams.values()} == {session.id, session.id - 8}


@played
async def test_parameters_dependencies_and_subprotocols(client) -> None:
    offer = ("wt-available-protocols", '"chat.v1";q=1, "chat.v2"')
    session = await client.session("/rooms/blue/42", ("x-user", "ada"), offer)
    assert client.responses[session.id].headers["wt-protocol"] == '"chat.v2"'
    assert await session.closed() == (42, "blue ada /rooms/blue/42 chat.v2")
    refused = client.ask("/rooms/blue/42")
    assert await client.status(refused) == 403
    refused = client.ask("/rooms/blue/not-a-number", ("x-user", "ada"))
    assert await client.status(refused) in (404, 422)
    assert await client.status(client.ask("/nowhere")) == 404
    assert await client.status(client.ask("/refuses")) == 403
    assert (await client.get("/echo")).status == 404


@played
async def test_the_server_opens_streams(client) -> None:
    session = await client.session("/opens")
    await client.until(lambda: any(one.data == b"both" for one in client.streams.values()))
    both = next(key for key, one in client.streams.items() if one.data == b"both")
    assert both & 3 == 1
    session.send(both, b"from the client", ends=True)
    await client.until(
        lambda: any(one.data == b"one from the client" for one in client.streams.values())
    )
    assert await client.ended(both) == b"both"


@played
async def test_codes_go_both_ways(client) -> None:
    session = await client.session("/codes")
    reset, stopped = session.open(b"r"), session.open(b"s")
    await client.until(lambda: reset in client.streams and stopped in client.streams)
    assert client.streams[reset].reset == to_http3(7)
    assert client.streams[stopped].stopped == to_http3(8)
    writes = session.open(b"w")
    await client.until(lambda: writes in client.streams and client.streams[writes].data)
    client._quic.reset_stream(writes, to_http3(30))
    client.transmit()
    await until_told(client, "client reset 30")
    writes = session.open(b"x")
    await client.until(lambda: writes in client.streams and client.streams[writes].data)
    client._quic.stop_stream(writes, to_http3(2**32 - 1))
    client.transmit()
    await until_told(client, f"client stopped {2**32 - 1}")


def test_a_handler_that_fails_is_logged_and_its_session_closed(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/fails")
            session.send_datagram(b"now")
            assert await session.closed() == (1011, "")

    asyncio.run(main())
    server.wait_for_log(r"WebTransport /fails failed(.|\n)*ValueError: on purpose")


@played
async def test_a_handler_that_is_elsewhere_is_cancelled_when_its_client_goes(client) -> None:
    session = await client.session("/waits")
    await until_told(client, "waits")
    client._quic.reset_stream(session.id, 0x10C)
    client.transmit()
    await until_told(client, "cancelled")


@played
async def test_what_comes_before_the_acceptance_waits(client) -> None:
    session = client.ask("/late")
    early = session.open(b"early", ends=True)
    session.send_datagram(b"early too")
    assert (await client.get("/go")).status == 200
    assert await client.status(session) == 200
    assert await client.ended(early) == b"early"
    await client.until(lambda: b"early too" in session.datagrams)


@played
async def test_misuse_is_refused(client) -> None:
    session = await client.session("/misuse")
    kinds = "ValueError TypeError RuntimeError ValueError ValueError RuntimeError RuntimeError"
    assert await session.closed() == (1, kinds)
    await until_told(client, f"1 {kinds}")


@played
async def test_the_client_asks_for_the_end(client) -> None:
    session = await client.session("/drains")
    session.capsule(DRAIN)
    await client.until(lambda: any(one.data == b"last words" for one in client.streams.values()))
    session.close(0)
    await until_told(client, "draining")


def test_a_drain_asks_clients_and_closes_what_is_left(serve_h3) -> None:
    """webtransport_drain_ms: DRAIN at once, last streams pass, then CLOSE with 1012."""
    server = serve_h3("--webtransport-drain-ms", "300", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/drains")
            await client.until(lambda: session.datagrams)
            server.process.send_signal(signal.SIGTERM)
            await client.until(lambda: (DRAIN, b"") in session.parse())
            await client.until(
                lambda: any(one.data == b"last words" for one in client.streams.values())
            )
            assert await session.closed() == (1012, "")

    asyncio.run(main())
    assert server.process.wait(10) == 0


def test_a_session_outlives_quics_idle_time(serve_h3) -> None:
    server = serve_h3("--quic-idle-ms", "1500", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/echo")
            # Longer than a connection may be idle.
            await asyncio.sleep(3)
            assert await client.ended(session.open(b"still here", ends=True)) == b"still here"

    asyncio.run(main())


def test_a_room_has_both_kinds_of_members(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        import ssl

        from websockets.asyncio.client import connect

        context = ssl._create_unverified_context()
        async with (
            wt_client(server) as client,
            connect(f"wss://localhost:{server.port}/room", ssl=context) as socket,
        ):
            first, second = await client.session("/room"), await client.session("/room")
            while (await client.get("/members")).body != b"3":
                await asyncio.sleep(0.005)
            first.send_datagram(b"from a session")
            assert await asyncio.wait_for(socket.recv(), 10) == b"from a session"
            await client.until(lambda: any(one.ended for one in client.streams.values()))
            (only,) = client.streams.values()
            assert (only.session, only.data) == (second.id, b"from a session")
            await socket.send("from a socket")
            await client.until(lambda: sum(one.ended for one in client.streams.values()) == 3)
            got = [(one.session, one.data) for one in client.streams.values()][1:]
            assert sorted(got) == [(first.id, b"from a socket"), (second.id, b"from a socket")]
            second.close(0)
            while (await client.get("/members")).body != b"2":
                await asyncio.sleep(0.005)

    asyncio.run(main())


@played
async def test_a_session_gets_all_of_a_history_and_what_follows(client) -> None:
    """More messages than a connection may have streams: the others were lost without a sign."""
    assert (await client.get("/kept/600")).body == b"0"

    def got() -> list[str]:
        found = [one.data.decode() for one in client.streams.values() if one.ended]
        return sorted(text.rpartition("\n")[2] for text in found)

    session = await client.session("/kept")
    before = [*(f"{number:04}" for number in range(600)), '{"missed":null}']
    await client.until(lambda: len(got()) == 601)
    assert got() == before
    # Of a burst as many as its client lets streams be open, and the connection has been offered.
    assert (await client.get("/kept/90")).body == b"1"
    await client.until(lambda: len(got()) == 691)
    assert got() == sorted([*before, *(f"{number:04}" for number in range(90))])
    assert session.id not in client.has_ended


@pytest.mark.parametrize("arguments", [(), ("--http", "1,2")])
def test_the_start_fails_without_http3(serve, arguments) -> None:
    server = serve(APP, *arguments, ready=False)
    assert server.process.wait(20) != 0
    assert "no address serves HTTP/3; give --http 1,2,3" in server.err
    assert "webtransport_app.py" in server.err
