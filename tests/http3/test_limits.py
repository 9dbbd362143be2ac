"""The limits of QUIC, each with a client that goes beyond it; handshakes: crates/citius-quic/src/tests.rs."""

# pyright: basic

from __future__ import annotations

import asyncio
import time

import pytest
from h3peer import Response, configuration, h3_client
from rig import TIMEOUT_S, processor_share, wait_for


def test_many_handshakes_at_once_are_proven_first(serve_h3) -> None:
    """quic_retry_handshakes, quic_handshakes_max"""
    server = serve_h3("--quic-retry-handshakes", "0")

    async def main() -> None:
        async with h3_client(server) as client:
            assert client._quic._retry_source_connection_id is not None
            assert (await client.get("/")).status == 200

    asyncio.run(main())


def test_a_client_that_says_nothing_is_forgotten(serve_h3) -> None:
    """quic_idle_ms"""
    server = serve_h3("--quic-idle-ms", "700")

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            began = time.monotonic()
            await asyncio.wait_for(client.wait_closed(), 10)
            assert 0.5 < time.monotonic() - began < 3

    asyncio.run(main())


def test_an_unread_body_waits_at_the_client(serve_h3) -> None:
    """quic_window_bytes"""
    server = serve_h3(
        "--quic-window-bytes", "65536", "--body-window-bytes", "16384",
        app="""
        @app.post("/", stream=True)
        async def never(request):
            await asyncio.sleep(60)
        """,
    )  # fmt: skip

    async def main() -> None:
        async with h3_client(server) as client:
            client.begin("/", "POST", bytes(1_000_000), ends=False)
            quic = client._quic
            # What would come in this time must not.
            await asyncio.sleep(0.5)
            assert quic._remote_max_data_used <= quic._remote_max_data <= 2 * 65536

    asyncio.run(main())


def test_responses_that_are_not_acknowledged_wait(serve_h3) -> None:
    """quic_unacknowledged_bytes_max"""
    server = serve_h3("--quic-unacknowledged-bytes-max", "65536")

    async def main() -> None:
        async with h3_client(server) as client:
            response = await client.get("/large/2000")
            assert len(response.body) == 2000 * 1024

    asyncio.run(main())


def test_streams_beyond_the_limit_close_the_connection(serve_h3) -> None:
    """quic_uni_streams_max"""
    server = serve_h3("--quic-uni-streams-max", "5")

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            quic = client._quic
            # The client's own bookkeeping would stop it.
            quic._remote_max_streams_uni = 100
            for number in range(10):
                quic.send_stream_data(4 * (10 + number) + 2, b"!", False)
            client.transmit()
            await asyncio.wait_for(client.wait_closed(), 10)
            # RFC 9000 §20.1: STREAM_LIMIT_ERROR.
            assert client.terminated.error_code == 4

    asyncio.run(main())


def test_datagrams_have_a_size_that_is_told(serve_h3) -> None:
    """quic_datagram_bytes_max"""
    for limit, told in (("0", False), ("65536", True)):
        server = serve_h3("--quic-datagram-bytes-max", limit)

        async def main(server=server, told=told) -> None:
            async with h3_client(server, configuration(max_datagram_frame_size=65536)) as client:
                assert bool(client._quic._remote_max_datagram_frame_size) == told
                assert (await client.get("/")).status == 200

        asyncio.run(main())


def test_a_flood_of_datagrams_leaves_time_for_others(serve_h3) -> None:
    """quic_datagrams_per_turn_max"""
    import socket
    import threading

    server = serve_h3("--quic-datagrams-per-turn-max", "16")
    ends = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not ends.is_set():
                for _ in range(64):
                    sender.sendto(b"\x40" + bytes(1199), ("127.0.0.1", server.port))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        for _ in range(20):
            with server.connect() as peer:
                peer.socket.settimeout(10)
        async_hello(server)
    finally:
        ends.set()
        thread.join()
    wait_for(lambda: processor_share(server) < 0.2, "rest")


def async_hello(server) -> None:
    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200

    asyncio.run(main())


ECHO_PIECES = """
@app.post("/", stream=True)
async def echo(request):
    async def pieces():
        async for piece in request.stream():
            yield piece
    return pieces()
"""


def test_a_quiet_client_of_a_stream_in_both_directions_lives_on(serve_h3) -> None:
    """Issue 32 E4, body_read_ms: the deadline of a body does not run while its response streams."""
    server = serve_h3("--body-read-ms", "200", app=ECHO_PIECES)

    async def main() -> None:
        async with h3_client(server) as client:
            stream = client.begin("/", "POST", b"a", ends=False)
            for at in (1, 2):
                while len(client.responses.setdefault(stream, Response()).body) < at:
                    client.has_come.clear()
                    await asyncio.wait_for(client.has_come.wait(), TIMEOUT_S)
                # Longer than the deadline: what would come in this time must not.
                await asyncio.sleep(1)
                client.h3.send_data(stream, b"b", end_stream=at == 2)
                client.transmit()
            assert (await client.response(stream)).body == b"abb"

    asyncio.run(main())


@pytest.mark.parametrize(
    "head",
    [
        [("x-long", "v" * 4000)] * 20,
        [(f"x-{number}", "v") for number in range(1000)],
    ],
    ids=["bytes", "fields"],
)
def test_a_header_section_that_is_too_large_ends_its_stream_alone(serve_h3, head) -> None:
    """Issue 32 E5, head_bytes_max and fields_max."""
    server = serve_h3(app=ECHO_PIECES)

    async def main() -> None:
        async with h3_client(server) as client:
            neighbours = [client.begin("/", "POST", b"a", ends=False) for _ in range(3)]
            for _ in range(2):
                assert (await client.response(client.begin("/", headers=head))).status == 431
            for stream in neighbours:
                client.h3.send_data(stream, b"b", end_stream=True)
            client.transmit()
            for stream in neighbours:
                assert (await client.response(stream)).body == b"ab"

    asyncio.run(main())
