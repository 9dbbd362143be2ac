"""WebSockets of a server process: what its clients, its host and its end do to them."""

from __future__ import annotations

import signal
import socket

import pytest
from rig import application, wait_for
from websockets.sync.client import connect
from wspeer import CLOSE, TEXT, RawSocket, frame, upgrade

ECHO = """
@app.websocket("/")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
"""


def test_a_client_that_is_not_ours(serve) -> None:
    """The `websockets` library, with compression and without, large messages, pings and fragments."""
    server = serve(ECHO)
    for compression in ("deflate", None):
        with connect(
            f"ws://127.0.0.1:{server.port}/", compression=compression, max_size=None
        ) as ws:
            assert bool(ws.protocol.extensions) == bool(compression)
            for message in ("Hello", b"\0" * 70_000, "ä" * 500_000, ""):
                ws.send(message)
                assert ws.recv(10) == message
            ws.send(["in ", "three ", "pieces"])
            assert ws.recv(10) == "in three pieces"
            assert ws.ping().wait(10)


def test_nothing_may_follow_the_request(serve) -> None:
    server = serve(ECHO)
    head = (
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with server.connect() as peer:
        peer.send(head + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        assert peer.reply().status == 101
        # What looks like a request is a frame without a mask.
        assert RawFrames(peer).frame().code == 1002
    with server.connect() as peer:
        peer.send(head.replace(b"13", b"12"))
        answer = peer.reply()
        assert (answer.status, answer.headers["sec-websocket-version"]) == (426, "13")
        assert answer.headers["upgrade"] == "websocket"
        # The connection lives on.
        assert upgrade(peer)[0].status == 101


class RawFrames(RawSocket):
    """A connection that is a WebSocket already."""

    def __init__(self, peer) -> None:
        self.peer = peer


def test_clients_that_are_lost_cancel_their_handlers(serve) -> None:
    server = serve(application("lost_websockets_app"))

    def sees(word: str) -> None:
        wait_for(lambda: word in server.get("/seen").body.decode(), word)

    for hang_up, code in (("close", 1006), ("reset", 1006)):
        client = RawSocket(server, "/waits").accepted()
        getattr(client.peer, hang_up)()
        sees(f"ended {code}")
    client = RawSocket(server, "/waits").accepted()
    client.send(frame(CLOSE, (4321).to_bytes(2, "big")))
    client.closed(4321)
    sees("ended 4321")
    client = RawSocket(server, "/elsewhere").accepted()
    client.peer.close()
    sees("cancelled")
    assert "ERROR" not in server.err


def test_stopping_closes_all_with_1012(serve) -> None:
    server = serve(ECHO + "\n@app.on_shutdown\ndef stopped(): print('hooks ran', flush=True)\n")
    clients = [RawSocket(server).accepted() for _ in range(20)]
    deaf = RawSocket(server).accepted()
    server.signal(signal.SIGTERM)
    for client in clients:
        assert client.frame().code == 1012
        client.send(frame(TEXT, b"late"), frame(CLOSE, (1012).to_bytes(2, "big")))
        assert client.peer.is_closed()
    assert deaf.frame().code == 1012
    deaf.send(frame(CLOSE, (1012).to_bytes(2, "big")))
    assert server.wait() == 0
    assert "hooks ran" in server.out


def test_those_who_do_not_answer_are_cut_at_the_deadline(serve) -> None:
    server = serve(ECHO, "--drain-s", "0.5")
    deaf = RawSocket(server).accepted()
    server.signal(signal.SIGTERM)
    assert deaf.frame().code == 1012
    assert server.wait() == 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tasks_are_tasks(serve, loop: str) -> None:
    """A task that is woken inside the turn has its context, can time out, and be cancelled."""
    server = serve(
        application("websocket_tasks_app"),
        "--loop", loop,
    )  # fmt: skip
    a, b, late = (RawSocket(server, f"/{name}").accepted() for name in ("a", "b", "late"))
    for message in ("one", "nap", "two", "nap"):
        a.text(message)
        b.text(message)
        assert (a.message(), b.message()) == (f"a: {message}", f"b: {message}")
    a.text("group")
    assert a.message() == "a: [0, 1, 2]"
    assert late.message() == "too late"
    late.text("now")
    assert late.message() == "late: now"
    assert "ERROR" not in server.err


SERIAL = """
import time

@app.websocket("/{n:int}")
def serial(ws: SerialWebSocket, n: int):
    for message in ws:
        time.sleep(0.001)
        ws.send(f"{n} {message}")
"""


@pytest.mark.parametrize("loop", ["none", "asyncio", "gevent"])
def test_serial_handlers(serve, loop: str) -> None:
    if loop == "gevent":
        pytest.importorskip("gevent")
    server = serve(SERIAL, "--loop", loop)
    clients = [RawSocket(server, f"/{n}").accepted() for n in range(8)]
    for m in range(20):
        for client in clients:
            client.text(str(m))
        for n, client in enumerate(clients):
            assert client.message() == f"{n} {m}"
    for client in clients:
        client.send(frame(CLOSE, (1000).to_bytes(2, "big")))
        client.closed(1000)


def test_a_flood_through_a_serial_handler_is_held_back(serve) -> None:
    server = serve(
        """
        @app.websocket("/")
        def flood(ws: SerialWebSocket):
            for n in range(3000):
                ws.send("x" * 1000)
            ws.send("done")
        """,
        "--loop", "none", "--write-stall-ms", "0",
    )  # fmt: skip
    client = RawSocket(server).accepted()
    assert all(message == "x" * 1000 for message in client.messages(3000))
    assert client.message() == "done"
    assert client.frame().code == 1000


def test_slow_members_of_a_room_are_dropped_and_others_served(serve) -> None:
    server = serve(
        application("slow_members_app"),
        "--write-stall-ms", "0",
    )  # fmt: skip
    for which in ("strict", "lenient"):
        slow = RawSocket(server, f"/{which}").accepted()
        fast = RawSocket(server, f"/{which}").accepted()
        slow.peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(200):
            fast.text("x")
            assert fast.message() == "x" * 100_000
        if which == "strict":
            wait_for(lambda: b'"strict":1' in server.get("/missed").body, "the slow one to be out")
        else:
            body = server.get("/missed").body
            assert b'"lenient":2' in body
            assert b'"missed":0' not in body
        fast.peer.close()
        slow.peer.close()


def test_refusals_may_be_streams(serve) -> None:
    server = serve(
        """
        @app.websocket("/")
        async def refuse(ws):
            async def body():
                for _ in range(100):
                    yield b"x" * 100_000
                    await asyncio.sleep(0)
            return Response(body(), 403)
        """
    )
    with server.connect() as peer:
        reply, _ = upgrade(peer)
        assert (reply.status, len(reply.body)) == (403, 10_000_000)
