"""Open files as bodies: the kernel sends them, from the position they are at."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from rig import Server, application, wait_for

APP = application("files_app")
SMALL, LARGE = b"a few\nbytes\n", bytes(range(256)) * 4096


@pytest.fixture
def server(serve, tmp_path: Path) -> Server:
    (tmp_path / "small").write_bytes(SMALL)
    (tmp_path / "large").write_bytes(LARGE)
    (tmp_path / "empty").write_bytes(b"")
    return serve(APP)


@pytest.mark.parametrize("way", ["def", "async", "blocking", "unbuffered", "from/0"])
@pytest.mark.parametrize(("name", "content"), [("small", SMALL), ("large", LARGE)])
def test_whole(server: Server, way: str, name: str, content: bytes) -> None:
    reply = server.get(f"/{way}/{name}")
    assert reply.body == content
    assert reply.headers["content-length"] == str(len(content))
    assert reply.status == (201 if way == "async" else 200)
    assert reply.headers["content-type"] == (
        "text/plain" if way == "async" else "application/octet-stream"
    )
    if way != "unbuffered":
        assert server.get("/closed").body == b"true"


@pytest.mark.parametrize("position", [1, 5, len(LARGE) - 1, len(LARGE), len(LARGE) + 7])
def test_from_its_position_on(server: Server, position: int) -> None:
    assert server.get(f"/from/{position}/large").body == LARGE[position:]


def test_what_is_not_sent_by_the_kernel_is_read(server: Server) -> None:
    assert b"Threads:" in server.get("/proc").body
    assert server.get("/pipe").body == b"out of\na pipe"
    assert server.get("/def/empty").body == b""


def test_head_and_pipelining_keep_their_order(server: Server) -> None:
    with server.connect() as peer:
        for method, path in [
            ("HEAD", "large"),
            ("GET", "large"),
            ("GET", "small"),
            ("HEAD", "small"),
        ]:
            peer.send(f"{method} /def/{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert peer.reply("HEAD").headers["content-length"] == str(len(LARGE))
        assert peer.reply().body == LARGE
        assert peer.reply().body == SMALL
        assert peer.reply("HEAD").headers["content-length"] == str(len(SMALL))


def test_descriptors_are_given_back(server: Server) -> None:
    before = int(server.get("/descriptors").body)
    peers = [server.connect(receive_buffer_bytes=4096) for _ in range(10)]
    for peer in peers:
        peer.send(b"GET /def/large HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read(10)
    for peer in peers:
        peer.reset()
    # A connection at rest holds one descriptor, that of the question itself.
    wait_for(lambda: int(server.get("/descriptors").body) <= before, "the files to be closed")


def test_a_file_that_shrinks_is_cut_and_logged(server: Server, tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(64 << 20)
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /def/huge HTTP/1.1\r\nHost: a\r\n\r\n")
        head = peer.read_until(b"\r\n\r\n")
        assert re.search(rb"content-length: 67108864\r\n", head)
        os.truncate(huge, 1000)
        assert len(peer.read_to_end()) < 64 << 20
    server.wait_for_log("has become shorter while it was sent")
    assert server.get("/def/small").body == SMALL


def test_a_replaced_file_is_sent_as_it_was(server: Server, tmp_path: Path) -> None:
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /def/large HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        (tmp_path / "other").write_bytes(b"other")
        (tmp_path / "other").replace(tmp_path / "large")
        assert peer.read(len(LARGE)) == LARGE
    assert server.get("/def/large").body == b"other"
