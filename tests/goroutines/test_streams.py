"""Responses and bodies in pieces, by handlers in goroutines."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from rig import Server, wait_for

Serve = Callable[..., Server]


@pytest.fixture(params=[False, True], ids=["reactor", "pool"])
def server(request: pytest.FixtureRequest, serve_library: Serve) -> Server:
    return serve_library(
        pool=request.param,
        more=(
            "for name in ('streams', 'floods', 'tells_pieces', 'breaks_off', 'late_header', 'tells_how'):\n"
            "    add(name)\n"
            "add('reads', method=app.post, stream=True)\n"
            "add('reads', '/reads_whole', method=app.post)\n"
            "add('echoes_pieces', method=app.post, stream=True)\n"
        ),
    )


def chunks(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body) if body else b"0\r\n\r\n"


def test_pieces_leave_when_they_are_flushed(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /streams?lines=2&ms=300 HTTP/1.1\r\nhost: x\r\n\r\n")
        began = time.monotonic()
        head = peer.read_until(b"\r\n\r\n")
        assert b"200 OK" in head
        assert b"x-lines: yes" in head
        assert b"content-type: text/plain" in head
        assert peer.read_until(b"line 0\n\r\n").endswith(b"line 0\n\r\n")
        assert time.monotonic() - began < 0.25, "the first line came with the others"
        assert peer.read_until(b"0\r\n\r\n").endswith(b"line 1\n\r\n4\r\nend\n\r\n0\r\n\r\n")
        assert peer.request("GET", "/alive").body == b"yes"


def test_a_slow_client_holds_the_goroutine_back(server: Server) -> None:
    peer = server.connect(receive_buffer_bytes=4096)
    peer.send(b"GET /floods?pieces=1000 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert peer.read(15) == b"HTTP/1.1 200 OK"

    def pieces() -> int:
        return int(server.get("/tells_pieces").body)

    wait_for(lambda: pieces() > 0, "the first piece")
    held = -1
    while held != (held := pieces()):
        time.sleep(0.2)
    assert 0 < held < 200, f"{held} pieces of 64 KiB were made"
    peer.reset()
    wait_for(lambda: server.get("/tells_how").body.startswith(b"499"), "the end of the handler")


def test_all_of_a_long_response_arrives(server: Server) -> None:
    reply = server.get("/floods?pieces=100")
    assert reply.body == b"x" * 6_553_600


def test_a_result_that_is_not_0_breaks_the_response_off(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /breaks_off HTTP/1.1\r\nhost: x\r\n\r\n")
        assert peer.read_until(b"half\r\n").endswith(b"4\r\nhalf\r\n")
        assert peer.read_to_end() == b""
    assert server.get("/alive").body == b"yes"


def test_a_header_after_the_head_is_a_mistake(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /late_header HTTP/1.1\r\nhost: x\r\n\r\n")
        peer.read_to_end()
    server.wait_for_log("late_header: it sets a header field after citius_flush has sent the head")


@pytest.mark.parametrize("size", [0, 1, 9_999, 10_000, 300_000])
@pytest.mark.parametrize("path", ["/reads", "/reads_whole"])
def test_a_body_is_read_in_pieces(server: Server, path: str, size: int) -> None:
    body = bytes(n % 251 for n in range(size))
    expected = f"{size} {sum(body)} {'pieces' if size else 'nothing'}"
    with server.connect() as peer:
        assert peer.request("POST", path, body).body.decode() == expected
        assert peer.request("POST", path, body).body.decode() == expected


def test_pieces_are_read_while_they_come(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"POST /echoes_pieces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        for piece in (b"one", b"two", b"three" * 100):
            peer.send(chunks(piece))
            assert peer.read_until(piece + b"\r\n").endswith(chunks(piece))
        peer.send(chunks(b""))
        assert peer.read_until(b"0\r\n\r\n") == b"0\r\n\r\n"


def test_a_client_that_leaves_in_the_middle_of_its_body(server: Server) -> None:
    peer = server.connect()
    peer.send(b"POST /reads HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nabc")
    server.get("/alive")
    peer.reset()
    wait_for(lambda: server.get("/tells_how").body.startswith(b"499"), "the end of the handler")


def test_flushing_outside_of_a_goroutine_is_a_mistake(serve_library: Serve) -> None:
    server = serve_library(more="app.get('/streams', compiled=handlers['streams'])")
    assert server.get("/streams").status == 500
    server.wait_for_log(
        "streams: it sends its response in pieces outside of a goroutine; add serial=True"
    )
