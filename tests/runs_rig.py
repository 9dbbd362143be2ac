"""Clients of runs: one that begins and cancels them, and readers that come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from rig import Peer, Server


class Said(NamedTuple):
    """An event."""

    id: str
    event: str
    data: str


class Reader:
    """A stream of a run's events."""

    def __init__(
        self,
        server: Server,
        path: str,
        *,
        after: str = "",
        method: str = "GET",
        body: str = "",
        peer: Peer | None = None,
        **fields: str,
    ) -> None:
        self.peer = server.connect() if peer is None else peer
        named = {
            "host": "a",
            "accept": "text/event-stream",
            **({"last-event-id": after} if after else {}),
        }
        named |= {name.replace("_", "-"): value for name, value in fields.items()}
        if body:
            named |= {"content-type": "application/json", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self.peer.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode())
        self.head = self.peer.read_until(b"\r\n\r\n").decode()
        self.status = int(self.head.split(" ")[1])
        self._chunks = self.peer.chunks()
        self._text = ""

    @property
    def location(self) -> str:
        """Where its run is."""
        lines = (line.partition(":") for line in self.head.split("\r\n"))
        return next(value.strip() for name, _, value in lines if name.lower() == "location")

    def __iter__(self) -> Iterator[Said]:
        while True:
            while "\n\n" not in self._text:
                piece = next(self._chunks, None)
                if piece is None:
                    return
                self._text += piece.decode()
            one, _, self._text = self._text.partition("\n\n")
            made = _event(one)
            if made is not None:
                yield made

    def next(self) -> Said:
        """The next event."""
        return next(iter(self))

    def close(self) -> None:
        """Leave."""
        self.peer.reset()


def _event(text: str) -> Said | None:
    fields: dict[str, list[str]] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        if name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" not in fields:
        return None
    return Said(
        fields.get("id", [""])[0], fields.get("event", ["message"])[0], "\n".join(fields["data"])
    )


def begin(server: Server, path: str, body: str = "", **fields: str) -> str:
    """Begin a run; where it is."""
    with server.connect() as peer:
        named = {"content_type": "application/json", **fields}
        reply = peer.request("POST", path, body.encode(), **named)
    assert reply.status == 202, reply
    said = json.loads(reply.body)
    assert said["url"] == reply.headers["location"]
    return said["url"]


def state(server: Server, url: str, **fields: str) -> dict[str, object]:
    """What is told of a run."""
    return json.loads(server.get(url, accept="application/json", **fields).body)


def cancel(server: Server, url: str, **fields: str) -> int:
    """Cancel a run; the status."""
    with server.connect() as peer:
        return peer.request("DELETE", url, **fields).status
