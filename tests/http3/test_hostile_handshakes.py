"""Clients that begin handshakes and do not end them: what the server keeps and says."""

# pyright: basic

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter

import pytest
from h3peer import configuration, h3_client
from quicframes import GROWTH_KIB_MAX, memory_kib, varint
from rig import TIMEOUT_S, Server

CRYPTO = 0x06
INITIAL, RETRY = 0, 3


class HalfOpen:
    """A client that says what it likes in Initial packets, and reads nothing."""

    def __init__(self, server: Server) -> None:
        from aioquic.quic.crypto import CryptoPair
        from aioquic.quic.packet import QuicProtocolVersion

        self.version = QuicProtocolVersion.VERSION_1
        self.own, self.chosen = os.urandom(8), os.urandom(8)
        self.crypto = CryptoPair()
        self.crypto.setup_initial(cid=self.chosen, is_client=True, version=self.version)
        self.packet_number = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(("127.0.0.1", server.port))

    def __enter__(self) -> HalfOpen:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.socket.close()

    def send(self, offset: int, content: bytes) -> int:
        """Send a part of the handshake in a full datagram; returns the bytes of that."""
        from aioquic.quic.packet import QuicPacketType
        from aioquic.quic.packet_builder import QuicPacketBuilder

        builder = QuicPacketBuilder(
            host_cid=self.own,
            peer_cid=self.chosen,
            version=self.version,
            is_client=True,
            max_datagram_size=1200,
            packet_number=self.packet_number,
        )
        builder.start_packet(QuicPacketType.INITIAL, self.crypto)
        place = varint(offset) + varint(len(content))
        builder.start_frame(CRYPTO, capacity=len(content) + 9).push_bytes(place + content)
        (datagram,), _ = builder.flush()
        self.packet_number = builder.packet_number
        self.socket.send(datagram)
        return len(datagram)


def first_datagram() -> bytes:
    """What a client that is well-behaved begins with."""
    from aioquic.quic.connection import QuicConnection

    quic = QuicConnection(configuration=configuration())
    quic.connect(("127.0.0.1", 1), now=0.0)
    return quic.datagrams_to_send(now=0.0)[0][0]


async def is_served(server: Server) -> None:
    async with h3_client(server) as client:
        assert (await client.get("/")).status == 200


@pytest.mark.parametrize("has_gaps", [False, True], ids=["in_order", "with_gaps"])
def test_handshakes_that_only_grow_keep_little(serve_h3, *, has_gaps: bool) -> None:
    """So many bytes of a handshake are kept as it may have, of so many handshakes; then it has failed."""
    server = serve_h3("--quic-handshakes-max", "60", "--quic-retry-handshakes", "60")
    asyncio.run(is_served(server))
    before, sent = memory_kib(server), 0
    # A ClientHello of 16 MB, as far as its first bytes say.
    announced = b"\x01\xff\xff\xff"
    for _ in range(600):
        with HalfOpen(server) as client:
            sent += client.send(0, announced)
            for at in range(1, 40):
                place = at * 1100
                sent += client.send(place + has_gaps, b"x" * (1100 - 2 * has_gaps))
    assert sent > 2 * 1024 * GROWTH_KIB_MAX
    asyncio.run(is_served(server))
    assert memory_kib(server) - before < GROWTH_KIB_MAX
    assert "panic" not in server.err


def test_from_some_handshakes_on_there_is_retry_and_nothing_is_kept(serve_h3) -> None:
    """Sources that are not proven get a Retry, which is shorter than what they sent, and cost no memory."""
    # On a busy machine it takes longer than a handshake may.
    patient = ("--tls-handshake-ms", "600000", "--quic-idle-ms", "600000")
    server = serve_h3("--quic-handshakes-max", "40", "--quic-retry-handshakes", "20", *patient)
    asyncio.run(is_served(server))
    said = Counter[int]()
    before = memory_kib(server)
    for _ in range(1000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(("127.0.0.1", server.port))
            sent = client.send(first_datagram())
            answer = client.recv(65_536)
            # RFC 9000 §17.2: a long header, and its type.
            assert answer[0] & 0xC0 == 0xC0
            kind = answer[0] >> 4 & 3
            said[kind] += 1
            assert len(answer) < sent if kind == RETRY else len(answer) <= 3 * sent
    assert said == {INITIAL: 20, RETRY: 980}
    assert memory_kib(server) - before < GROWTH_KIB_MAX
    # Who proves an address is served meanwhile.
    asyncio.run(is_served(server))
