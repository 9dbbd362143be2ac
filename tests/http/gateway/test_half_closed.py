"""Tunnels that one side ends while the other one goes on: nothing is lost of what either has sent."""

# pyright: basic

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
from pathlib import Path

import h2peer
import pytest
import trustme
from gateway_rig import KEY, accept_of, opening
from http_peer import Peer, Talk, server
from pki import Pki
from rig import application, wait_for

GATEWAY = application("gateway_app")
GRANT = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-accept: %s\r\n\r\n"
)
LARGE = os.urandom(3_000_000)
"""More than the buffers of the kernel and the queues between the two sides hold."""


class Line:
    """A connection whose sending side ends by itself."""

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        made.settimeout(20)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        return self.socket.recv(65536)

    def end(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def until(self, mark: bytes) -> bytes:
        data = b""
        while mark not in data:
            got = self.receive()
            assert got, data
            data += got
        return data

    def rest(self) -> bytes:
        data = bytearray()
        while got := self.receive():
            data += got
        return bytes(data)


class TlsLine(Line):
    """The same with TLS; the end is announced by close_notify, as RFC 8446 §6.1 has it for one direction."""

    def __init__(self, made: socket.socket, context: ssl.SSLContext, *, serves: bool) -> None:
        super().__init__(made)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if serves else "localhost"
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=serves, server_hostname=name
        )
        self._do(self._tls.do_handshake)

    def _do(self, act):
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._flush()
                data = self.socket.recv(65536)
                self._incoming.write(data) if data else self._incoming.write_eof()
            finally:
                self._flush()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self.socket.sendall(data)

    def send(self, data: bytes) -> None:
        self._do(lambda: self._tls.write(data))

    def receive(self) -> bytes:
        try:
            return self._do(lambda: self._tls.read(65536))
        except ssl.SSLZeroReturnError:
            return b""

    def end(self) -> None:
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:
            self._flush()
        super().end()


class Pair:
    """A client and a server in a tunnel through a gateway."""

    def __init__(self, client: Line, upstream: Line) -> None:
        self.client, self.upstream = client, upstream


@pytest.fixture(params=["plain", "tls", "asyncio", "tls-asyncio"])
def pair(request: pytest.FixtureRequest, serve, tmp_path: Path):
    """Both sides of a tunnel, opened."""
    options: list[str] = []
    env: dict[str, str] = {}
    authority = trustme.CA()
    is_secure = request.param.startswith("tls")
    if request.param.endswith("asyncio"):
        options += ["--poller", "asyncio"]
    if is_secure:
        certificate, key = Pki(authority, tmp_path).issue("localhost", "127.0.0.1")
        options += ["--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
        bundle = tmp_path / "bundle.pem"
        authority.cert_pem.write_to_path(str(bundle))
        env["SSL_CERT_FILE"] = str(bundle)
    behind_tls = server(authority.issue_cert("localhost")) if is_secure else None
    lines: list[Line] = []
    is_there, is_done = threading.Event(), threading.Event()

    def act(talk: Talk) -> None:
        line = (
            Line(talk.socket)
            if behind_tls is None
            else TlsLine(talk.socket, behind_tls, serves=True)
        )
        line.until(b"\r\n\r\n")
        lines.append(line)
        is_there.set()
        assert is_done.wait(60)

    with Peer(act) as peer:
        scheme = "https" if is_secure else "http"
        env["UPSTREAMS"] = f"{scheme}://localhost:{peer.port}"
        gateway = serve(GATEWAY, "--workers", "1", *options, env=env)
        with socket.create_connection(("127.0.0.1", gateway.port)) as made:
            if is_secure:
                context = ssl.create_default_context(cafile=env["SSL_CERT_FILE"])
                client: Line = TlsLine(made, context, serves=False)
            else:
                client = Line(made)
            client.send(opening(b"/v1/chat"))
            assert is_there.wait(20)
            lines[0].send(GRANT % accept_of(KEY))
            assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
            yield Pair(client, lines[0])
            is_done.set()
        wait_for(lambda: peer.open == 0, "the end of the tunnel")
        assert not peer.errors


def in_thread(act) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("side", ["client", "upstream"])
def test_a_side_that_ends_has_all_of_it_taken_and_answered(pair: Pair, side: str) -> None:
    """The other side takes nothing before this one has ended: all of it is on the way by then."""
    ending, other = pair.client, pair.upstream
    if side == "upstream":
        ending, other = other, ending

    def send() -> None:
        ending.send(LARGE)
        ending.end()

    sender = in_thread(send)
    got = other.rest()
    sender.join(20)
    assert hashlib.sha256(got).digest() == hashlib.sha256(LARGE).digest()
    other.send(b"answer")
    other.send(LARGE)
    other.end()
    assert ending.rest() == b"answer" + LARGE


def test_last_words_of_both_sides_at_once(pair: Pair) -> None:
    pair.client.send(b"from the client")
    pair.client.end()
    pair.upstream.send(b"from the server")
    pair.upstream.end()
    assert pair.upstream.rest() == b"from the client"
    assert pair.client.rest() == b"from the server"


def test_a_client_that_is_gone_ends_the_tunnel_of_a_server_that_goes_on(pair: Pair) -> None:
    pair.client.end()
    assert pair.upstream.rest() == b""
    pair.client.socket.close()
    with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
        while True:
            pair.upstream.send(LARGE)


@pytest.mark.parametrize("ends", ["client", "upstream"])
def test_a_tunnel_that_one_side_has_ended_is_not_silent_for_ever(serve, ends: str) -> None:
    """The read timeout of the route, which does not hold for tunnels, holds from then on."""
    is_done = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(GRANT % accept_of(talk.fields[b"sec-websocket-key"]) + b"x")
        if ends == "upstream":
            talk.socket.shutdown(socket.SHUT_WR)
        assert is_done.wait(20)

    with Peer(act) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}"}
        gateway = serve(GATEWAY, "--workers", "1", env=env)
        with gateway.connect() as client:
            client.send(opening(b"/short/chat"))
            client.read_until(b"\r\n\r\nx")
            if ends == "client":
                client.socket.shutdown(socket.SHUT_WR)
            assert client.read_to_end() == b""
            wait_for(lambda: is_refused(client), "the end of the tunnel")
        is_done.set()


def is_refused(client) -> bool:
    """Whether the gateway has closed the connection in both directions."""
    try:
        client.send(b"x")
    except OSError:
        return True
    return False


def connect(peer, *, path: str = "/v1/chat") -> None:
    fields = [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", path),
        (":authority", "a"), ("sec-websocket-version", "13"),
    ]  # fmt: skip
    peer.send(h2peer.frame(h2peer.HEADERS, h2peer.END_HEADERS, 1, peer.block(fields)))


def test_a_stream_of_http_2_that_its_client_ends(gateway) -> None:
    got: list[bytes] = []

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(GRANT % accept_of(talk.fields[b"sec-websocket-key"]))
        got.append(Line(talk.socket).rest())
        talk.say(b"answer" + LARGE)

    before = gateway(act)
    with h2peer.connect(before.server) as peer:
        connect(peer)
        peer.send(h2peer.frame(h2peer.DATA, 0, 1, b"hello "))
        peer.send(h2peer.frame(h2peer.DATA, h2peer.END_STREAM, 1, b"bye"))
        found = peer.answer(1)
        assert found.status == 200
        assert bytes(found.body) == b"answer" + LARGE
    assert got == [b"hello bye"]


def test_a_stream_of_http_2_that_the_server_behind_ends(gateway) -> None:
    got: list[bytes] = []

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(GRANT % accept_of(talk.fields[b"sec-websocket-key"]) + LARGE)
        talk.socket.shutdown(socket.SHUT_WR)
        got.append(Line(talk.socket).rest())

    before = gateway(act)
    with h2peer.connect(before.server) as peer:
        connect(peer)
        found = peer.answer(1)
        assert bytes(found.body) == LARGE
        peer.send(h2peer.frame(h2peer.DATA, 0, 1, b"hello "))
        peer.send(h2peer.frame(h2peer.DATA, h2peer.END_STREAM, 1, b"bye"))
        wait_for(lambda: got, "what the client has sent behind the end")
        assert peer.get(3, "/stats").status == 200
    assert got == [b"hello bye"]
