"""Servers that are behind a gateway, and a gateway before them."""

from __future__ import annotations

import base64
import hashlib
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from http_peer import Peer as Upstream
    from http_peer import Talk
    from rig import Peer, Server

Fields = dict[str, str]


class Before:
    """A gateway, and the servers behind it."""

    def __init__(self, server: Server, peers: list[Upstream]) -> None:
        self.server, self.peers = server, peers
        self.peer = peers[0]


def echo(talk: Talk) -> None:
    """Answers with what has come, as text."""
    while (got := talk.request()) is not None:
        line, body = got
        fields = b"".join(b"%s: %s\n" % pair for pair in talk.fields.items())
        text = line.encode() + b"\n" + fields + b"\n" + body
        talk.say(
            b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nx-of-upstream: 1\r\n\r\n%s"
            % (len(text), text)
        )


def accept_of(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


def grants(talk: Talk) -> None:
    """A tunnel that returns what comes in upper case."""
    got = talk.request()
    if got is None:
        return
    if talk.fields.get(b"upgrade") != b"websocket" or "/refused" in got[0]:
        return talk.say(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
    accept = accept_of(talk.fields[b"sec-websocket-key"])
    talk.say(
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: %s\r\nsec-websocket-protocol: chat\r\n\r\nfirst" % accept
    )
    while data := talk.socket.recv(65536):
        talk.say(data.upper())
        if b"bye" in data:
            return


KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


def opening(path: bytes, *fields: bytes) -> bytes:
    """A request for a WebSocket."""
    lines = (
        b"GET %s HTTP/1.1" % path, b"host: a", b"connection: Upgrade", b"upgrade: websocket",
        b"sec-websocket-version: 13", b"sec-websocket-key: " + KEY, *fields,
    )  # fmt: skip
    return b"\r\n".join(lines) + b"\r\n\r\n"


def content(peer: Peer, size: int) -> bytes:
    """So many bytes of content in chunks of any size."""
    got = b""
    while len(got) < size:
        length = int(peer.read_until(b"\r\n"), 16)
        assert length, "an end before it"
        got += peer.read(length)
        assert peer.read(2) == b"\r\n"
    assert len(got) == size
    return got


class Origin:
    """Says what a test has it say, and counts."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[bytes, bytes]]] = []
        self.say: Callable[[str, dict[bytes, bytes]], tuple[str, Fields, bytes]]
        self.gate: threading.Event | None = None
        self.is_gone = False
        self.cuts = False

    def __call__(self, talk: Talk) -> None:
        while (got := talk.request()) is not None:
            self.seen.append((got[0], talk.fields))
            if self.gate is not None:
                assert self.gate.wait(20)
            if self.is_gone:
                return
            status, fields, body = self.say(got[0], talk.fields)
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            has_content = not got[0].startswith("HEAD") and not status.startswith("304")
            if has_content:
                lines += f"content-length: {len(body) + 5 * self.cuts}\r\n"
            talk.say(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body * has_content)
            if self.cuts:
                return

    def always(self, fields: Fields, status: str = "200 OK") -> None:
        self.say = lambda line, _: (status, fields, f"{len(self.seen)}".encode())


class Cached:
    def __init__(self, server: Server, origin: Origin) -> None:
        self.server, self.origin = server, origin

    def ask(
        self, path: str = "/c/x", method: str = "GET", **fields: str
    ) -> tuple[int, bytes, dict[str, str]]:
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        with self.server.connect() as client:
            reply = client.request(method, path, **named)
            names = ("age", "cache-status", "etag", "x-of", "vary")
            return reply.status, reply.body, {n: v for n in names if (v := reply.headers.get(n))}

    def counts(self, times: int, *, path: str = "/c/x", **fields: str) -> int:
        """How often the other server is asked for so many requests."""
        before = len(self.origin.seen)
        for _ in range(times):
            self.ask(path, **fields)
        return len(self.origin.seen) - before


def date(ago_s: float) -> str:
    return formatdate(time.time() - ago_s, usegmt=True)
