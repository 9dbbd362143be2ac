"""Pipelined requests: safe ones are passed on side by side, others one after the other (RFC 9112 §9.3.2)."""

from __future__ import annotations

import threading

import pytest
from http_peer import Talk

POST = b"POST /%s/%d HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx"
GET = b"GET /%s/%d HTTP/1.1\r\nhost: a\r\n\r\n"


class Log:
    """What a server got and answered, in its order; ``together`` GETs are answered when all are there."""

    def __init__(self, together: int = 1) -> None:
        self.lines: list[str] = []
        self._another = threading.Event()
        self._barrier = threading.Barrier(together)

    def __call__(self, talk: Talk) -> None:
        while (got := talk.request()) is not None:
            method, target, _ = got[0].split()
            name = f"{method} {target[-1]}"
            self.lines.append(f"{name} begins")
            if method == "GET":
                self._barrier.wait(20)
            else:
                # One that is passed on too early comes within this time.
                self._another.wait(0.2)
            self.lines.append(f"{name} ends")
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%s" % target[-1].encode())


@pytest.mark.parametrize("route", [b"v1", b"hooked", b"many"])
def test_requests_that_change_something_keep_their_order(gateway, route: bytes) -> None:
    log = Log()
    before = gateway(log)
    with before.server.connect() as peer:
        peer.send(b"".join(POST % (route, number) for number in range(1, 5)))
        assert [peer.reply("POST").body for _ in range(4)] == [b"1", b"2", b"3", b"4"]
    expected = [f"POST {number} {what}" for number in range(1, 5) for what in ("begins", "ends")]
    assert log.lines == expected


@pytest.mark.parametrize("route", [b"v1", b"hooked", b"many"])
def test_those_that_change_nothing_go_side_by_side(gateway, route: bytes) -> None:
    """Between those that do: what is asked for is not what it was before, nor what it is behind."""
    log = Log(together=3)
    before = gateway(log)
    with before.server.connect() as peer:
        peer.send(POST % (route, 1))
        peer.send(b"".join(GET % (route, number) for number in (2, 3, 4)))
        peer.send(POST % (route, 5))
        bodies = [peer.reply("POST").body]
        bodies += [peer.reply().body for _ in range(3)]
        bodies += [peer.reply("POST").body]
    assert bodies == [b"1", b"2", b"3", b"4", b"5"]
    assert log.lines[:2] == ["POST 1 begins", "POST 1 ends"]
    assert {*log.lines[2:5]} == {f"GET {number} begins" for number in (2, 3, 4)}
    assert {*log.lines[5:8]} == {f"GET {number} ends" for number in (2, 3, 4)}
    assert log.lines[8:] == ["POST 5 begins", "POST 5 ends"]
