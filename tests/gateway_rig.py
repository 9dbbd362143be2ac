"""Servers that are behind a gateway, and a gateway before them."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http_peer import Peer, Talk
    from rig import Server


class Before:
    """A gateway, and the servers behind it."""

    def __init__(self, server: Server, peers: list[Peer]) -> None:
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
