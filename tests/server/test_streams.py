"""Bodies in pieces, both ways: pace, backpressure, and what happens when the peer goes away."""

from __future__ import annotations

import json

import pytest
from rig import Server, application, wait_for

APP = application("streams_app")


@pytest.fixture
def server(serve) -> Server:
    return serve(APP)


def events(server: Server) -> list[str]:
    return json.loads(server.get("/events").body)


@pytest.mark.parametrize("kind", ["def", "blocking", "async"])
def test_an_iterator_is_a_chunked_answer(server: Server, kind: str) -> None:
    with server.connect() as peer:
        reply = peer.request("GET", f"/{kind}")
        assert reply.headers["transfer-encoding"] == "chunked"
        assert reply.body == b"0 1 2 3 4 "
        assert peer.request("GET", "/events").status == 200  # the connection is in step
    wait_for(lambda: "closed" in events(server), "the end of the generator")


def test_a_response_around_an_iterator(server: Server) -> None:
    reply = server.get("/response")
    assert (reply.status, reply.body) == (201, b"0 1 2 3 4 ")
    assert reply.headers["x-kind"] == "stream"
    assert reply.headers["content-type"] == "text/event-stream"


def test_an_http_1_0_peer_gets_no_chunks(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /async HTTP/1.0\r\n\r\n")
        reply = peer.reply()
        assert "transfer-encoding" not in reply.headers
        assert reply.body == b"0 1 2 3 4 "


def test_head_of_a_stream_sends_none_of_it(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("HEAD", "/def").status == 200
        assert peer.request("GET", "/def").body == b"0 1 2 3 4 "


@pytest.mark.parametrize("kind", ["def", "blocking", "async"])
def test_a_slow_reader_holds_the_iterator_back(server: Server, kind: str) -> None:
    with server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(f"GET /endless/{kind} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        peer.read_until(b"\r\n\r\n")
        sent: list[int] = [0]

        def stands_still() -> bool:
            sent.append(int(server.get("/sent").body))
            return len(sent) > 20 and sent[-1] == sent[-20]

        wait_for(stands_still, "the generator to stand still")
        # What is in flight is the kernel's buffers (both sides) and the write queue.
        assert sent[-1] < 16 * 1024 * 1024
        peer.read(4 * 1024 * 1024)
        wait_for(lambda: int(server.get("/sent").body) > sent[-1], "the generator to go on")
        peer.reset()
    wait_for(lambda: "closed" in events(server), "the generator to be closed")


def test_a_peer_that_goes_away_ends_a_waiting_stream(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"first")
    wait_for(lambda: "cancelled" in events(server), "the generator to be cancelled")


def test_a_peer_that_goes_away_cancels_its_handler(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "begun" in events(server), "the handler to begin")
    wait_for(lambda: "cancelled" in events(server), "the handler to be cancelled")


@pytest.mark.parametrize("path", ["/count", "/count-blocking", "/read"])
class TestRequestBodies:
    def test_by_length(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            reply = peer.request("POST", path, b"x" * 1_000_000)
            assert json.loads(reply.body)["total"] == 1_000_000
            assert peer.request("POST", path, b"").status == 200

    def test_chunked(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            peer.send(
                f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            for _ in range(10):
                peer.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            peer.send(b"0\r\n\r\n")
            assert json.loads(peer.reply().body)["total"] == 40960

    def test_continue_is_sent_when_the_body_is_wanted(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            peer.send(
                f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                "Expect: 100-continue\r\n\r\n".encode()
            )
            assert peer.reply().status == 100
            peer.send(b"x")
            assert json.loads(peer.reply().body)["total"] == 1


def test_a_handler_that_wants_no_body_sends_no_continue(server: Server) -> None:
    with server.connect() as peer:
        peer.send(
            b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        )
        assert peer.reply().status == 403


def test_both_ways_at_once(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"POST /mirror HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        chunks = peer.chunks()
        for word in (b"one", b"two", b"three"):
            peer.send(b"%x\r\n%b\r\n" % (len(word), word))
            assert next(chunks) == word.upper()
        peer.send(b"0\r\n\r\n")
        assert list(chunks) == []


def test_a_slow_handler_holds_its_client_back(server: Server) -> None:
    with server.connect() as peer:
        body_bytes = 12 * 1024 * 1024
        peer.send(
            f"POST /taken HTTP/1.1\r\nHost: a\r\nContent-Length: {body_bytes}\r\n\r\n".encode()
        )
        peer.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            peer.send(b"x" * body_bytes)
        assert 0 <= int(server.get("/taken").body) <= 256 * 1024
        peer.reset()  # a close would wait behind the bytes that are not read
    wait_for(lambda: {"gone", "cancelled"} & set(events(server)), "the handler to hear of it")


def test_a_generator_stays_in_its_context(serve) -> None:
    server = serve(application("stream_context_app"))
    with server.connect(4096) as one, server.connect(4096) as other:
        one.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        other.send(b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        assert one.reply().body == b"a" * 65536 * 40
        assert other.reply().body == b"b" * 65536 * 40
