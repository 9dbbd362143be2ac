"""Trailer sections, both ways (RFC 9110 §6.5, RFC 9112 §7.1.2)."""

import json

import pytest
from rig import Server, application

APP = application("trailers_app")


@pytest.fixture
def server(serve) -> Server:
    return serve(APP)


def upload(path: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"3\r\nabc\r\n0\r\nX-Sum: 3\r\nX-Other:  b \r\n\r\n"


def test_handlers_see_the_trailers_of_a_request(server: Server) -> None:
    expected = [["x-sum", "3"], ["x-other", "b"]]
    with server.connect() as peer:
        peer.send(upload("/trailers"))
        assert json.loads(peer.reply().body) == {"body": "abc", "trailers": expected}
        peer.send(upload("/streamed-trailers"))
        seen = json.loads(peer.reply().body)
        assert seen == {"before": 0, "body": "abc", "trailers": expected}


@pytest.mark.parametrize(
    ("kind", "line"), [("function", b"x-total: 5\r\n"), ("mapping", b"x-fixed: 1\r\n")]
)
def test_answers_end_with_trailers(server: Server, kind: str, line: bytes) -> None:
    with server.connect() as peer:
        peer.send(f"GET /digest/{kind} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert peer.read_until(b"0\r\n" + line + b"\r\n").count(b"\r\nabc\r\n") == 1
        # Where the framing has no place for them they are left out, and nothing else changes.
        peer.send(f"GET /digest/{kind} HTTP/1.0\r\n\r\n".encode())
        peer.read_until(b"\r\n\r\n")
        assert peer.read_to_end() == b"abcde"


def test_bad_trailers_cut_the_answer(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /digest/bad HTTP/1.1\r\nHost: a\r\n\r\n")
        with pytest.raises((ConnectionError, EOFError)):
            peer.read_until(b"0\r\n\r\n")
    server.wait_for_log("trailers: .*control byte")
    assert server.get("/digest/mapping").body == b"abcde"
