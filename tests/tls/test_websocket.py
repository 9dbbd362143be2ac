"""WebSockets over TLS, judged by clients that are not ours: in HTTP/1.1, and streams of HTTP/2 (RFC 8441)."""

from __future__ import annotations

import json
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from pki import Pki, connect
from rig import TIMEOUT_S, Peer, Server, application, wait_for
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket
from wspeer import BINARY, CLOSE, PING, PONG, TEXT, Frame, deflated, frame

APPS = {"native": application("websockets_app"), "asgi": application("websockets_asgi_app")}
LARGE = "ä" * 500_000


@pytest.fixture(params=APPS)
def interface(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(secured: Callable[..., Server], interface: str) -> Server:
    options = ("--lifespan", "off") if interface == "asgi" else ()
    return secured(*options, app=APPS[interface])


def wss(server: Server, context: ssl.SSLContext, path: str, **options: object) -> ClientConnection:
    """The `websockets` library's client.

    It reads in one thread and writes in another, which OpenSSL does not allow: a write while session
    tickets are read may wait for more of the handshake instead. They are read before a first response is.
    """
    peer = connect(server, context)
    assert peer.request("GET", "/ends").status == 200
    return connect_websocket(
        f"ws://localhost:{server.port}{path}", sock=peer.socket, max_size=None,
        open_timeout=TIMEOUT_S, **options,
    )  # fmt: skip  # pyright: ignore[reportArgumentType]


def ends(server: Server, pki: Pki) -> list[int]:
    """The codes with which handlers have ended."""
    with connect(server, pki.client()) as peer:
        return json.loads(peer.request("GET", "/ends").body)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_wss(server: Server, pki: Pki, interface: str, version: ssl.TLSVersion) -> None:
    with wss(server, pki.client(version=version), "/about") as ws:
        scheme = "wss" if interface == "asgi" else "https"
        name = version.name.replace("_", ".")
        assert json.loads(ws.recv(TIMEOUT_S)) == [scheme, "1.1", name, "localhost"]
    for compression in ("deflate", None):
        with wss(server, pki.client(version=version), "/echo", compression=compression) as ws:
            assert bool(ws.protocol.extensions) == bool(compression)
            for message in ("Hello", b"\0" * 70_000, LARGE, ""):
                ws.send(message)
                assert ws.recv(TIMEOUT_S) == message
            ws.send(["in ", "three ", "pieces"])
            assert ws.recv(TIMEOUT_S) == "in three pieces"
            assert ws.ping().wait(TIMEOUT_S)
    wait_for(lambda: ends(server, pki) == [1000, 1000], "both handlers' ends")


def test_wss_frames_and_records_need_not_agree(server: Server, pki: Pki) -> None:
    """A record for each byte of a frame, and a hundred frames in a record."""
    context = pki.client()
    with wss(server, context, "/echo", compression=None) as ws:
        sent = frame(TEXT, b"one by one")
        for byte in sent:
            ws.socket.sendall(bytes((byte,)))
        assert ws.recv(TIMEOUT_S) == "one by one"
        ws.socket.sendall(b"".join(frame(BINARY, b"%d" % n) for n in range(100)))
        assert [ws.recv(TIMEOUT_S) for _ in range(100)] == [b"%d" % n for n in range(100)]


def test_wss_a_slow_reader_misses_nothing(server: Server, pki: Pki) -> None:
    with wss(server, pki.client(), "/flood", compression=None, max_queue=1) as ws:
        assert sum(len(message) for message in ws) == 2_000_000


def test_wss_a_cut_is_an_end(server: Server, pki: Pki) -> None:
    """Neither a close frame nor a close_notify."""
    for _ in range(3):
        with connect(server, pki.client()) as peer:
            upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            key = b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            peer.send(b"GET /echo HTTP/1.1\r\nhost: a\r\n" + upgrade + key + b"\r\n")
            assert peer.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
            peer.send(frame(TEXT, b"Hello")[:-1])
    wait_for(lambda: len(ends(server, pki)) == 3, "the handlers' ends")
    assert set(ends(server, pki)) <= {1005, 1006}
    assert "ERROR" not in server.err


def test_wss_stopping_closes_all(server: Server, pki: Pki) -> None:
    with wss(server, pki.client(), "/echo") as ws:
        server.signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosedError) as closed:
            ws.recv(TIMEOUT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
    assert server.wait() == 0


@dataclass
class Stream:
    """What has come of one stream."""

    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False


class H2Client:
    """The `h2` library over TLS: it checks what the server says, and the tests say what is sent."""

    def __init__(self, server: Server, context: ssl.SSLContext) -> None:
        context.set_alpn_protocols(["h2"])
        self.peer: Peer = connect(server, context)
        assert self.peer.socket.selected_alpn_protocol() == "h2"  # pyright: ignore
        self.streams: dict[int, Stream] = {}
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        self.h2.initiate_connection()
        while not self.h2.remote_settings.enable_connect_protocol:
            self.step()

    def __enter__(self) -> H2Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    def ask(self, method: str, path: str, *fields: tuple[str, str], end: bool = True) -> int:
        """A request's head; its stream."""
        stream = self.h2.get_next_available_stream_id()
        own = [
            (":method", method),
            (":scheme", "https"),
            (":path", path),
            (":authority", "localhost"),
        ]
        self.h2.send_headers(stream, [*own, *fields], end_stream=end)
        self.streams[stream] = Stream()
        self.flush()
        return stream

    def open(self, path: str, *fields: tuple[str, str]) -> int:
        """A WebSocket (RFC 8441 §5), accepted."""
        asked = ((":protocol", "websocket"), ("sec-websocket-version", "13"), *fields)
        stream = self.ask("CONNECT", path, *asked, end=False)
        while not self.streams[stream].headers:
            self.step()
        assert self.streams[stream].headers[b":status"] == b"200"
        return stream

    def send(self, stream: int, data: bytes) -> None:
        """Bytes of a stream, as fast as its window allows."""
        while data:
            size = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if size:
                self.h2.send_data(stream, data[:size])
                data = data[size:]
                self.flush()
            else:
                self.step()

    def read(self, stream: int, count: int) -> bytes:
        """So many bytes of a stream."""
        came = self.streams[stream]
        while len(came.data) < count:
            assert not came.ended, "the stream has ended"
            self.step()
        taken = bytes(came.data[:count])
        del came.data[:count]
        return taken

    def frame(self, stream: int) -> Frame:
        """The next WebSocket frame of a stream."""
        first, size = self.read(stream, 2)
        assert not size & 0x80, "servers do not mask"
        if size >= 126:
            size = int.from_bytes(self.read(stream, 2 if size == 126 else 8), "big")
        payload = self.read(stream, size)
        return Frame(first & 0x0F, payload, bool(first & 0x80), bool(first & 0x40))

    def to_end(self, stream: int) -> None:
        """Wait until the server has ended a stream."""
        while not self.streams[stream].ended:
            self.step()

    def step(self) -> None:
        """The next frame of any type."""
        self.flush()
        received = self.peer.socket.recv(65536)
        if not received:
            raise EOFError("the server closed the connection")
        for event in self.h2.receive_data(received):
            if isinstance(event, h2.events.ResponseReceived):
                self.streams[event.stream_id].headers = dict(event.headers)  # pyright: ignore
            elif isinstance(event, h2.events.DataReceived):
                self.streams[event.stream_id].data += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
                self.streams[event.stream_id].ended = True
        self.flush()

    def flush(self) -> None:
        """Send what the library has to say."""
        self.peer.send(self.h2.data_to_send())


def test_streams_of_http_2(server: Server, pki: Pki, interface: str) -> None:
    """Two tunnels and an answer of megabytes share one connection, and none waits for another."""
    with H2Client(server, pki.client()) as client:
        seen = json.loads(client.frame(client.open("/about")).payload)
        assert seen == ["wss" if interface == "asgi" else "https", "2", "TLSv1.3", "localhost"]
        plain = client.open("/echo")
        packed = client.open("/echo", ("sec-websocket-extensions", "permessage-deflate"))
        assert b"sec-websocket-extensions" not in client.streams[plain].headers
        assert b"permessage-deflate" in client.streams[packed].headers[b"sec-websocket-extensions"]
        assert b"sec-websocket-accept" not in client.streams[plain].headers
        large = client.ask("GET", "/large")
        for size in (0, 5, 200, 70_000, 300_000):
            client.send(plain, frame(TEXT, b"a" * size))
            client.send(packed, frame(BINARY, deflated(bytes(size)), rsv=4))
            assert client.frame(plain).payload == b"a" * size
            assert client.frame(packed).is_compressed == (size >= 256)
        client.send(plain, frame(PING, b"?"))
        assert client.frame(plain) == Frame(PONG, b"?")
        client.to_end(large)
        assert len(client.streams[large].data) == 3_000_000
        for stream, code in ((plain, 1000), (packed, 4000)):
            client.send(stream, frame(CLOSE, code.to_bytes(2, "big")))
            assert client.frame(stream).code == code
            client.to_end(stream)
        wait_for(lambda: ends(server, pki) == [1000, 4000], "both handlers' ends")


def test_a_stream_of_http_2_that_is_read_slowly(server: Server, pki: Pki) -> None:
    """The library opens windows as they are half used up: the handler goes on whenever there is room."""
    with H2Client(server, pki.client()) as client:
        flood = client.open("/flood")
        assert all(client.frame(flood).payload == b"x" * 1000 for _ in range(2000))
        assert client.frame(flood).code == 1000


def test_streams_of_http_2_end_with_their_connection_or_alone(server: Server, pki: Pki) -> None:
    with H2Client(server, pki.client()) as client:
        ended, reset, other = (client.open("/echo") for _ in range(3))
        client.h2.end_stream(ended)
        client.h2.reset_stream(reset, 8)
        client.send(other, frame(TEXT, b"still here"))
        assert client.frame(other).payload == b"still here"
        wait_for(lambda: len(ends(server, pki)) == 2, "the ends of two")
    wait_for(lambda: len(ends(server, pki)) == 3, "the end of the connection")
    assert set(ends(server, pki)) <= {1005, 1006}
    assert "ERROR" not in server.err


def test_rooms_span_all_ways(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured(app=APPS["native"])
    with wss(server, pki.client(), "/room") as old, H2Client(server, pki.client()) as client:
        new = client.open("/room")
        client.send(new, frame(TEXT, b"hello"))
        assert client.frame(new).payload == b"hello"
        assert old.recv(10) == "hello"
        old.send("back")
        assert (old.recv(10), client.frame(new).payload) == ("back", b"back")
