"""Frames of QUIC that a client sends to make the server keep, send or believe more than it should.

aioquic has no way to send them: packets are made here, with the keys of its connection.
"""

# pyright: basic

from __future__ import annotations

import asyncio
import os
import socket

from h3peer import H3Client, h3_client
from quicframes import GROWTH_KIB_MAX, memory_kib, send, varint
from rig import Server

PATH_CHALLENGE, NEW_CONNECTION_ID, RETIRE_CONNECTION_ID, ACK = 0x1A, 0x18, 0x19, 0x02
CONNECTION_ID_LIMIT_ERROR, PROTOCOL_VIOLATION = 0x09, 0x0A
RESET = -1


def new_id(sequence: int, retire_prior_to: int) -> tuple[int, bytes]:
    content = varint(sequence) + varint(retire_prior_to) + b"\x08" + os.urandom(8 + 16)
    return NEW_CONNECTION_ID, content


async def is_served(server: Server) -> None:
    async with h3_client(server) as client:
        assert (await client.get("/")).status == 200


async def until_ended(client: H3Client, act) -> int:
    """Act until the server ends the connection; its error code, or `RESET` if that was not read in time."""

    async def go_on() -> int:
        while client._quic._close_event is None:
            if client.is_reset:  # the server knows the connection no more
                return RESET
            act()
            client.transmit()
            await asyncio.sleep(0.01)  # between two acts
        return client._quic._close_event.error_code

    return await asyncio.wait_for(go_on(), 30)


def test_a_flood_of_path_challenges(serve_h3) -> None:
    """Of those of one packet one is answered, and the answers are smaller than what asks for them."""
    server = serve_h3()
    got = 0

    async def main() -> None:
        nonlocal got
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            received = client.datagram_received

            def count(data: bytes, address: object) -> None:
                nonlocal got
                got += len(data)
                received(data, address)

            client.datagram_received = count
            before, sent = memory_kib(server), 0
            for _ in range(100):
                sent += send(client, *[(PATH_CHALLENGE, os.urandom(8)) for _ in range(500)])
                await asyncio.sleep(0)
            assert (await client.get("/")).status == 200
            assert got < sent
            assert memory_kib(server) - before < GROWTH_KIB_MAX
            await is_served(server)

    asyncio.run(main())


def test_connection_ids_that_retire_others(serve_h3) -> None:
    """A client that acknowledges no RETIRE_CONNECTION_ID cannot make the server keep any number of them."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            before, sequence = memory_kib(server), 8

            def act() -> None:
                nonlocal sequence
                send(client, *[new_id(number, number) for number in range(sequence, sequence + 20)])
                sequence += 20

            client.transmit = lambda: None  # which would acknowledge
            for _ in range(1000):
                act()
                await asyncio.sleep(0.001)  # between two acts
            assert memory_kib(server) - before < GROWTH_KIB_MAX
            await is_served(server)

    asyncio.run(main())


def test_connection_ids_beyond_the_limit(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            number = iter(range(50, 100_000))
            code = await until_ended(
                client, lambda: send(client, *[new_id(next(number), 0) for _ in range(10)])
            )
            assert code == CONNECTION_ID_LIMIT_ERROR
            await is_served(server)

    asyncio.run(main())


def test_ids_of_the_server_are_retired_again_and_again(serve_h3) -> None:
    """It gives out new ones for those, and keeps no more than the limit."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            quic, before = client._quic, memory_kib(server)
            for _ in range(2000):
                if client.terminated is not None:
                    break
                if quic._peer_cid_available:
                    quic.change_connection_id()
                    client.transmit()
                await asyncio.sleep(0)
            assert memory_kib(server) - before < GROWTH_KIB_MAX
            await is_served(server)

    asyncio.run(main())


def test_acknowledgements_of_what_was_never_sent(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            ack = varint(1_000_000) + b"\x00\x00\x00"
            code = await until_ended(client, lambda: send(client, (ACK, ack)))
            assert code == PROTOCOL_VIOLATION
            await is_served(server)

    asyncio.run(main())


def test_optimistic_acknowledgements(serve_h3) -> None:
    """A client that acknowledges what it has not received meets a number that the server has left out."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            highest = 0
            received = client.datagram_received

            def note(data: bytes, address: object) -> None:
                nonlocal highest
                received(data, address)
                from aioquic.tls import Epoch

                space = client._quic._spaces[Epoch.ONE_RTT]
                highest = max(highest, space.largest_received_packet)

            client.datagram_received = note

            def act() -> None:
                client.begin("/large/100")
                # All up to the last that has come, the numbers that were left out too.
                send(client, (ACK, varint(highest) + b"\x00\x00" + varint(highest)))

            assert await until_ended(client, act) in {PROTOCOL_VIOLATION, RESET}
            await is_served(server)

    asyncio.run(main())


def test_packets_of_chance_do_not_end_a_connection(serve_h3) -> None:
    """Another sender that has seen the id of a connection cannot break it."""
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            cid = client._quic._peer_cid.cid
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                for _ in range(1000):
                    other.sendto(b"\x40" + cid + os.urandom(60), ("127.0.0.1", server.port))
            assert (await client.get("/")).status == 200

    asyncio.run(main())
