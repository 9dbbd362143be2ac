"""A body that turns out too long behind the beginning of its response, of which nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from h2peer import CANCEL, DATA, END_STREAM, H2Peer, connect, frame
from rig import PLAIN, Server, application, wait_for

APP = application("long_bodies_app")
WHOLE = b"begun " + b"p" * 50_000 + b" ended"
LIMIT = ["--body-streamed-bytes-max", "30000"]
WAYS = [
    *(("app", path, []) for path in ("/native", "/blocking", "/unread")),
    ("asgi", "/", []),
]


@pytest.fixture(params=WAYS, ids=lambda way: way[0] + way[1])
def way(request: pytest.FixtureRequest, serve) -> tuple[Server, str]:
    name, path, options = request.param
    return serve(Path(f"{APP}:{name}"), *LIMIT, *options, env=PLAIN), path


def begin(peer: H2Peer, path: str) -> None:
    """A request whose response has begun."""
    peer.send(peer.head(1, "POST", path, end=False) + frame(DATA, 0, 1, b"x" * 1000))
    while 1 not in peer.answers or b"begun" not in peer.answers[1].body:
        peer.step()


@pytest.mark.parametrize("ends", [True, False])
def test_over_http2(way: tuple[Server, str], ends: bool) -> None:
    server, path = way
    with connect(server) as peer:
        begin(peer, path)
        for _ in range(4):
            peer.send(frame(DATA, 0, 1, b"x" * 12_000))
        if ends:
            peer.send(frame(DATA, END_STREAM, 1))
        while not peer.answers[1].ended:
            got = peer.step()
            assert peer.answers[1].reset is None, got
        assert peer.answers[1].body == WHOLE
        if ends:
            # The connection is as before.
            peer.send(peer.head(3, "POST", path, end=False))
            peer.reset(3, CANCEL)
            peer.ping()
    if path != "/unread":
        server.wait_for_log("no more of it is read, for its body is longer than 30000 bytes")


def test_over_http1(way: tuple[Server, str]) -> None:
    server, path = way
    with server.connect() as peer:
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        peer.send(head.encode() + b"a\r\n" + b"x" * 10 + b"\r\n")
        read = peer.read_until(b"begun ")
        assert b"connection: close" in read.lower()
        for _ in range(11):
            peer.send(b"%x\r\n%s\r\n" % (10_000, b"x" * 10_000))
        # All of it, and a proper end.
        read += peer.read_until(b" ended") + peer.read_until(b"\r\n0\r\n\r\n")
        assert read.count(b"p") >= 50_000
        assert peer.is_closed()


def test_an_application_that_does_not_end_its_response(serve) -> None:
    """The rest of its response is lost: the client gets a reset, and the log no traceback."""
    server = serve(APP, *LIMIT, env=PLAIN)
    with connect(server) as peer:
        begin(peer, "/fails")
        for _ in range(4):
            peer.send(frame(DATA, 0, 1, b"x" * 12_000))
        assert peer.answer(1).reset is not None
        assert peer.answers[1].body == b"begun "
    wait_for(lambda: "no more of it is read" in server.err, "the notice")
    server.stop()
    assert "Traceback" not in server.err


def test_httpx_gets_the_response(serve) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("h2")
    server = serve(APP, *LIMIT, env=PLAIN)

    def pieces(path: str):
        yield b"x" * 1000
        # httpx reads no response before it has sent the body: the server says that this one has begun.
        wait_for(lambda: server.get(f"/begun{path}").body == b"true", "the response")
        for _ in range(20):
            yield b"x" * 10_000

    with httpx.Client(http1=False, http2=True, timeout=20) as client:
        for path in ("/native", "/unread"):
            url = f"http://127.0.0.1:{server.port}{path}"
            assert client.post(url, content=pieces(path)).content == WHOLE
