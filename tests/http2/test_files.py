"""Static files and compressed answers over HTTP/2."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from h2peer import connect
from rig import Server, application, wait_for

APP = application("http2_files_app")


@pytest.fixture
def large(tmp_path: Path) -> bytes:
    content = os.urandom(3 << 20)
    (tmp_path / "large.bin").write_bytes(content)
    return content


@pytest.fixture
def server(serve, large: bytes) -> Server:
    return serve(APP, "--static", "/files=.", "--compress", "gzip")


def test_files_are_sent_whole_in_ranges_and_not_at_all(server: Server, large: bytes) -> None:
    with connect(server) as peer:
        whole = peer.get(1, "/files/large.bin")
        assert (whole.status, whole.headers["content-length"]) == (200, str(len(large)))
        assert whole.body == large
        part = peer.get(3, "/files/large.bin", [("range", "bytes=1000000-1999999")])
        assert (part.status, bytes(part.body)) == (206, large[1_000_000:2_000_000])
        same = peer.get(5, "/files/large.bin", [("if-none-match", whole.headers["etag"])])
        assert (same.status, same.body) == (304, b"")
        peer.request(7, "HEAD", "/files/large.bin")
        assert peer.answer(7).headers["content-length"] == str(len(large))
        assert peer.get(9, "/files/../secret").status == 404
        assert peer.get(11, "/open").body == large


def test_files_share_a_connection(server: Server, large: bytes) -> None:
    with connect(server) as peer:
        ids = range(1, 9, 2)
        peer.send(b"".join(peer.head(n, "GET", "/files/large.bin") for n in ids))
        for n in ids:
            assert peer.answer(n).body == large


def test_a_file_that_shrinks_costs_the_connection(
    server: Server, large: bytes, tmp_path: Path
) -> None:
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/files/large.bin"))
        while sum(len(answer.body) for answer in peer.answers.values()) < 65535:
            peer.step()
        os.truncate(tmp_path / "large.bin", 70_000)
        for stream in (0, 1):
            peer.open_window(stream, 1 << 22)
        peer.to_end()
        assert not peer.answers[1].ended
    server.wait_for_log("has become shorter")


def test_a_reader_that_leaves_lets_go_of_its_file(server: Server, large: bytes) -> None:
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/open"))
        peer.ping()
        peer.reset(1)
        peer.ping()
        links = Path(f"/proc/{server.process.pid}/fd")

        def is_open() -> bool:
            return any(
                "large.bin" in os.readlink(link) for link in links.iterdir() if link.exists()
            )

        wait_for(lambda: not is_open(), "the descriptor to be closed")


def test_answers_are_compressed(server: Server) -> None:
    with connect(server) as peer:
        for stream, path in ((1, "/text"), (3, "/pieces")):
            answer = peer.get(stream, path, [("accept-encoding", "gzip")])
            assert answer.headers["content-encoding"] == "gzip"
            assert gzip.decompress(bytes(answer.body)) == b"word " * 10_000
