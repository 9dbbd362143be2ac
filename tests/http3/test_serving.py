"""Requests over HTTP/3, as aioquic sends them, and what applications and logs see of them."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from h3peer import h3_client
from rig import TIMEOUT_S, application, get, wait_for

CONTROL = 3
"""The first unidirectional stream of a server, its control stream."""


def test_a_request(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            response = await client.get("/")
            assert (response.status, response.body) == (200, b"Hello")
            assert response.headers["server"] == "citius"
            assert response.headers["alt-svc"] == f'h3=":{server.port}"; ma=86400'
            response = await client.get("/nowhere")
            assert response.status == 404

    asyncio.run(main())
    wait_for(lambda: '"GET / HTTP/3" 200' in server.out, "the line of the request")


def test_what_a_handler_sees_of_tls(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            seen = json.loads((await client.get("/about")).body)
            assert seen["scheme"] == "https"
            assert seen["version"] == "TLSv1.3"
            assert seen["server_name"] == "localhost"
            assert seen["cipher"].startswith("TLS_")
            assert not seen["resumed"]

    asyncio.run(main())


def test_many_streams_and_large_bodies_both_ways(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            streams = [client.begin(f"/large/{kib}") for kib in range(0, 400, 20)]
            for stream, kib in zip(streams, range(0, 400, 20), strict=True):
                assert (await client.response(stream)).body == b"x" * kib * 1024
            body = bytes(range(256)) * 4096
            assert (await client.get("/echo", "POST", body)).body == body
            assert (await client.get("/count", "POST", body)).body == str(len(body)).encode()
            response = await client.get("/stream/20")
            assert response.body == b"y" * 400_000

    asyncio.run(main())


def test_slow_requests_do_not_hold_up_others(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            slow = client.begin("/slow/3000")
            assert (await client.get("/")).status == 200
            assert not client.waiters[slow].done()
            assert (await client.response(slow)).body == b"slow"

    asyncio.run(main())


def test_a_client_that_resets_its_stream_cancels_the_handler(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            slow = client.begin("/slow/60000")
            assert (await client.get("/")).status == 200
            client._quic.stop_stream(slow, 0x10C)
            client.transmit()
            assert (await client.get("/")).status == 200

    asyncio.run(main())
    wait_for(lambda: '"GET /slow/60000 HTTP/3" 499' in server.out, "the line of the request")


def test_a_drain_lets_open_requests_end_and_says_goodbye(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            slow = client.begin("/slow/1500")
            assert (await client.get("/")).status == 200
            server.signal(signal.SIGTERM)
            assert (await client.response(slow)).body == b"slow"
            await asyncio.wait_for(client.wait_closed(), 20)
            assert client.terminated is not None
            assert client.terminated.error_code == 0x100

    asyncio.run(main())
    assert server.wait() == 0


@pytest.mark.parametrize("way", ["a drain", "idle time"])
def test_a_connection_that_is_closed_says_which_request_was_the_last(serve_h3, way: str) -> None:
    """Those behind it may be repeated, whatever they are (RFC 9114 §5.2)."""
    from aioquic.quic.events import StreamDataReceived

    server = serve_h3("--keep-alive-ms", "500" if way == "idle time" else "60000")
    control = bytearray()

    async def main() -> None:
        async with h3_client(server) as client:
            handle = client.h3.handle_event

            def look(event):
                if isinstance(event, StreamDataReceived) and event.stream_id == CONTROL:
                    control.extend(event.data)
                return handle(event)

            client.h3.handle_event = look
            assert (await client.get("/")).status == 200
            if way == "a drain":
                server.signal(signal.SIGTERM)
            await asyncio.wait_for(client.wait_closed(), TIMEOUT_S)

    asyncio.run(main())
    # GOAWAY, one byte: the first request that was not taken.
    assert control.endswith(b"\x07\x01\x04")


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_other_interfaces(serve_h3, kind) -> None:
    sources = {
        "asgi": """
            async def app(scope, receive, send):
                if scope["type"] == "lifespan":
                    return
                said = f"{scope['http_version']} {scope['scheme']}".encode()
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": said})
            """,
        "wsgi": """
            def app(environ, start_response):
                start_response("200 OK", [])
                return [f"{environ['SERVER_PROTOCOL']} {environ['wsgi.url_scheme']}".encode()]
            """,
    }
    server = serve_h3(app=sources[kind])

    async def main() -> None:
        async with h3_client(server) as client:
            expected = {"asgi": b"3 https", "wsgi": b"HTTP/3 https"}
            assert (await client.get("/")).body == expected[kind]

    asyncio.run(main())


def test_early_hints_and_trailers(serve_h3) -> None:
    server = serve_h3(app=application("asgi_extensions_app"))

    async def main() -> None:
        async with h3_client(server) as client:
            response = await client.get("/hint")
            assert (response.informational, response.status) == ([103], 200)
            response = await client.get("/trailers", te="trailers")
            assert response.trailers == {"digest": "1", "more": "2"}
            assert response.body == b"x"

    asyncio.run(main())


OF_CONNECTION = """
FIELDS = (b"te", b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection")
async def app(scope, receive, send):
    assert scope["type"] == "http"
    fields = [(b"x-kept", b"1"), *((name, b"trailers") for name in FIELDS)]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"x"})
"""


def test_fields_of_connections_and_requests_are_left_out(serve_h3) -> None:
    """RFC 9114 §4.2: a client that checks it closes the connection."""
    server = serve_h3(app=OF_CONNECTION)

    async def main() -> None:
        async with h3_client(server) as client:
            response = await client.get("/")
            assert set(response.headers) == {
                "x-kept", "server", "date", "content-length", "alt-svc",
            }  # fmt: skip

    asyncio.run(main())


def test_metrics_count_connections_and_requests(serve_h3) -> None:
    server = serve_h3("--management", "127.0.0.1:0")

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200

    asyncio.run(main())
    port = server.management()
    wait_for(lambda: b"citius_http3_connections_total 1" in get(port, "/metrics")[1], "the count")


def test_a_client_that_vanishes_is_forgotten(serve_h3) -> None:
    server = serve_h3("--quic-idle-ms", "500", "--management", "127.0.0.1:0")

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200
            # Nothing more is sent, not even an acknowledgement.
            client._transport.close()

    asyncio.run(main())
    port = server.management()
    wait_for(
        lambda: b'citius_connections_open{worker="0"} 0' in get(port, "/metrics")[1], "the end"
    )


def test_packets_are_written_to_a_directory(serve_h3, tmp_path) -> None:
    directory = tmp_path / "qlog"
    directory.mkdir()
    server = serve_h3("--quic-qlog-dir", str(directory))

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/")).status == 200

    asyncio.run(main())
    (file,) = directory.iterdir()
    wait_for(lambda: "packet_sent" in file.read_text(), "an event")


def test_a_port_that_changes(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            for _ in range(3):
                assert (await client.get("/large/100")).status == 200
                await client.rebind()
            assert (await client.get("/")).status == 200

    asyncio.run(main())


def test_a_response_goes_on_while_the_port_changes(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        async with h3_client(server) as client:
            slow = client.begin("/slow/1000")
            assert (await client.get("/")).status == 200
            await client.rebind()
            client._quic.send_ping(1)
            client.transmit()
            assert (await client.response(slow)).body == b"slow"

    asyncio.run(main())
