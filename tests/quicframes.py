"""Frames of QUIC that aioquic has no way to send, in packets with the keys of its connection."""

# pyright: basic

from __future__ import annotations

from pathlib import Path

from h3peer import H3Client
from rig import Server

GROWTH_KIB_MAX = 8 * 1024
"""What a flood of some megabytes may leave: buffers of the allocator, and not what it brought."""


def memory_kib(server: Server) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def send(client: H3Client, *frames: tuple[int, bytes]) -> int:
    """Send frames in packets of their own; returns how many bytes those have."""
    from aioquic.quic.packet import QuicPacketType
    from aioquic.quic.packet_builder import QuicPacketBuilder
    from aioquic.tls import Epoch

    quic = client._quic
    builder = QuicPacketBuilder(
        host_cid=quic.host_cid,
        peer_cid=quic._peer_cid.cid,
        version=quic._version,
        is_client=True,
        max_datagram_size=1200,
        packet_number=quic._packet_number,
    )
    is_begun = False
    for kind, content in frames:
        if not is_begun or builder.remaining_flight_space < len(content) + 40:
            builder.start_packet(QuicPacketType.ONE_RTT, quic._cryptos[Epoch.ONE_RTT])
            is_begun = True
        builder.start_frame(kind, capacity=len(content) + 1).push_bytes(content)
        if builder._buffer.tell() > 1000:
            is_begun = False
    datagrams, _ = builder.flush()
    quic._packet_number = builder.packet_number
    for datagram in datagrams:
        client._transport.sendto(datagram, quic._network_paths[0].addr)
    return sum(map(len, datagrams))


def varint(value: int) -> bytes:
    return (value | 0x8000_0000).to_bytes(4)
