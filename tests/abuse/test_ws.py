"""Limits of WebSockets: each is reached, its consequence seen, and another client served meanwhile."""

from __future__ import annotations

import socket
import time

from rig import application, wait_for
from wspeer import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    RawSocket,
    deflated,
    frame,
)

ECHO = """
@app.websocket("/")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
"""


def test_message_bytes(serve) -> None:
    server = serve(ECHO, "--ws-message-bytes-max", "1000")
    other = RawSocket(server).accepted()
    for hostile in (
        frame(BINARY, bytes(1001)),
        frame(BINARY, bytes(600), final=False) + frame(CONTINUATION, bytes(401)),
    ):
        bad = RawSocket(server).accepted()
        bad.send(frame(BINARY, bytes(1000)))
        assert len(bad.message()) == 1000
        bad.send(hostile)
        bad.closed(1009)
    other.text("still here")
    assert other.message() == "still here"


def test_bombs(serve) -> None:
    server = serve(ECHO, "--ws-max-size", "100000")
    bad = RawSocket(server, sec_websocket_extensions="permessage-deflate").accepted()
    bomb = deflated(bytes(5_000_000))
    assert len(bomb) < 10_000
    bad.send(frame(BINARY, bomb, rsv=4))
    bad.closed(1009)


def test_fragments(serve) -> None:
    server = serve(ECHO, "--ws-fragments-max", "3")
    good = RawSocket(server).accepted()
    good.send(frame(TEXT, b"a", final=False), frame(CONTINUATION, final=False))
    good.send(frame(CONTINUATION, b"b"))
    assert good.message() == "ab"
    good.send(frame(TEXT, final=False), *[frame(CONTINUATION, final=False)] * 3)
    good.closed(1008)


def test_messages_and_control_frames_per_span(serve) -> None:
    server = serve(ECHO, "--ws-messages-max", "3", "--ws-controls-max", "2", "--ws-rate-ms", "400")
    talker = RawSocket(server).accepted()
    for _ in range(2):
        for _ in range(3):
            talker.text("x")
            assert talker.message() == "x"
        time.sleep(0.45)  # the span is what is tested
    talker.send(*[frame(TEXT, b"x")] * 4)
    assert list(talker.messages(3)) == ["x"] * 3
    talker.closed(1008)
    pinger = RawSocket(server).accepted()
    pinger.send(frame(PING, b"1"), frame(PING, b"2"), frame(PING, b"3"))
    assert [pinger.frame().payload for _ in range(2)] == [b"1", b"2"]
    pinger.closed(1008)


def test_bytes_that_wait_over_all_connections(serve) -> None:
    """Small messages and applications that keep up are served while everything is used up."""
    server = serve(
        application("ws_waiting_bytes_app"),
        "--ws-queued-bytes-max", "3500000", "--connections-max", "100",
    )  # fmt: skip
    bomb = frame(BINARY, deflated(bytes(1_000_000)), rsv=4)
    assert len(bomb) < 2000

    def client(path: str) -> RawSocket:
        return RawSocket(server, path, sec_websocket_extensions="permessage-deflate").accepted()

    def hold(message: bytes) -> RawSocket:
        one = client("/slow")
        # In one write: the pong leaves when all of it is taken, and behind the message no ping is read.
        one.send(frame(PING, b"taken"), message)
        assert one.frame().payload == b"taken"
        return one

    holders = [hold(bomb) for _ in range(3)]
    small = hold(frame(TEXT, b"hi"))
    refused = client("/slow")
    refused.send(bomb)
    assert refused.frame().code == 1013
    refused.send(frame(CLOSE, (1013).to_bytes(2, "big")))
    assert refused.peer.is_closed()
    fast = client("/fast")
    fast.send(bomb)
    assert fast.message() == "1000000"
    # What waited for handlers that have ended waits no more.
    for one in holders:
        one.peer.close()
    wait_for(lambda: server.get("/waiting").body == b"2", "the end of handlers")
    holders = [hold(bomb) for _ in range(3)]
    server.get("/go")
    assert small.message() == "2"
    assert [one.message() for one in holders] == ["1000000"] * 3


def test_queue(serve) -> None:
    """A handler that takes no messages stops the reading; nothing is lost when it goes on."""
    server = serve(
        application("ws_queue_app"),
        "--ws-max-queue", "8", "--write-stall-ms", "0",
    )  # fmt: skip
    client = RawSocket(server).accepted()
    client.peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    client.peer.socket.setblocking(False)
    data = b"".join(frame(TEXT, f"{n:04}".encode() + b"x" * 996) for n in range(20_000))
    sent = 0

    def is_held_back() -> bool:
        nonlocal sent
        before = sent
        try:
            while True:
                sent += client.peer.socket.send(data[sent : sent + 65536])
        except BlockingIOError:
            time.sleep(0.05)  # between two looks
        return sent == before

    wait_for(is_held_back, "the server to stop reading")
    assert sent < len(data) // 2, "the kernels' buffers alone do not hold that much"
    assert server.get("/go").body == b"gone"
    client.peer.socket.settimeout(10)
    client.peer.send(data[sent:])
    assert client.message() == "all of them"


def test_slow_readers_hold_the_sender_back(serve) -> None:
    server = serve(
        application("ws_slow_readers_app"),
        "--write-stall-ms", "0",
    )  # fmt: skip
    client = RawSocket(server).accepted()
    seen = [-1]

    def rests() -> bool:
        time.sleep(0.1)  # between two looks
        seen.append(int(server.get("/sent").body))
        return seen[-1] == seen[-2]

    wait_for(rests, "the sender to be held back")
    assert seen[-1] < 50_000
    for _ in range(seen[-1]):
        client.message()


def test_ping_interval_and_timeout(serve) -> None:
    server = serve(ECHO, "--ws-ping-interval", "1", "--ws-ping-timeout-ms", "3000")
    alive, dead = RawSocket(server).accepted(), RawSocket(server).accepted()
    asked = alive.frame()
    assert asked.opcode == PING
    alive.send(frame(PONG, asked.payload))
    assert dead.frame().opcode == PING
    assert b"ping" in dead.closed(1011).payload
    alive.text("here")
    while (got := alive.frame()).opcode == PING:
        alive.send(frame(PONG, got.payload))
    assert got.payload == b"here"


def test_patience_with_a_close(serve) -> None:
    server = serve(
        """
        @app.websocket("/")
        async def leave(ws):
            await ws.accept()
            await ws.close(4000, "enough")
        """,
        "--ws-close-ms", "1000",
    )  # fmt: skip
    began = time.monotonic()
    deaf = RawSocket(server).accepted()
    assert deaf.closed(4000).payload[2:] == b"enough"
    assert 0.95 < time.monotonic() - began < 5
    polite = RawSocket(server).accepted()
    polite.send(frame(CLOSE, (4000).to_bytes(2, "big")))
    polite.closed(4000)


def test_short_messages_are_not_compressed(serve) -> None:
    server = serve(ECHO, "--ws-deflate-bytes-min", "100")
    client = RawSocket(server, sec_websocket_extensions="permessage-deflate").accepted()
    for size, compressed in ((99, False), (100, True)):
        client.send(frame(TEXT, b"a" * size))
        got = client.frame()
        assert (got.is_compressed, len(got.payload) < size) == (compressed, compressed)
    off = serve(ECHO, "--ws-per-message-deflate", "false")
    plain = RawSocket(off, sec_websocket_extensions="permessage-deflate").accepted()
    assert "sec-websocket-extensions" not in plain.reply.headers
