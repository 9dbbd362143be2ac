"""What an HTTP/2 client can do to cost more than it pays, each with a probe beside it.

The offender sends as fast as it can from a thread. Meanwhile the probe must get its answers in time, the
server's memory must not follow the flood, and the offender must be told what it did and lose
its connection. docs/attacks.md lists the limits.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from h2peer import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    INITIAL_WINDOW,
    PING,
    PREFACE,
    PRIORITY,
    PRIORITY_UPDATE,
    RST_STREAM,
    WINDOW_UPDATE,
    H2Peer,
    connect,
    frame,
    settings,
)  # fmt: skip
from rig import Server, application, wait_for

APP = application("http2_abuse_app")

# A probe of a quiet server takes a millisecond; a machine that tests other things at the same time more.
PROBE_S = 2.0
GROWTH_KIB = 48 * 1024


@pytest.fixture
def server(serve) -> Server:
    return serve(APP, "--no-access-log", "--linger-ms", "200")


def resident_kib(server: Server) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


class Offender:
    """A client that sends what ``frames`` yields until it is stopped, and reads only if told to."""

    def __init__(
        self, server: Server, peer: H2Peer, frames: Iterator[bytes], *, reads: bool
    ) -> None:
        self.peer = peer
        self.sent_bytes = 0
        self._frames = frames
        self._reads = reads
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._reader = threading.Thread(target=peer.to_end, daemon=True)
        self._probe_peer = connect(server)
        self._server = server

    def _run(self) -> None:
        try:
            for data in self._frames:
                self.peer.send(data)
                self.sent_bytes += len(data)
        except OSError:
            pass

    def until_closed(self, timeout_s: float = 15.0) -> None:
        """Probe until the server has ended the connection and every byte of it is known."""
        before = resident_kib(self._server)
        most = before
        deadline = time.monotonic() + timeout_s
        self._thread.start()
        if self._reads:
            self._reader.start()
        probe = self._probe_peer
        stream = 1
        while self._thread.is_alive() or stream < 10:
            assert time.monotonic() < deadline, "the offender is served on and on"
            began = time.monotonic()
            assert probe.get(stream, "/").body == b"Hello"
            took = time.monotonic() - began
            assert took < PROBE_S, f"the probe waited {took:.3f} s"
            most = max(most, resident_kib(self._server))
            stream += 2
        if not self._reads:
            self._reader.start()
        self._reader.join(timeout_s)
        assert not self._reader.is_alive(), "the connection stays open"
        growth = most - before
        assert growth < GROWTH_KIB, f"{growth} KiB more after {self.sent_bytes} bytes"


def flood(
    server: Server, frames: Callable[[H2Peer], Iterator[bytes]], *, reads: bool = True
) -> H2Peer:
    """The offender's connection after it was ended."""
    peer = connect(server)
    peer.ping()  # settings are agreed on, and their acknowledgement is not in the way of what follows
    Offender(server, peer, frames(peer), reads=reads).until_closed()
    return peer


def odd_numbers() -> Iterator[int]:
    return iter(range(1, 1 << 20, 2))


def rapid_reset(peer: H2Peer) -> Iterator[bytes]:
    for stream in odd_numbers():
        yield peer.head(stream, "GET", "/wait") + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")


def made_you_reset(peer: H2Peer) -> Iterator[bytes]:
    for stream in odd_numbers():
        yield peer.head(stream, "GET", "/wait") + frame(WINDOW_UPDATE, 0, stream, bytes(4))


def made_you_reset_by_length(peer: H2Peer) -> Iterator[bytes]:
    for stream in odd_numbers():
        head = peer.head(stream, "POST", "/echo", [("content-length", "1")], end=False)
        yield head + frame(DATA, END_STREAM, stream, b"two")


def malformed_heads(peer: H2Peer) -> Iterator[bytes]:
    for stream in odd_numbers():
        yield peer.head(stream, "GET", "/", [("connection", "close")])


def continuations(peer: H2Peer) -> Iterator[bytes]:
    yield frame(HEADERS, END_STREAM, 1, peer.block([(":method", "GET")]))
    field = peer.block([("x", "y" * 1000)])
    while True:
        yield frame(CONTINUATION, 0, 1, field * 16)


def empty_continuations(peer: H2Peer) -> Iterator[bytes]:
    yield frame(HEADERS, END_STREAM, 1)
    while True:
        yield frame(CONTINUATION, 0, 1)


def hpack_bombs(peer: H2Peer) -> Iterator[bytes]:
    # One entry of the table, 4 000 bytes long, and then a byte for each time it is meant.
    entry = (
        b"\x40\x01x"
        + b"\x7f"
        + struct.pack("B", 0x80 | (4000 - 127) % 128)
        + bytes([(4000 - 127) // 128])
    )
    bomb = entry + b"y" * 4000 + b"\xbe" * 12_000
    for stream in odd_numbers():
        block = peer.block(
            [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]
        )
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, block + bomb)


def table_sizes(_: H2Peer) -> Iterator[bytes]:
    # A field block of nothing but changes of the table's size.
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x20\x3f\xe1\x1f" * 4000)


def forever(data: bytes) -> Callable[[H2Peer], Iterator[bytes]]:
    def frames(_: H2Peer) -> Iterator[bytes]:
        while True:
            yield data * 64

    return frames


def empty_data(peer: H2Peer) -> Iterator[bytes]:
    yield peer.head(1, "POST", "/echo", end=False)
    while True:
        yield frame(DATA, 0, 1) * 64


def small_windows(peer: H2Peer) -> Iterator[bytes]:
    yield settings({INITIAL_WINDOW: 1}) + peer.head(1, "GET", "/endless")
    while True:
        yield frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1") * 16


FLOODS: dict[str, Callable[[H2Peer], Iterator[bytes]]] = {
    "rapid reset": rapid_reset,
    "MadeYouReset": made_you_reset,
    "MadeYouReset by length": made_you_reset_by_length,
    "malformed heads": malformed_heads,
    "CONTINUATION": continuations,
    "empty CONTINUATION": empty_continuations,
    "HPACK bombs": hpack_bombs,
    "SETTINGS": forever(settings({})),
    "SETTINGS of windows": forever(
        settings({INITIAL_WINDOW: 1000}) + settings({INITIAL_WINDOW: 2000})
    ),
    "PING": forever(frame(PING, 0, 0, bytes(8))),
    "PRIORITY": forever(frame(PRIORITY, 0, 1, b"\0\0\0\3\0")),
    "PRIORITY_UPDATE": forever(frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\1u=1")),
    "unknown frames": forever(frame(99, 0, 0, bytes(8))),
    "WINDOW_UPDATE": forever(frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1")),
    "empty DATA": empty_data,
    "small windows": small_windows,
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_end_with_their_connections(server: Server, name: str) -> None:
    peer = flood(server, FLOODS[name])
    assert [code for _, code in peer.goaways] == [ENHANCE_YOUR_CALM]
    assert server.get("/").body == b"Hello"
    # issue 32 E5: the one who operates the server is told of it.
    server.wait_for_log(r"a connection from 127\.0\.0\.1 is closed: .*; the limit is set by --h2-")


@pytest.mark.parametrize("name", ["PING", "SETTINGS", "rapid reset", "HPACK bombs"])
def test_floods_of_those_who_do_not_read(server: Server, name: str) -> None:
    flood(server, FLOODS[name], reads=False)
    assert server.get("/").body == b"Hello"


def test_changes_of_the_table_are_bounded(server: Server) -> None:
    peer = flood(server, table_sizes)
    assert [code for _, code in peer.goaways] == [9]


def test_windows_that_stay_closed(serve) -> None:
    server = serve(APP, "--no-access-log", "--write-stall-ms", "400")
    peer = connect(server, {INITIAL_WINDOW: 0}, opens_windows=False)

    def frames() -> Iterator[bytes]:
        for stream in range(1, 201, 2):
            yield peer.head(stream, "GET", "/large" if stream % 4 == 1 else "/endless")

    before = resident_kib(server)
    for data in frames():
        peer.send(data)
    with connect(server) as probe:
        for stream in range(1, 21, 2):
            assert probe.get(stream, "/").body == b"Hello"
    while len(peer.finished) < 100:
        peer.step()
    assert {answer.reset for n, answer in peer.answers.items() if n} == {ENHANCE_YOUR_CALM}
    assert resident_kib(server) - before < GROWTH_KIB
    peer.peer.close()


def test_windows_that_open_by_a_byte_now_and_then(serve) -> None:
    server = serve(APP, "--no-access-log", "--write-stall-ms", "500")
    with connect(server, {INITIAL_WINDOW: 1}, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/endless"))
        stop = threading.Event()

        def dribble() -> None:
            while not stop.wait(0.02):
                try:
                    peer.open_window(1, 1)
                except OSError:
                    return

        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            assert peer.answer(1).reset == ENHANCE_YOUR_CALM
        finally:
            stop.set()
            thread.join()
        assert len(peer.answers[1].body) < 200


def test_a_connection_whose_window_stays_closed(serve) -> None:
    server = serve(APP, "--no-access-log", "--write-stall-ms", "400")
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/large"))
        peer.open_window(1, 1 << 20)
        peer.to_end()
        assert len(peer.answers[1].body) == 65535
        assert [code for _, code in peer.goaways] == [ENHANCE_YOUR_CALM]


def test_a_reader_of_nothing_is_reset(serve) -> None:
    server = serve(APP, "--no-access-log", "--write-stall-ms", "400")
    slow = server.connect(receive_buffer_bytes=4096)
    with H2Peer(slow, {INITIAL_WINDOW: (1 << 31) - 1}) as peer:
        peer.open_window(0, (1 << 31) - 1 - 65535)
        peer.send(peer.head(1, "GET", "/endless"))
        with connect(server) as probe:
            assert probe.get(1, "/").body == b"Hello"

        def is_reset() -> bool:
            return slow.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0 or is_closed(
                slow.socket
            )

        wait_for(is_reset, "the reset")


def is_closed(peer: socket.socket) -> bool:
    """Whether the kernel knows the connection to be over."""
    return peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 7


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        PREFACE[:10],
        PREFACE,
        PREFACE + settings({}) + frame(HEADERS, 0, 1, b"\x82"),
        PREFACE + settings({}) + b"\0\0\x40\0",
    ],
)
def test_those_who_begin_and_stop(serve, begun: bytes) -> None:
    server = serve(APP, "--http", "2", "--head-read-ms", "300")
    with connect(server, greets=False) as peer:
        peer.send(begun)
        began = time.monotonic()
        peer.to_end()
        assert time.monotonic() - began < 5


def test_settings_that_nobody_acknowledges(serve) -> None:
    server = serve(APP, "--head-read-ms", "300")
    with connect(server) as peer:
        peer.send(peer.head(1, "GET", "/wait"))
        peer.send = lambda data: None  # type: ignore[method-assign]
        peer.to_end()
        assert [code for _, code in peer.goaways] == [4]


def test_a_body_that_dribbles(serve) -> None:
    server = serve(APP, "--body-read-ms", "400")
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", [("content-length", "1000")], end=False))
        peer.send(peer.head(3, "GET", "/wait"))
        for _ in range(3):
            peer.send(frame(DATA, 0, 1, b"x"))
        assert peer.answer(1).status == 408
        assert peer.get(5, "/").body == b"Hello"
