"""Ways out of the directory, things that are no files, and readers without patience or haste."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from rig import Server, wait_for
from static_site import LARGE

OUTSIDE = [
    "/assets/../secret",
    "/assets/..",
    "/assets/docs/../../secret",
    "/assets/docs/../style.css",
    "/assets/%2e%2e/secret",
    "/assets/%2E%2E/%2E%2E/etc/passwd",
    "/assets/.%2e/secret",
    "/assets/..%2fsecret",
    "/assets/..%2Fsecret",
    "/assets/docs%2findex.html",
    "/assets/%252e%252e/secret",
    "/assets/%252e%252e%252fsecret",
    "/assets/..%255csecret",
    "/assets/..%5csecret",
    "/assets/..\\secret",
    "/assets/%c0%ae%c0%ae/secret",
    "/assets/%uff0e%uff0e/secret",
    "/assets//etc/passwd",
    "/assets///etc/passwd",
    "/assets/%2fetc/passwd",
    "/assets/./style.css",
    "/assets//style.css",
    "/assets/style.css%00",
    "/assets/style.css%00.html",
    "/assets/%00",
    "/assets/style.css/",
    "/assets/style.css/x",
    "/assets/.env",
    "/assets/%2eenv",
    "/assets/.git/config",
    "/assets/..;/secret",
    "/assets/~/secret",
    "/assets/" + "a" * 4000,
    "/assets/" + "a/" * 3000,
    "/assets/proc/self/environ",
]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path[:40])
def test_no_way_out(files: Server, path: str) -> None:
    with files.connect() as peer:
        reply = peer.request("GET", path)
        assert reply.status in (400, 404), reply
        assert b"secret" not in reply.body
        assert b"root:" not in reply.body


def test_absolute_form(files: Server) -> None:
    assert files.get("http://test/assets/style.css").status == 200
    assert files.get("http://test/assets/../secret").status == 404


@pytest.mark.parametrize("follow", [False, True])
def test_symbolic_links(serve, site: Path, tmp_path: Path, follow: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("secret")
    for link, target in [
        ("inside.css", "style.css"),
        ("docs/up.css", "../style.css"),
        ("folder", "docs"),
        ("outside", "../secret"),
        ("absolute", str(tmp_path / "secret")),
        ("absolute-inside", str(site / "style.css")),
        ("parent", ".."),
        ("elsewhere", "../elsewhere"),
        ("loop", "loop"),
        ("proc", "/proc/self"),
        ("dangling", "nowhere"),
    ]:
        (site / link).symlink_to(target)
    options = ["--static-symlinks"] if follow else []
    server = serve("", "--static", f"/assets={site}", *options)
    inside = 200 if follow else 404
    for path, status in [
        ("inside.css", inside),
        ("docs/up.css", inside),
        ("folder/index.html", inside),
        ("outside", 404),
        ("absolute", 404),
        ("absolute-inside", 404),
        ("parent/secret", 404),
        ("parent/public/style.css", 404),
        ("elsewhere/file", 404),
        ("loop", 404),
        ("proc/environ", 404),
        ("dangling", 404),
    ]:
        assert server.get(f"/assets/{path}").status == status, path


def test_what_is_no_file(files: Server, site: Path) -> None:
    os.mkfifo(site / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(site / "socket"))
    names = ["fifo", "socket"]
    if os.geteuid() == 0:
        try:
            os.mknod(site / "zero", 0o600 | 0o020000, os.makedev(1, 5))
            names.append("zero")
        except PermissionError:
            pass  # a container without that capability
    for name in names:
        assert files.get(f"/assets/{name}").status == 404, name
    listener.close()
    assert files.get("/assets/style.css").status == 200, "nobody waits for the FIFO's writer"


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
