"""Trailers of WSGI applications, and messages that are answered while more of them come (issue 36)."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from h2peer import DATA, END_STREAM, connect, frame
from rig import Server, application

APP = application("wsgi_trailers_app")
WAYS = {"alone": [], "threads": ["--threads", "2"], "greenlets": ["--loop", "gevent"]}
TRAILERS = {"x-status": "0", "x-text": "done"}
BODIES = {
    "/list": b"body", "/empty": b"", "/nothing": b"", "/pieces": b"body", "/write": b"body",
    "/pieces-length": b"body", "/list-length": b"body",
}  # fmt: skip


@pytest.fixture(params=WAYS)
def server(request, serve) -> Server:
    if request.param == "greenlets" and find_spec("gevent") is None:
        pytest.skip("gevent is not installed")
    return serve(APP, *WAYS[request.param])


def _path(path: str) -> str:
    return path if path != "/list-length" else "/list"


def test_over_http2(server: Server) -> None:
    with connect(server) as peer:
        for index, (path, body) in enumerate(BODIES.items()):
            # The second one of each kind of head has the environ of the first.
            for stream in (4 * index + 1, 4 * index + 3):
                response = peer.get(stream, _path(path), [("te", "trailers")])
                assert (response.status, response.body, response.trailers) == (200, body, TRAILERS)
        response = peer.get(101, "/list")
        assert (response.body, response.trailers) == (b"none", None)


def test_over_http1(server: Server) -> None:
    with server.connect() as peer:
        for path in ("/list", "/empty", "/nothing", "/pieces", "/write"):
            for _ in range(2):
                peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n".encode())
                got = peer.read_until(b"x-text: done\r\n\r\n")
                assert b"transfer-encoding: chunked" in got
                assert b"0\r\nx-status: 0\r\n" in got
        # There is no room for them behind a body with a length; the connection goes on.
        peer.send(b"GET /pieces-length HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
        assert peer.reply().body == b"body"
        assert peer.request("GET", "/list").body == b"none"
        assert peer.request("GET", "/list", te="gzip").body == b"none"
        assert peer.request("HEAD", "/list", te="trailers").body == b""
        assert peer.request("GET", "/list").body == b"none"


def test_before_start_response_and_wrong_ones(server: Server) -> None:
    with connect(server) as peer:
        response = peer.get(1, "/early", [("te", "trailers")])
        assert (response.body, response.trailers) == (b"refused", None)
        assert peer.get(3, "/wrong", [("te", "trailers")]).status == 500
    server.wait_for_log("content-length cannot stand behind a body")


MESSAGES = [("content-type", "application/grpc"), ("te", "trailers")]


@pytest.mark.parametrize("server", ["threads", "greenlets"], indirect=True)
def test_messages_are_answered_while_more_come(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", MESSAGES, end=False))
        for number in range(3):
            peer.send(frame(DATA, 0, 1, b"message %d;" % number))
            while peer.step().kind != DATA:
                pass
            assert peer.answers[1].body.endswith(b"MESSAGE %d;" % number)
        peer.send(frame(DATA, END_STREAM, 1))
        assert peer.answer(1).trailers == TRAILERS


@pytest.mark.parametrize("server", ["threads", "greenlets"], indirect=True)
def test_the_same_over_http1(server: Server) -> None:
    with server.connect() as peer:
        peer.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/connect+json\r\n\r\n"
        )
        for number in range(3):
            peer.send(b"2\r\na%d\r\n" % number)
            peer.read_until(b"A%d\r\n" % number)
        peer.send(b"0\r\n\r\n")
        peer.read_until(b"0\r\n\r\n")


@pytest.mark.parametrize("server", ["alone"], indirect=True)
def test_on_the_thread_of_the_reactor_messages_are_read_to_their_end(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", MESSAGES, end=False) + frame(DATA, 0, 1, b"a"))
        assert peer.get(3, "/list").body == b"none"
        peer.send(frame(DATA, END_STREAM, 1, b"b"))
        assert peer.answer(1).body == b"AB"
