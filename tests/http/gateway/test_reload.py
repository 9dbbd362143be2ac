"""Reloads of a gateway while it passes streams and tunnels on: each goes on where it is, and ends whole."""

# pyright: basic

from __future__ import annotations

import os
import signal
import threading

import pytest
from gateway_rig import accept_of, content, opening
from http_peer import Talk
from rig import children, is_alive, wait_for

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
GRANT = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-accept: %s\r\n\r\n"
)


class Behind:
    """Streams events, grants tunnels that return what comes in upper case, and answers the rest."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def __call__(self, talk: Talk) -> None:
        while (got := talk.request()) is not None:
            if "/events" in got[0]:
                talk.say(HEAD + b"7\r\nfirst\n\n\r\n")
                assert self.goes_on.wait(30)
                for number in range(100):
                    talk.say(b"9\r\nnext %02d\n\n\r\n" % number)
                talk.say(b"0\r\n\r\n")
            elif talk.fields.get(b"upgrade") == b"websocket":
                talk.say(GRANT % accept_of(talk.fields[b"sec-websocket-key"]))
                while data := talk.read():
                    talk.say(data.upper())
                return
            else:
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR2])
def test_what_is_passed_on_ends_whole(gateway, number: signal.Signals) -> None:
    behind = Behind()
    before = gateway(behind, options=("--workers", "2"))
    with before.server.connect() as stream, before.server.connect() as tunnel:
        stream.send(b"GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n")
        stream.read_until(b"first\n\n\r\n")
        tunnel.send(opening(b"/v1/chat"))
        tunnel.read_until(b"\r\n\r\n")
        tunnel.send(b"before")
        assert tunnel.read(6) == b"BEFORE"
        first = set(children(before.server))
        assert len(first) == 2
        before.server.signal(number)
        wait_for(lambda: worker_of(before) not in {None, *first}, "a new worker")
        tunnel.send(b"x" * 1_000_000)
        assert tunnel.read(1_000_000) == b"X" * 1_000_000
        behind.goes_on.set()
        expected = b"".join(b"next %02d\n\n" % at for at in range(100))
        assert content(stream, len(expected)) == expected
        assert stream.read_until(b"0\r\n\r\n") == b"0\r\n\r\n"
        tunnel.send(b"last words")
        assert tunnel.read(10) == b"LAST WORDS"
    if number == signal.SIGUSR2:
        successor = int(before.server.wait_for_log(r"process (\d+) serves from now on")[1])
        assert before.server.process.wait(30) == 0
        os.kill(successor, signal.SIGTERM)
        wait_for(lambda: not is_alive(successor), "its end")


def worker_of(before) -> int | None:
    """The process that serves now."""
    try:
        with before.server.connect() as peer:
            return int(peer.request("GET", "/worker").body)
    except OSError:
        return None
