"""What a client declares or sends so that the server keeps more than came; parameters that break rules."""

# pyright: basic

from __future__ import annotations

import asyncio

import pytest
from aioquic.quic.connection import QuicConnection
from h3peer import h3_client
from quicframes import GROWTH_KIB_MAX, memory_kib, send, varint
from rig import TIMEOUT_S, Server

STREAM_WITH_OFFSET_AND_LENGTH, STREAM = 0x0E, 0x08
TRANSPORT_PARAMETER_ERROR = 0x08


def parameter(number: int, value: bytes) -> bytes:
    return varint(number) + varint(len(value)) + value


async def is_served(server: Server) -> None:
    async with h3_client(server) as client:
        assert (await client.get("/")).status == 200


SOURCE = 0x0F
HOSTILE = {
    "none": lambda _own: b"",
    "a_number_alone": lambda own: own + b"\x03",
    "longer_than_there_is": lambda own: own + varint(0x21) + varint(0x3FFF_FFFF),
    "the_longest_length": lambda own: own + varint(0x21) + b"\xff" * 8,
    "twice": lambda own: own + parameter(0x04, varint(9)),
    "bytes_behind_a_number": lambda own: own + parameter(0x03, varint(1200) + b"\0"),
    "an_empty_number": lambda own: own + parameter(0x03, b""),
    "small_datagrams": lambda own: own + parameter(0x03, varint(1199)),
    "large_exponent": lambda own: own + parameter(0x0A, b"\x15"),
    "largest_exponent": lambda own: own + parameter(0x0A, b"\xff" * 8),
    "long_delay": lambda own: own + parameter(0x0B, varint(1 << 14)),
    "no_ids": lambda own: own + parameter(0x0E, b"\x01"),
    "long_id": lambda own: own + parameter(SOURCE, b"\0" * 21),
    "id_of_another": lambda own: own + parameter(SOURCE, b"\0" * 8),
    "a_server_s_id": lambda own: own + parameter(0x00, b"\0" * 8),
    "a_server_s_token": lambda own: own + parameter(0x02, b"\0" * 16),
    "a_server_s_address": lambda own: own + parameter(0x0D, b"\0" * 41),
    "half_an_address": lambda own: own + parameter(0x0D, b"\0" * 7),
    "migration_with_a_value": lambda own: own + parameter(0x0C, b"\0"),
}
"""Changes of what a client of aioquic says of itself. What is changed is left out first."""


@pytest.mark.parametrize("name", HOSTILE)
def test_transport_parameters_that_break_rules(
    serve_h3, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """RUSTSEC-2026-0037: what a client says of itself ends its handshake, and nothing else."""
    server = serve_h3()
    serialize = QuicConnection._serialize_transport_parameters

    def hostile(quic: QuicConnection) -> bytes:
        own = serialize(quic)
        changed = HOSTILE[name](own)
        added = changed[len(own) :]
        if len(added) > 4 and name != "twice":
            own = without(own, int.from_bytes(added[:4]) & 0x3FFF_FFFF)
        return own + added if changed else b""

    async def main() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(QuicConnection, "_serialize_transport_parameters", hostile)
            async with h3_client(server, is_connected=False) as client:
                async with asyncio.timeout(TIMEOUT_S):
                    while client.terminated is None:
                        client.has_come.clear()
                        await client.has_come.wait()
                assert client.terminated.error_code == TRANSPORT_PARAMETER_ERROR
        await is_served(server)

    asyncio.run(main())
    assert "panic" not in server.err


def without(parameters: bytes, number: int) -> bytes:
    """Without one of the parameters."""
    from aioquic.buffer import Buffer

    kept, buffer = b"", Buffer(data=parameters)
    while not buffer.eof():
        found = buffer.pull_uint_var()
        value = buffer.pull_bytes(buffer.pull_uint_var())
        if found != number:
            kept += parameter(found, value)
    return kept


def test_bytes_with_gaps_keep_no_datagrams(serve_h3) -> None:
    """RUSTSEC-2026-0185: a byte of a stream in a full datagram is kept as a byte."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            stream = client._quic.get_next_available_stream_id()
            before = memory_kib(server)
            for at in range(12_000):
                place = varint(stream) + varint(1 + 2 * at) + varint(1) + b"x"
                send(client, (STREAM_WITH_OFFSET_AND_LENGTH, place + b"\0" * 1000))
                if at % 100 == 0:
                    assert (await client.get("/")).status == 200
            assert memory_kib(server) - before < GROWTH_KIB_MAX
            await is_served(server)

    asyncio.run(main())


@pytest.mark.parametrize(
    "kind", [0x00, 0x01, 0x04, 0x21], ids=["data", "headers", "settings", "unknown"]
)
def test_lengths_that_are_declared_reserve_nothing(serve_h3, kind: int) -> None:
    """bun 35763: some bytes that announce a gigabyte, on as many streams as there may be."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            before = memory_kib(server)
            for _ in range(50):
                stream = client._quic.get_next_available_stream_id()
                client._quic.send_stream_data(stream, bytes([kind]) + varint(1 << 29) + b"\0\0")
            client.transmit()
            await is_served(server)
            assert memory_kib(server) - before < GROWTH_KIB_MAX

    asyncio.run(main())
