"""What the server cuts off is in the log, with the limit that it was cut for, at the default level."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
import trustme
from h2peer import DATA, connect, frame
from h3peer import h3_client
from pki import Pki
from rig import Server, application
from wspeer import upgrade

STREAMS = application("cut_off_app")
SLOW = ["--body-read-ms", "300", "--body-rate-min-bytes-per-s", "1000"]


def test_a_body_that_comes_too_slowly(serve) -> None:
    """Issue 32 E4."""
    path = "/read"
    server: Server = serve(STREAMS, *SLOW)
    with server.connect() as peer:
        peer.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\na".encode())
        server.wait_for_log(rf"INFO .*POST {path} was cut off: .*--body-rate-min-bytes-per-s")
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", path, end=False) + frame(DATA, 0, 1, b"a"))
        server.wait_for_log(rf"POST {path} was cut off: .*--body-rate-min-bytes-per-s", count=2)


def test_a_response_that_no_client_takes(serve) -> None:
    server: Server = serve(STREAMS, "--write-stall-ms", "300", "--access-log-format", "json")
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log(r"INFO .*--write-stall-ms.* cut, with 1 open request \(1 of GET .*\)")
        server.stop()
    (line,) = map(json.loads, server.out.splitlines())
    assert (line["target"], line["fault"]) == ("/large", "stream_stalled")


def test_a_window_that_no_client_opens(serve) -> None:
    server: Server = serve(STREAMS, "--write-stall-ms", "300")
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/large"))
        # Of its stream, and then of the connection.
        server.wait_for_log(r"INFO .*window.* --write-stall-ms")


@pytest.mark.parametrize("path", ["/read", "/stream"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_what_a_drain_does_not_wait_for(serve, tmp_path: Path, version: str, path: str) -> None:
    """Issue 32 F7: it has a fault of its own."""
    options = ["--drain-s", "0.3", "--access-log-format", "json"]
    if version == "3":
        certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
        options += ["--http", "1,2,3", "--ssl-certfile", certificate, "--ssl-keyfile", key]
    server: Server = serve(STREAMS, *options)

    def cut() -> None:
        server.wait_for_log("reading")
        server.signal(signal.SIGTERM)
        server.wait_for_log("1 open request was cut off")
        server.wait()

    async def over_quic() -> None:
        async with h3_client(server) as client:
            client.begin(path, "POST", b"a", ends=False)
            await asyncio.to_thread(cut)

    if version == "1":
        with server.connect() as peer:
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\na"
            peer.send(head.encode())
            cut()
    elif version == "2":
        with connect(server) as peer:
            peer.send(peer.head(1, "POST", path, end=False) + frame(DATA, 0, 1, b"a"))
            cut()
    else:
        asyncio.run(over_quic())
    (line,) = map(json.loads, server.out.splitlines())
    status = 503 if path == "/read" else 200
    assert (line["status"], line["fault"]) == (status, "server_stopped")


def test_a_websocket_that_a_drain_does_not_wait_for(serve) -> None:
    """Issue 32 F7: its client does not answer the close, or its handler does not end."""
    server: Server = serve(STREAMS, "--drain-s", "0.3", "--access-log-format", "json")
    with server.connect() as peer:
        upgrade(peer, "/quiet")
        server.wait_for_log("reading")
        server.signal(signal.SIGTERM)
        server.wait()
    (line,) = map(json.loads, server.out.splitlines())
    assert (line["status"], line["fault"]) == (101, "server_stopped")
