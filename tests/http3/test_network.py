"""Networks that lose, change, repeat and hold back packets, by a seed; cases of quic-interop-runner."""

# pyright: basic

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from h3peer import configuration, h3_client
from rig import Server

Change = Callable[[bytes, bool], list[bytes]]
"""What a datagram becomes; ``True``: it is the client's."""


class Relay:
    """Between one client and a server."""

    def __init__(self, server: int, change: Change) -> None:
        self.server = server
        self.change = change
        self.client: tuple[str, int] | None = None
        self.sent = {True: 0, False: 0}
        self.passed = {True: 0, False: 0}

    async def open(self) -> int:
        loop = asyncio.get_running_loop()
        relay = self

        class Side(asyncio.DatagramProtocol):
            def __init__(self, *, is_clients: bool) -> None:
                self.is_clients = is_clients

            def datagram_received(self, data: bytes, addr) -> None:
                relay.take(data, addr, self.is_clients)

        address = ("127.0.0.1", 0)
        self.front, _ = await loop.create_datagram_endpoint(
            lambda: Side(is_clients=True), local_addr=address
        )
        self.back, _ = await loop.create_datagram_endpoint(
            lambda: Side(is_clients=False), local_addr=address
        )
        return self.front.get_extra_info("sockname")[1]

    def take(self, data: bytes, addr, is_clients: bool) -> None:
        if is_clients:
            self.client = addr
        self.sent[is_clients] += len(data)
        for piece in self.change(data, is_clients):
            self.passed[is_clients] += len(piece)
            if is_clients:
                self.back.sendto(piece, ("127.0.0.1", self.server))
            else:
                self.front.sendto(piece, self.client)

    def close(self) -> None:
        self.front.close()
        self.back.close()


@asynccontextmanager
async def relayed(server: Server, change: Change) -> AsyncGenerator[tuple[Relay, int]]:
    relay = Relay(server.port, change)
    port = await relay.open()
    try:
        yield relay, port
    finally:
        relay.close()


def losing(seed: int, share: float) -> Change:
    dice = random.Random(seed)
    return lambda data, _: [] if dice.random() < share else [data]


def corrupting(seed: int, share: float) -> Change:
    dice = random.Random(seed)

    def change(data: bytes, _: bool) -> list[bytes]:
        if dice.random() >= share:
            return [data]
        at = dice.randrange(len(data))
        return [data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]]

    return change


def repeating(seed: int) -> Change:
    dice = random.Random(seed)
    kept: list[bytes] = []

    def change(data: bytes, is_clients: bool) -> list[bytes]:
        if is_clients:
            kept.append(data)
            return [data, dice.choice(kept), data]
        return [data, data]

    return change


def holding_back(seed: int) -> Change:
    dice = random.Random(seed)
    held: dict[bool, list[bytes]] = {True: [], False: []}

    def change(data: bytes, is_clients: bool) -> list[bytes]:
        waiting = held[is_clients]
        waiting.append(data)
        if dice.random() < 0.4 and len(waiting) < 5:
            return []
        dice.shuffle(waiting)
        taken, held[is_clients] = waiting, []
        return taken

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: losing(1, 0.05), id="loss"),
        pytest.param(lambda: losing(2, 0.25), id="much loss"),
        pytest.param(lambda: corrupting(3, 0.05), id="corruption"),
        pytest.param(lambda: repeating(4), id="repetition"),
        pytest.param(lambda: holding_back(5), id="another order"),
    ],
)
def test_transfers_over_bad_networks(serve_h3, change) -> None:
    server = serve_h3("--body-read-ms", "60000")  # a body may be slow for longer

    async def main() -> None:
        async with relayed(server, change()) as (_, port), h3_client(port) as client:
            body = random.Random(6).randbytes(60_000)
            streams = [client.begin("/echo", "POST", body), client.begin("/large/100")]
            assert (await client.response(streams[0])).body == body
            assert (await client.response(streams[1])).body == b"x" * 102_400

    asyncio.run(main())


def test_a_network_that_falls_silent(serve_h3) -> None:
    server = serve_h3()
    is_silent = False

    async def main() -> None:
        nonlocal is_silent
        change: Change = lambda data, _: [] if is_silent else [data]  # noqa: E731
        async with relayed(server, change) as (_, port), h3_client(port) as client:
            stream = client.begin("/large/2000")
            is_silent = True
            # Some timeouts of either side.
            await asyncio.sleep(1.5)
            is_silent = False
            assert len((await client.response(stream)).body) == 2_048_000

    asyncio.run(main())


def test_before_its_address_is_proven_a_client_gets_three_times_what_it_sent(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        come = 0

        def change(data: bytes, is_clients: bool) -> list[bytes]:
            nonlocal come
            come += is_clients
            return [data] if is_clients and come == 1 else []

        async with relayed(server, change) as (relay, port):
            async with h3_client(port, is_connected=False):
                # Time for the server to repeat itself.
                await asyncio.sleep(2.0)
            assert 0 < relay.sent[False] <= 3 * relay.passed[True]

    asyncio.run(main())


@pytest.mark.parametrize(
    "suite", ["CHACHA20_POLY1305_SHA256", "AES_128_GCM_SHA256", "AES_256_GCM_SHA384"]
)
def test_cipher_suites(serve_h3, suite) -> None:
    from aioquic.tls import CipherSuite

    server = serve_h3()

    async def main() -> None:
        async with h3_client(server, configuration(cipher_suites=[CipherSuite[suite]])) as client:
            assert (await client.get("/large/10")).status == 200

    asyncio.run(main())


def test_keys_are_updated(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            for _ in range(4):
                assert len((await client.get("/large/100")).body) == 102_400
                client._quic.request_key_update()
            assert (await client.get("/")).status == 200

    asyncio.run(main())


def test_a_session_is_resumed_with_any_worker(serve_h3) -> None:
    server = serve_h3("--workers", "3")

    async def main() -> None:
        tickets: list = []
        async with h3_client(server, take_ticket=tickets.append) as client:
            assert b'"resumed":false' in (await client.get("/about")).body
            assert tickets
        workers = set()
        for _ in range(12):
            async with h3_client(server, configuration(session_ticket=tickets[0])) as client:
                body = (await client.get("/about")).body
                assert b'"resumed":true' in body
                workers.add(body.rpartition(b'"pid":')[2])
        assert len(workers) > 1

    asyncio.run(main())


def test_versions_that_are_not_spoken_are_named(serve_h3) -> None:
    server = serve_h3()
    initial = b"\xc0" + bytes.fromhex("1a2a3a4a") + b"\x08" + b"d" * 8 + b"\x08" + b"s" * 8
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(10)
        # RFC 9000 §6.1: shorter ones get no answer.
        sender.sendto(initial + bytes(500), ("127.0.0.1", server.port))
        sender.sendto(initial + bytes(1300), ("127.0.0.1", server.port))
        said = sender.recv(2000)
    assert said[1:5] == bytes(4)
    assert said[5:23] == b"\x08" + b"s" * 8 + b"\x08" + b"d" * 8
    versions = [said[at : at + 4] for at in range(23, len(said), 4)]
    assert bytes([0, 0, 0, 1]) in versions


def test_certificates_that_change_are_used_by_new_connections(serve_h3, certificate) -> None:
    from pathlib import Path

    import trustme

    server = serve_h3()

    async def shown() -> bytes:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            return client._quic.tls._peer_certificate.public_bytes(_der())

    before = asyncio.run(shown())
    made = trustme.CA().issue_cert("localhost", common_name="renewed")
    kept = [Path(path).read_bytes() for path in certificate]
    try:
        made.private_key_pem.write_to_path(certificate[1])
        Path(certificate[0]).write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))

        async def until_renewed() -> None:
            while await shown() == before:
                # The files are looked at once a second.
                await asyncio.sleep(0.1)

        asyncio.run(asyncio.wait_for(until_renewed(), 20))
    finally:
        for path, content in zip(certificate, kept, strict=True):
            Path(path).write_bytes(content)


def _der():
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.DER
