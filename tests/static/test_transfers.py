"""Files that change, are huge, or are read slowly while they are sent."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from rig import Server, wait_for
from static_site import LARGE


def test_a_file_replaced_while_it_is_sent(files: Server, site: Path) -> None:
    big = b"a" * (8 << 20)
    (site / "big").write_bytes(big)
    with files.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /assets/big HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        (site / "new").write_bytes(b"b" * 100)
        (site / "new").replace(site / "big")
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        assert peer.read(len(big)) == big
    wait_for(lambda: files.get("/assets/big").body == b"b" * 100, "the new file")


def test_a_file_cut_while_it_is_sent(files: Server, site: Path) -> None:
    (site / "big").write_bytes(b"a" * (8 << 20))
    with files.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /assets/big HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        os.truncate(site / "big", 5)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        assert len(peer.read_to_end()) < 8 << 20
    files.wait_for_log("big has become shorter while it was sent")
    assert files.get("/assets/style.css").status == 200


def test_a_huge_file_and_a_slow_reader_starve_nobody(files: Server, site: Path) -> None:
    with (site / "huge").open("wb") as file:
        file.truncate(1 << 33)
    slow = [files.connect(receive_buffer_bytes=4096) for _ in range(20)]
    for peer in slow:
        peer.send(b"GET /assets/huge HTTP/1.1\r\nhost: a\r\n\r\n")
    fast = files.connect()
    fast.send(b"GET /assets/huge HTTP/1.1\r\nhost: a\r\n\r\n")
    assert f"content-length: {1 << 33}".encode() in fast.read_until(b"\r\n\r\n")
    for _ in range(20):
        fast.read(1 << 20)
        assert files.get("/app").body == b"from the application"
    # All of them send from one open file.
    descriptors = int(files.get("/descriptors").body)
    assert descriptors < len(slow) + 40


def test_a_reader_that_stops_is_reset(serve, site: Path) -> None:
    (site / "big").write_bytes(b"a" * (16 << 20))
    server = serve("", "--static", f"/assets={site}", "--write-stall-ms", "200")
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /assets/big HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read(1000)
        wait_for(lambda: _is_reset(peer.socket), "the reset")


def _is_reset(connection: socket.socket) -> bool:
    error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return error != 0


def test_range_storms_cost_no_memory(files: Server) -> None:
    with files.connect() as peer:
        for _ in range(50):
            storm = "bytes=" + ",".join(f"{n}-" for n in range(1000))
            assert peer.request("GET", "/assets/large.bin", range=storm).body == LARGE
