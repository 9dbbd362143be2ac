"""`Upgrade: h2c` (RFC 7540 §3.2): granted where it is safe, ignored everywhere else."""

from __future__ import annotations

import json

import pytest
from h2peer import PREFACE, H2Peer, connect, settings
from rig import Server, application

APP = application("h2c_upgrade_app")

ASKS = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"


@pytest.fixture
def server(serve) -> Server:
    return serve(APP)


def upgraded(server: Server, path: str = "/", **how: bytes) -> H2Peer:
    """A connection after the 101, of which the answer on stream 1 is under way."""
    peer = server.connect()
    preface = PREFACE + settings({})
    early = how.get("early", b"")
    peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n{ASKS}\r\n".encode() + early)
    head = peer.read_until(b"\r\n\r\n").lower()
    assert head.startswith(b"http/1.1 101 ")
    assert b"upgrade: h2c\r\n" in head
    made = H2Peer(peer, greets=False)
    made.send(preface[len(early) :])
    return made


def test_the_request_is_answered_on_stream_one(server: Server) -> None:
    with upgraded(server) as peer:
        seen = json.loads(peer.answer(1).body)
        assert seen == {"version": "2", "headers": ["host"]}
        assert json.loads(peer.get(3, "/").body)["version"] == "2"
    with upgraded(server, "/pieces") as peer:
        assert peer.answer(1).body == b"onetwo"


def test_the_preface_need_not_wait_for_the_101(server: Server) -> None:
    with upgraded(server, early=PREFACE + settings({})) as peer:
        assert peer.answer(1).status == 200
        assert peer.get(3, "/").status == 200


@pytest.mark.parametrize(
    "lines",
    [
        ASKS.replace("h2c", "h2"),
        ASKS.replace("Upgrade, ", ""),
        ASKS.replace(", HTTP2-Settings", ""),
        ASKS.replace("AAMAAABk", "A+A"),
        # What came through a proxy that did not know what it passed on: a way around its rules.
        ASKS + "X-Forwarded-For: 1.2.3.4\r\n",
        ASKS + "Via: 1.1 proxy\r\n",
    ],
)
def test_other_upgrades_are_ignored(server: Server, lines: str) -> None:
    with server.connect() as peer:
        peer.send(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
        assert json.loads(peer.reply().body)["version"] == "1.1"
        assert json.loads(peer.request("GET", "/").body)["version"] == "1.1"


def test_requests_with_bodies_and_later_ones_stay(server: Server) -> None:
    with server.connect() as peer:
        peer.send(f"POST / HTTP/1.1\r\nHost: a\r\n{ASKS}Content-Length: 3\r\n\r\nabc".encode())
        assert peer.reply().body == b"abc"
        peer.send(f"GET / HTTP/1.1\r\nHost: a\r\n{ASKS}\r\n".encode())
        assert json.loads(peer.reply().body)["version"] == "1.1"


def test_it_can_be_switched_off(serve) -> None:
    server = serve(APP, "--no-h2c-upgrade")
    with server.connect() as peer:
        peer.send(f"GET / HTTP/1.1\r\nHost: a\r\n{ASKS}\r\n".encode())
        assert json.loads(peer.reply().body)["version"] == "1.1"
    with connect(server) as other:
        assert other.get(1, "/").status == 200


def test_what_follows_must_be_the_preface(server: Server) -> None:
    with server.connect() as peer:
        request = f"GET / HTTP/1.1\r\nHost: a\r\n{ASKS}\r\n".encode()
        peer.send(request + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        h2 = H2Peer(peer, greets=False)
        h2.to_end()
        assert [code for _, code in h2.goaways] == [1]
