"""What the server cuts off is in the log, with the limit that it was cut for, at the default level."""

from __future__ import annotations

import json
import signal

from h2peer import DATA, connect, frame
from rig import Server, application

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


def test_what_a_drain_does_not_wait_for(serve) -> None:
    """Issue 32 F7: it has a fault of its own."""
    server: Server = serve(STREAMS, "--drain-s", "0.3", "--access-log-format", "json")
    with server.connect() as peer:
        peer.send(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\na")
        server.wait_for_log("reading")
        server.signal(signal.SIGTERM)
        server.wait_for_log("1 open request was cut off")
        server.wait()
    (line,) = map(json.loads, server.out.splitlines())
    assert (line["status"], line["fault"]) == (503, "server_stopped")
