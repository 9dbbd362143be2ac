"""Server-sent events through a gateway: each as it comes; clients and servers that stall, leave or die."""

# pyright: basic

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

import h2peer
import pytest
from gateway_rig import content
from http_peer import Talk
from rig import wait_for

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = 'id: 7\nevent: größe\ndata: {"a": 1}\ndata: b\n\n'.encode()
ROUTES = pytest.mark.parametrize("route", ["v1", "hooked", "many"])


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def ask(peer, route: str) -> None:
    peer.send(
        f"GET /{route}/events HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n".encode()
    )


@ROUTES
def test_an_event_comes_whole_before_the_next_is_made(gateway, route: str) -> None:
    """Split at every byte, of the chunks' framing as well, and next in one piece with the one behind it."""
    is_read = threading.Semaphore(0)

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(HEAD)
        for at in range(len(EVENT) + 1):
            for piece in (EVENT[:at], EVENT[at:]):
                if piece:
                    talk.say(chunk(piece))
            assert is_read.acquire(timeout=20)
        for byte in chunk(EVENT) + chunk(EVENT):
            talk.say(bytes([byte]))
        assert is_read.acquire(timeout=20)
        talk.say(chunk(EVENT) + chunk(EVENT) + b"0\r\n\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        ask(peer, route)
        assert b"content-type: text/event-stream" in peer.read_until(b"\r\n\r\n")
        for _ in range(len(EVENT) + 1):
            assert content(peer, len(EVENT)) == EVENT
            is_read.release()
        assert content(peer, 2 * len(EVENT)) == 2 * EVENT
        is_read.release()
        assert content(peer, 2 * len(EVENT)) == 2 * EVENT
        assert peer.read_until(b"0\r\n\r\n") == b"0\r\n\r\n"
    assert not before.peer.errors


@ROUTES
def test_a_client_that_does_not_read_holds_its_server_back(gateway, route: str) -> None:
    """The server behind is stopped by a bound that does not depend on how much it has to say."""
    said = [0]
    is_over = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(HEAD)
        talk.socket.settimeout(3)
        piece = chunk(b"x" * 65536)
        with suppress(OSError):
            for _ in range(2000):
                talk.socket.sendall(piece)
                said[0] += len(piece)
        is_over.set()

    before = gateway(act)
    with before.server.connect(receive_buffer_bytes=65536) as peer:
        ask(peer, route)
        assert is_over.wait(60)
        assert said[0] < 20_000_000
        with before.server.connect() as other:
            assert other.request("GET", "/stats").status == 200
    wait_for(lambda: before.peer.open == 0, "the end of the call")


@pytest.mark.parametrize("route", ["short", "hooked"])
def test_a_server_that_stalls_has_the_route_s_time(gateway, route: str) -> None:
    is_done = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(HEAD + chunk(EVENT) + b"29\r\nda")
        is_done.wait(20)

    before = gateway(act)
    with before.server.connect() as peer:
        ask(peer, route)
        peer.read_until(b"\r\n\r\n")
        assert content(peer, len(EVENT) + 2) == EVENT + b"da"
        with suppress(ConnectionError):
            assert not peer.read_to_end().endswith(b"0\r\n\r\n")
    before.server.wait_for_log("was cut: .*nothing has come from the server within")
    is_done.set()


@ROUTES
def test_clients_that_leave_end_their_calls(gateway, route: str) -> None:
    """They close their connection or reset it, while events are sent and while none is."""
    leaves = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(HEAD + chunk(EVENT))
        if talk.number % 2:
            talk.read()
        else:
            with suppress(OSError):
                while True:
                    talk.say(chunk(EVENT))
                    leaves.wait(0.01)

    before = gateway(act)
    for number in range(40):
        peer = before.server.connect()
        ask(peer, route)
        peer.read_until(EVENT)
        peer.reset() if number % 3 else peer.close()
    leaves.set()
    wait_for(lambda: before.peer.open == 0, "the end of all calls")
    with before.server.connect() as peer:
        assert peer.request("GET", "/stats").status == 200


def test_two_hundred_streams_at_once(gateway) -> None:
    gates = [threading.Barrier(201) for _ in range(4)]

    def act(talk: Talk) -> None:
        got = talk.request()
        assert got is not None
        name = got[0].split()[1][-3:].encode()
        talk.say(HEAD)
        for number, gate in enumerate(gates):
            gate.wait(60)
            talk.say(chunk(b"data: %s %d\n\n" % (name, number)))
        talk.say(b"0\r\n\r\n")

    before = gateway(act, CONNECTIONS="200")
    peers = [before.server.connect() for _ in range(200)]
    for number, peer in enumerate(peers):
        peer.send(f"GET /v1/{number:03} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    for number, gate in enumerate(gates):
        gate.wait(60)
        if number == 0:
            for peer in peers:
                peer.read_until(b"\r\n\r\n")
        for name, peer in enumerate(peers):
            expected = b"data: %03d %d\n\n" % (name, number)
            assert content(peer, len(expected)) == expected
    for peer in peers:
        assert peer.read_until(b"0\r\n\r\n") == b"0\r\n\r\n"
        peer.close()
    wait_for(lambda: before.peer.open in (0, 200), "the end of the streams")
    assert not before.peer.errors


@ROUTES
@pytest.mark.parametrize("how", ["end", "reset", "no chunk"])
def test_a_server_that_dies_within_an_event_is_told_from_one_that_is_done(
    gateway, route: str, how: str
) -> None:
    may_die = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(HEAD + chunk(EVENT) + b"29\r\ndata: ha")
        assert may_die.wait(20)
        if how == "reset":
            talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "no chunk":
            talk.say(b"x" * 33 + b"\r\nnone\r\n")
            talk.read()

    before = gateway(act)
    with before.server.connect() as peer, h2peer.connect(before.server) as other:
        ask(peer, route)
        other.request(1, "GET", f"/{route}/events")
        peer.read_until(b"\r\n\r\n")
        assert content(peer, len(EVENT) + 8) == EVENT + b"data: ha"
        while len(other.answers.get(1, h2peer.StreamResponse()).body) < len(EVENT) + 8:
            other.step()
        may_die.set()
        rest = b""
        with suppress(ConnectionError):
            rest = peer.read_to_end()
        assert not rest.endswith(b"0\r\n\r\n")
        found = other.answer(1)
        assert found.reset is not None
        assert not found.ended
    before.server.wait_for_log("was cut: ", count=2)
