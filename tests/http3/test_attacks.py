"""What a client of HTTP/3 can do to cost more than it pays, each with a second client that is served."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from h3peer import H3Client, configuration, h3_client
from quicframes import send
from rig import TIMEOUT_S, Server, application

CLIENTS = application("proxy_headers_native_app")
EXCESSIVE_LOAD = 0x107
PING = 0x01
CANCELLED = 0x10C


def memory_kib(server: Server) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


async def is_served(server: Server) -> None:
    began = time.monotonic()
    async with h3_client(server) as client:
        assert (await client.get("/")).status == 200
    assert time.monotonic() - began < 10


async def until_closed(client: H3Client, act) -> int:
    """Act again and again until the server closes the connection; its error code."""
    deadline = time.monotonic() + TIMEOUT_S
    while client.terminated is None and time.monotonic() < deadline:
        act()
        client.transmit()
        # Others have their turn.
        await asyncio.sleep(0.01)
    assert client.terminated is not None
    return client.terminated.error_code


@pytest.mark.parametrize("way", ["reset", "stop"])
def test_rapid_reset(serve_h3, way) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            quic = client._quic

            def act() -> None:
                for _ in range(20):
                    if quic.get_next_available_stream_id() // 4 >= quic._remote_max_streams_bidi:
                        return
                    stream = client.begin("/slow/60000", ends=way == "stop")
                    if way == "reset":
                        quic.reset_stream(stream, CANCELLED)
                    quic.stop_stream(stream, CANCELLED)

            assert await until_closed(client, act) == EXCESSIVE_LOAD
            await is_served(server)

    asyncio.run(main())
    server.wait_for_log("is closed: most requests end in a reset; the limit is set by --h2-resets")


def initial() -> bytes:
    from aioquic.quic.connection import QuicConnection

    quic = QuicConnection(configuration=configuration())
    quic.connect(("127.0.0.1", 1), now=0.0)
    return quic.datagrams_to_send(now=0.0)[0][0]


def test_a_flood_of_handshakes(serve_h3) -> None:
    """The hundredth and later get a Retry, which is shorter than what asks for it, and cost no memory."""
    server = serve_h3()
    asyncio.run(is_served(server))
    before = memory_kib(server)
    sent = got = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for number in range(1500):
            datagram = initial()
            sent += len(datagram)
            sender.sendto(datagram, ("127.0.0.1", server.port))
            while True:
                try:
                    got += len(sender.recv(2000))
                except BlockingIOError:
                    break
            if number % 500 == 0:
                asyncio.run(is_served(server))
    assert got < 3 * sent
    asyncio.run(is_served(server))
    assert memory_kib(server) - before < 16 * 1024


def test_datagrams_of_chance(serve_h3) -> None:
    server = serve_h3()
    dice = random.Random(34)
    good = initial()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(4000):
            kind = number % 4
            if kind == 0:
                datagram = dice.randbytes(dice.randrange(1, 1400))
            elif kind == 1:
                datagram = bytes([dice.choice((0x40, 0xC0, 0xD0, 0xE0, 0xF0))]) + dice.randbytes(
                    1199
                )
            elif kind == 2:
                at = dice.randrange(len(good))
                datagram = good[:at] + dice.randbytes(1) + good[at + 1 :]
            else:
                datagram = good[: dice.randrange(1, len(good))]
            sender.sendto(datagram, ("127.0.0.1", server.port))
    asyncio.run(is_served(server))
    assert "ERROR" not in server.err


def test_a_source_that_is_another_s_gets_little(serve_h3) -> None:
    """A client asks for much, and then pretends to be at an address that never answers (CVE-2026-40460)."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            stream = client.begin("/large/20000")
            while len(client.responses.get(stream, _NOTHING).body) < 100_000:
                client.has_come.clear()
                await client.has_come.wait()
            # From here on nothing is answered: what is sent there goes to the victim.
            client.datagram_received = lambda *_: None
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
                victim.bind(("127.0.0.1", 0))
                victim.setblocking(False)
                client._quic.send_ping(7)
                sent = 0
                for datagram, _ in client._quic.datagrams_to_send(now=client._loop.time()):
                    sent += victim.sendto(datagram, ("127.0.0.1", server.port))
                got, until = 0, time.monotonic() + 2
                while time.monotonic() < until:
                    try:
                        got += len(victim.recv(65536))
                    except BlockingIOError:
                        # Time for the server to repeat itself.
                        await asyncio.sleep(0.02)
                assert sent
                # RFC 9000 §8.2.1: a challenge is as long as a path has to carry, whatever has come.
                assert got <= max(3 * sent, 2 * 1200)
        await is_served(server)

    asyncio.run(main())


def test_sources_that_are_others_get_no_more_than_three_times_as_much(serve_h3) -> None:
    """A client sends short packets from many addresses, each of which is asked for a proof in a long one."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client, h3_client(server) as other:
            assert (await client.get("/")).status == 200
            sent = got = 0
            with ExitStack() as stack:
                victims = [
                    stack.enter_context(_bound(f"127.0.1.{n}", server)) for n in range(1, 31)
                ]
                own = client._transport
                for victim in victims:
                    client._transport = _Forging(victim)
                    sent += send(client, (PING, b""))
                    client._transport = own
                    # An answer of another connection: the server has read this packet.
                    assert (await other.get("/")).status == 200
                for victim in victims:
                    with suppress(BlockingIOError):
                        while True:
                            got += len(victim.recv(65536))
            assert sent < 30 * 60
            assert got <= 3 * sent + 1200
        await is_served(server)

    asyncio.run(main())


def _bound(address: str, server: Server) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind((address, 0))
    made.connect(("127.0.0.1", server.port))
    return made


PROXY, ELSEWHERE = "127.0.0.2", "127.0.0.3"


async def seen(client: H3Client, stream: int) -> str:
    """Who the handler has taken the client for."""
    return json.loads((await client.response(stream)).body)["client"][0]


@pytest.mark.parametrize("address", [PROXY, ELSEWHERE])
def test_an_address_that_is_not_proven_is_nobody_s(serve_h3, address: str) -> None:
    """A client writes the address of a trusted proxy, or of another client, into its packets."""
    server = serve_h3("--forwarded-allow-ips", PROXY, app=CLIENTS)

    async def main() -> None:
        async with h3_client(server) as client, h3_client(server) as other:
            assert await seen(client, client.begin("/")) == "127.0.0.1"
            own = client._transport
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forged:
                forged.bind((address, 0))
                forged.connect(("127.0.0.1", server.port))
                streams = []
                for _ in range(4):
                    client._transport = _Forging(forged)
                    streams.append(client.begin("/", headers=[("x-forwarded-for", "6.6.6.6")]))
                    client._transport = own
                    # A later packet of another connection is answered: the server has read this one. Nobody
                    # answers what it sends to the address.
                    assert (await other.get("/")).status == 200
                # The server gives the address up, and the responses come to whom they are for.
                assert {await seen(client, one) for one in streams} == {"127.0.0.1"}

    asyncio.run(main())


def test_an_address_that_is_proven_is_the_client_s(serve_h3) -> None:
    server = serve_h3("--forwarded-allow-ips", PROXY, app=CLIENTS)

    async def main() -> None:
        async with h3_client(server) as client:
            for address, expected in [
                (ELSEWHERE, ELSEWHERE), ("127.0.0.1", "127.0.0.1"), (PROXY, "6.6.6.6"),
            ]:  # fmt: skip
                await client.rebind(address)

                async def until_known(expected: str = expected) -> None:
                    headers = [("x-forwarded-for", "6.6.6.6")]
                    while await seen(client, client.begin("/", headers=headers)) != expected:
                        pass

                await asyncio.wait_for(until_known(), TIMEOUT_S)

    asyncio.run(main())


class _Forging:
    """Stands for a client's socket, and sends from another address."""

    def __init__(self, forged: socket.socket) -> None:
        self._forged = forged

    def sendto(self, datagram: bytes, _address: object = None) -> None:
        self._forged.send(datagram)


def test_early_data_is_not_offered(serve_h3) -> None:
    server = serve_h3()
    tickets: list = []

    async def main() -> None:
        async with h3_client(server, take_ticket=tickets.append) as client:
            assert (await client.get("/")).status == 200

    asyncio.run(main())
    assert tickets
    assert all(not ticket.max_early_data_size for ticket in tickets)


class _Nothing:
    body = b""


_NOTHING = _Nothing()
