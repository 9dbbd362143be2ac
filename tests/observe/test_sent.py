"""Access lines and counters come when the kernel has all of a response, or its connection or stream ends."""

from __future__ import annotations

import json
import os
import re
import ssl
from pathlib import Path
from typing import Any

import h2peer
import pytest
from rig import Server, application, wait_for

SIZE = 16_000_000
SHORT = 2_000_000
APP = application("sent_bytes_app")
REQUEST = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"
STREAM = REQUEST % f"/stream/{SIZE}".encode()
FILE = REQUEST % f"/file/{SIZE}".encode()


KINDS = pytest.mark.parametrize("kind", ["file", "bytes", "stream"])


def make_files(folder: Path) -> None:
    for size in (SIZE, SHORT):
        (folder / f"large-{size}").touch()
        os.truncate(folder / f"large-{size}", size)


def log(server: Server, count: int) -> list[dict[str, Any]]:
    wait_for(lambda: server.out.count("\n") >= count, f"{count} lines in {server.out!r}")
    return [json.loads(line) for line in server.out.splitlines()]


@pytest.fixture
def server(manage, tmp_path: Path):
    make_files(tmp_path)
    managed = manage(APP, "--access-log-format", "json")
    managed.server.managed = managed
    return managed.server


def finished(server: Any) -> float:
    metrics = server.managed.metrics()
    return sum(n for name, n in metrics.items() if name.startswith("citius_http_requests_total"))


@pytest.mark.epoll("what asyncio has taken counts as sent")
@KINDS
def test_an_aborted_download_is_told_with_what_was_sent(server: Server, kind: str) -> None:
    path = f"/{kind}/{SIZE}"
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(REQUEST % path.encode())
        peer.read(200_000)
        assert server.get("/small").status == 200
        # The other request is told of first: this one's response has not left.
        assert [line["target"] for line in log(server, 1)] == ["/small"]
        wait_for(lambda: finished(server) == 1, "the small one to be counted alone")
    line = log(server, 2)[1]
    assert (line["target"], line["status"], line["fault"]) == (path, 200, "client_left")
    assert 100_000 < line["bytes"] < SIZE
    wait_for(lambda: finished(server) == 2, "both to be counted")


@KINDS
def test_a_whole_download_is_told_with_all_of_it(server: Server, kind: str) -> None:
    path = f"/{kind}/{SHORT}"
    with server.connect() as peer:
        peer.send(REQUEST % path.encode() + REQUEST % b"/small")
        peer.reply()
        peer.reply()
    second, first = sorted(log(server, 2), key=lambda line: line["bytes"])
    assert (first["target"], first["status"], first["bytes"]) == (path, 200, SHORT)
    assert (second["target"], second["status"], second["bytes"]) == ("/small", 200, 5)
    assert "fault" not in first or first["fault"] is None


def test_responses_that_wait_for_an_earlier_one_are_not_sent(server: Server) -> None:
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(STREAM + REQUEST % b"/small")
        peer.read(50_000)
        assert server.get("/small").status == 200
        assert len(log(server, 1)) == 1
    stream, small = sorted(log(server, 3)[1:], key=lambda line: line["target"], reverse=True)
    assert (stream["target"], stream["fault"]) == (f"/stream/{SIZE}", "client_left")
    assert (small["target"], small["bytes"], small["fault"]) == ("/small", 0, "client_left")


def test_a_stream_that_is_reset_is_told_with_what_was_sent(server: Server) -> None:
    with h2peer.connect(server, opens_windows=False) as peer:
        peer.request(1, "GET", f"/bytes/{SIZE}")
        while 1 not in peer.answers or len(peer.answers[1].body) < 65_535:
            peer.step()
        peer.reset(1)
        line = log(server, 1)[0]
    assert (line["target"], line["status"], line["fault"]) == (
        f"/bytes/{SIZE}",
        200,
        "stream_reset",
    )
    assert line["bytes"] == 65_535


def test_a_stream_whose_connection_ends_is_told_with_what_was_sent(server: Server) -> None:
    with h2peer.connect(server, opens_windows=False) as peer:
        peer.request(1, "GET", f"/bytes/{SIZE}")
        while 1 not in peer.answers or len(peer.answers[1].body) < 65_535:
            peer.step()
    line = log(server, 1)[0]
    assert (line["target"], line["fault"], line["bytes"]) == (
        f"/bytes/{SIZE}",
        "client_left",
        65_535,
    )


def test_a_file_that_becomes_shorter_is_told_as_broken_off(server: Server, tmp_path: Path) -> None:
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(FILE)
        peer.read(100_000)
        os.truncate(tmp_path / f"large-{SIZE}", 1_000_000)
        peer.read_to_end()
    line = log(server, 1)[0]
    assert (line["status"], line["fault"]) == (200, "aborted")
    assert line["bytes"] < SIZE


def test_an_aborted_download_over_tls(serve, tmp_path: Path) -> None:
    make_files(tmp_path)
    server = serve(APP, "--access-log-format", "json", "--ssl-dev")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    peer = server.connect(receive_buffer_bytes=4096)
    with context.wrap_socket(peer.socket) as wrapped:
        wrapped.sendall(FILE)
        taken = 0
        while taken < 200_000:
            taken += len(wrapped.recv(65536))
    line = log(server, 1)[0]
    assert (line["target"], line["fault"]) == (f"/file/{SIZE}", "client_left")
    # Records are sealed four at a time, and count when the socket has taken the last byte of the four.
    assert 200_000 - 4 * 16_384 <= line["bytes"] < SIZE
    assert re.search(r"https", server.err)


ASGI = """
async def app(scope, receive, send):
    status = int(scope["path"][1:])
    await send({"type": "http.response.start", "status": status, "headers": []})
    for number in range(3):
        await send({"type": "http.response.body", "body": b"xyz", "more_body": number < 2})
"""
WSGI = """
def app(environ, start_response):
    start_response(environ["PATH_INFO"][1:] + " Status", [])
    return [b"xyz"] * 3
"""


@pytest.mark.parametrize("source", [ASGI, WSGI], ids=["asgi", "wsgi"])
def test_content_that_is_not_sent_is_not_counted(serve, source: str) -> None:
    """Servers D16: of a 205 as of a 204, a 304 and a HEAD."""
    interface = "asgi" if source is ASGI else "wsgi"
    server = serve(source, "--access-log-format", "json", "--interface", interface)
    with server.connect() as peer:
        for status in (200, 204, 205, 304):
            assert peer.request("GET", f"/{status}").body == (b"xyz" * 3 if status == 200 else b"")
        assert peer.request("HEAD", "/200").body == b""
    with h2peer.connect(server) as peer:
        for number, status in enumerate((200, 204, 205, 304)):
            assert peer.get(2 * number + 1, f"/{status}").status == status
    lines = log(server, 9)
    assert [line["bytes"] for line in lines] == [9, 0, 0, 0, 0, 9, 0, 0, 0]
