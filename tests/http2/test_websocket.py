"""WebSockets over HTTP/2 (RFC 8441): a stream is the tunnel, and handlers see no difference."""

from __future__ import annotations

import signal
from pathlib import Path

import h2peer
import pytest
from h2peer import CANCEL, DATA, END_STREAM, NO_ERROR, H2Peer, connect
from rig import application, wait_for
from wspeer import BINARY, CLOSE, TEXT, Frame, RawSocket, deflated, frame

ENABLE_CONNECT_PROTOCOL = 8

APP = application("websockets_app")


class Tunnel:
    """One stream that is a WebSocket."""

    def __init__(self, peer: H2Peer, stream: int, path: str, *fields: tuple[str, str]) -> None:
        self.peer, self.stream = peer, stream
        asked = [(":protocol", "websocket"), ("sec-websocket-version", "13"), *fields]
        peer.send(peer.head(stream, "CONNECT", path, asked, end=False))
        while not self.answer.status:
            peer.step()

    @property
    def answer(self) -> h2peer.StreamResponse:
        return self.peer.answers.setdefault(self.stream, h2peer.StreamResponse())

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 16384):
            self.peer.send(h2peer.frame(DATA, 0, self.stream, data[at : at + 16384]))

    def read(self, count: int) -> bytes:
        while len(self.answer.body) < count:
            assert not self.answer.ended, "the stream has ended"
            self.peer.step()
        taken = bytes(self.answer.body[:count])
        del self.answer.body[:count]
        return taken

    def frame(self) -> Frame:
        first, size = self.read(2)
        if size >= 126:
            size = int.from_bytes(self.read(2 if size == 126 else 8), "big")
        return Frame(first & 0x0F, self.read(size), is_compressed=bool(first & 0x40))

    def close(self, code: int) -> None:
        self.send(frame(CLOSE, code.to_bytes(2, "big")))
        assert self.frame().code == code
        while not self.answer.ended:
            self.peer.step()


def test_echo_beside_requests(serve) -> None:
    server = serve(APP)
    with connect(server) as peer:
        a = Tunnel(peer, 1, "/echo/a", ("sec-websocket-protocol", "a, b"))
        assert peer.settings[ENABLE_CONNECT_PROTOCOL] == 1
        assert (a.answer.status, a.answer.headers["sec-websocket-protocol"]) == (200, "b")
        assert a.answer.headers["x-version"] == "2"
        assert "sec-websocket-accept" not in a.answer.headers
        b = Tunnel(peer, 3, "/echo/b", ("sec-websocket-extensions", "permessage-deflate"))
        for n, size in enumerate((5, 200, 30_000, 100_000)):
            a.send(frame(TEXT, b"a" * size))
            b.send(frame(BINARY, deflated(bytes(size)), rsv=4))
            assert a.frame().payload == b"a" * size
            assert b.frame().is_compressed == (size >= 256)
            peer.request(5 + 2 * n, "GET", "/seen")
        a.close(1000)
        b.close(4000)
        wait_for(lambda: server.get("/seen").body == b'["a 1000","b 4000"]', "both ends")


def test_streams_end_by_themselves(serve) -> None:
    server = serve(APP)
    with connect(server) as peer:
        ended = Tunnel(peer, 1, "/echo/ended")
        peer.send(h2peer.frame(DATA, END_STREAM, 1))
        Tunnel(peer, 3, "/echo/reset")
        peer.reset(3, CANCEL)
        other = Tunnel(peer, 5, "/echo/other")
        other.send(frame(TEXT, b"still here"))
        assert other.frame().payload == b"still here"
        while not ended.answer.ended:
            peer.step()
        wait_for(lambda: server.get("/seen").body == b'["ended 1006","reset 1006"]', "both ends")
    wait_for(lambda: b"other 1006" in server.get("/seen").body, "the end of the connection")
    assert "ERROR" not in server.err


def test_refusals(serve) -> None:
    server = serve(APP)
    with connect(server) as peer:
        assert Tunnel(peer, 1, "/no").answer.status == 403
        assert Tunnel(peer, 3, "/nowhere").answer.status in (404, 405)
        asked = [(":protocol", "websocket"), ("sec-websocket-version", "12")]
        peer.send(peer.head(5, "CONNECT", "/echo/a", asked, end=False))
        peer.send(peer.head(7, "CONNECT", "/echo/a", [(":protocol", "other")], end=False))
        while not {5, 7} <= set(peer.finished):
            peer.step()
        assert peer.answers[5].headers["sec-websocket-version"] == "13"
        assert (peer.answers[5].status, peer.answers[7].status) == (426, 501)


def test_refusals_with_success_grant_nothing(serve) -> None:
    """RFC 8441 §5: to the client any 2xx is an open WebSocket."""
    server = serve(application("grants_app"))
    with connect(server) as peer:
        paths = ("/text", "/success", "/refusing/member", "/asgi/x")
        for number, path in enumerate(paths):
            assert Tunnel(peer, 2 * number + 1, path).answer.status == 500
        assert Tunnel(peer, 2 * len(paths) + 1, "/wsgi/x").answer.status == 404
        assert server.get("/seen").body == b"[]"
    server.wait_for_log("refused a WebSocket or session with a status of success")


def test_windows_hold_both_sides_back(serve) -> None:
    server = serve(APP, "--write-stall-ms", "0")
    with connect(server, opens_windows=False) as peer:
        flood = Tunnel(peer, 1, "/flood")
        received = bytearray()
        while len(received) < 65_535:
            received += flood.read(1)
        peer.open_window(0, 10_000_000)
        peer.ping()
        assert not flood.answer.body
        peer.opens_windows = True
        peer.open_window(1, 10_000_000)
        received += flood.read(2000 * 1004 - len(received))
        assert received.count(b"\x81\x7e\x03\xe8") == 2000


def test_rooms_span_both_versions(serve) -> None:
    server = serve(APP)
    old = RawSocket(server, "/room").accepted()
    with connect(server) as peer:
        new = Tunnel(peer, 1, "/room")
        new.send(frame(TEXT, b"hello"))
        assert new.frame().payload == b"hello"
        assert old.message() == "hello"
        old.text("back")
        assert (old.message(), new.frame().payload) == ("back", b"back")


def test_stopping(serve) -> None:
    server = serve(APP)
    with connect(server) as peer:
        tunnel = Tunnel(peer, 1, "/echo/a")
        server.signal(signal.SIGTERM)
        assert tunnel.frame().code == 1012
        tunnel.send(frame(CLOSE, (1012).to_bytes(2, "big")))
        while not tunnel.answer.ended:
            peer.step()
        assert [code for _, code in peer.goaways] == [NO_ERROR] * len(peer.goaways)
    assert server.wait() == 0


@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
def test_other_interfaces(serve, interface: str) -> None:
    target = Path(f"{application('http2_interfaces_app')}:{interface}")
    server = serve(target, "--interface", interface)
    with connect(server) as peer:
        tunnel = Tunnel(peer, 1, "/")
        if interface == "wsgi":
            assert tunnel.answer.status == 501
            return
        tunnel.send(frame(TEXT, b"hello"))
        assert tunnel.frame().payload == b"hello"


WAITS = application("websocket_waits_app")

ASGI_WAITS = application("websocket_waits_asgi_app")


def end_before_accepted(peer: H2Peer, stream: int, path: str) -> None:
    """Ask for a WebSocket and end the stream in the same write."""
    asked = [(":protocol", "websocket"), ("sec-websocket-version", "13")]
    ended = h2peer.frame(DATA, END_STREAM, stream)
    peer.send(peer.head(stream, "CONNECT", path, asked, end=False) + ended)


@pytest.mark.parametrize("path", ["/serial", "/async", "/late", "asgi"])
def test_streams_that_end_before_they_are_accepted_end_their_handlers(serve, path: str) -> None:
    arguments = ("--interface", "asgi") if path == "asgi" else ("--blocking-threads", "2")
    server = serve(ASGI_WAITS if path == "asgi" else WAITS, *arguments)
    with connect(server) as peer:
        for stream in (1, 3, 5, 7, 9):
            end_before_accepted(peer, stream, "/" if path == "asgi" else path)
        while len(peer.finished) < 5:
            peer.step()
        assert {peer.answers[stream].status for stream in (1, 3, 5, 7, 9)} == {400}
        # While the connection is there: its end would end the handlers, too.
        if path == "/serial":  # some of them are not called: their clients have gone
            assert server.get("/pool").body == b"a thread is free"
        else:
            wait_for(lambda: server.get("/ended").body == b"5", "the end of all handlers")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "left behind" not in server.err


@pytest.mark.parametrize("interface", ["native", "asgi"])
def test_a_stream_that_ends_with_its_head_is_refused(serve, interface: str) -> None:
    server = serve(ASGI_WAITS if interface == "asgi" else WAITS, "--interface", interface)
    with connect(server) as peer:
        asked = [(":protocol", "websocket"), ("sec-websocket-version", "13")]
        peer.send(peer.head(1, "CONNECT", "/serial", asked, end=True))
        while not peer.finished:
            peer.step()
        assert peer.answers[1].status == 400
    assert server.get("/ended").body == b"0"
