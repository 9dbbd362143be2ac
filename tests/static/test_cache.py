"""What is remembered of files: for how long, how many, and what that must not break."""

from __future__ import annotations

from pathlib import Path

from rig import Server, wait_for


def test_a_change_is_seen_soon(files: Server, site: Path) -> None:
    assert files.get("/assets/style.css").status == 200
    (site / "style.css").write_text("new")
    wait_for(lambda: files.get("/assets/style.css").body == b"new", "the new version")
    (site / "style.css").unlink()
    wait_for(lambda: files.get("/assets/style.css").status == 404, "the file to be gone")
    (site / "style.css").write_text("back")
    assert files.get("/assets/style.css").body == b"back", "what was not there is not remembered"


def test_without_memory_a_change_is_seen_at_once(serve, site: Path) -> None:
    server = serve("", "--static", f"/assets={site}", "--files-cached-ms", "0")
    for number in range(5):
        (site / "style.css").write_text(f"version {number}")
        assert server.get("/assets/style.css").body == f"version {number}".encode()


def test_more_files_than_are_remembered(serve, site: Path) -> None:
    server = serve("", "--static", f"/assets={site}", "--files-cached-max", "3")
    for number in range(10):
        (site / f"{number}.txt").write_text(str(number))
    with server.connect() as peer:
        for _ in range(3):
            for number in range(10):
                assert peer.request("GET", f"/assets/{number}.txt").body == str(number).encode()


def test_more_large_files_than_may_be_open(serve, site: Path) -> None:
    server = serve("", "--static", f"/assets={site}", "--files-open-max", "3")
    for number in range(10):
        (site / f"{number}.bin").write_bytes(bytes([number]) * 100_000)
    with server.connect() as peer:
        for number in range(10):
            assert peer.request("GET", f"/assets/{number}.bin").body == bytes([number]) * 100_000


def test_slow_readers_use_up_the_files_and_others_are_told(serve, site: Path) -> None:
    server = serve(
        "", "--static", f"/assets={site}", "--files-open-max", "2", "--files-cached-ms", "0"
    )
    for number in range(3):
        (site / f"{number}.bin").write_bytes(b"x" * (16 << 20))
    slow = [server.connect(receive_buffer_bytes=4096) for _ in range(2)]
    for number, peer in enumerate(slow):
        peer.send(f"GET /assets/{number}.bin HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert b"200 OK" in peer.read_until(b"\r\n\r\n")
    reply = server.get("/assets/2.bin")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    for peer in slow:
        peer.reset()
    wait_for(lambda: server.get("/assets/style.css").status == 200, "a place")
