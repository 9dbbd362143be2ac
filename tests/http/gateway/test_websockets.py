"""WebSockets that are passed on: frames as they are, with what protects the route."""

from __future__ import annotations

import os
import threading

import pytest
from gateway_rig import KEY, accept_of, grants, opening
from http_peer import Talk
from rig import wait_for


def test_a_tunnel(gateway) -> None:
    before = gateway(grants)
    with before.server.connect() as peer:
        peer.send(opening(b"/v1/chat"))
        head = peer.read_until(b"\r\n\r\n").lower()
        assert head.startswith(b"http/1.1 101 ")
        assert b"sec-websocket-accept: " + accept_of(KEY).lower() in head
        assert b"sec-websocket-protocol: chat" in head
        assert peer.read(5) == b"first"
        for size in (1, 5, 100_000, 1_000_000):
            data = os.urandom(size).hex().encode()
            peer.send(data)
            assert peer.read(len(data)) == data.upper()
        peer.send(b"bye")
        assert peer.read_to_end() == b"BYE"
    wait_for(lambda: before.peer.open == 0, "the end of the tunnel")


def test_a_client_that_leaves_ends_the_tunnel(gateway) -> None:
    before = gateway(grants)
    peer = before.server.connect()
    peer.send(opening(b"/v1/chat"))
    peer.read_until(b"first")
    peer.close()
    wait_for(lambda: before.peer.open == 0, "the end of the tunnel")


def test_one_that_is_refused_is_a_response(gateway) -> None:
    before = gateway(grants)
    with before.server.connect() as peer:
        peer.send(opening(b"/v1/refused"))
        reply = peer.reply()
        assert (reply.status, reply.body) == (403, b"no")
        assert peer.request("GET", "/stats").status == 200


@pytest.mark.parametrize(
    "fields",
    [
        b"upgrade: websocket\r\nsec-websocket-accept: bm90IGl0", b"upgrade: websocket",
        b"upgrade: h2c\r\nsec-websocket-accept: " + accept_of(KEY),
        b"sec-websocket-accept: " + accept_of(KEY),
    ],
)  # fmt: skip
def test_a_101_that_answers_something_else_opens_no_tunnel(gateway, fields: bytes) -> None:
    """What makes a server send one, such as a URL that it is to call, would give its connection away."""
    ended = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n%s\r\n\r\n" % fields)
        assert talk.read() == b""
        ended.set()

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(opening(b"/v1/chat"))
        assert peer.reply().status == 502
        peer.send(b"GET /stats HTTP/1.1\r\nhost: a\r\n\r\n")
        assert peer.reply().status == 200
    assert ended.wait(10)
    assert not before.peer.errors


def test_what_protects_the_route_protects_the_tunnel(gateway) -> None:
    before = gateway(grants)
    with before.server.connect() as peer:
        peer.send(opening(b"/guarded/chat"))
        assert peer.reply().status == 403
    assert before.peer.accepted == 0
    with before.server.connect() as peer:
        peer.send(opening(b"/guarded/chat", b"x-key: right"))
        assert peer.read_until(b"\r\n").startswith(b"HTTP/1.1 101 ")


def test_what_follows_belongs_to_the_tunnel_only_if_there_is_one(gateway) -> None:
    """A server that refuses gets nothing of it: it is the next request, with what protects its route."""
    before = gateway(grants)
    behind = b"GET /guarded/x HTTP/1.1\r\nhost: a\r\n\r\n"
    with before.server.connect() as peer:
        peer.send(opening(b"/v1/chat") + behind)
        peer.read_until(b"first")
        assert peer.read(len(behind)) == behind.upper()
    with before.server.connect() as peer:
        peer.send(opening(b"/v1/refused") + behind)
        assert peer.reply().body == b"no"
        assert peer.reply().status == 403
        assert before.peer.accepted == 2
