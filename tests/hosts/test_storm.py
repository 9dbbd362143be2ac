"""Hostile clients against several reactors in one process; each response repeats its request's token.

What is looked for is what threads can spoil: a value of one request in another, a response on another
connection, a crash, an exception, a reactor that hangs. ``make test-storm`` does it for an hour
(``STORM_S``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from h2peer import H2Peer
from rig import PLAIN, Server
from wspeer import RawSocket

SECONDS = float(os.environ.get("STORM_S", "2"))
CLIENTS = 4
KINDS = ("plain", "keep", "sleep", "name", "gather", "timeout", "cancel", "defer")
APPLICATIONS = Path(__file__).parent.parent / "applications"
GONE = (EOFError, OSError)


class Client:
    """One thread of clients, each for a short while."""

    def __init__(self, server: Server, seed: int, is_native: bool) -> None:
        self.server = server
        self.dice = random.Random(seed)
        self.name = f"t{seed}"
        self.sent = 0
        self.wrong: list[str] = []
        acts = [
            self.pipeline,
            self.garbage,
            self.leave,
            self.trickle,
            self.streams,
            self.one_by_one,
        ]
        self.acts = [*acts, *[self.chat, self.bodies] * is_native]
        self.interfaces = ("def", "async", "block") if is_native else ("async",)

    def run(self, until: float) -> None:
        while time.monotonic() < until and not self.wrong:
            act = self.dice.choice(self.acts)
            try:
                act()
            except GONE as error:
                if act not in (self.garbage, self.leave):
                    self.wrong.append(f"{act.__name__}: {error!r}")
            except Exception as error:
                self.wrong.append(f"{act.__name__}: {error!r}")

    def path(self) -> tuple[str, str]:
        """A path, and the token in it."""
        self.sent += 1
        token = f"{self.name}-{self.sent}"
        return f"/{self.dice.choice(self.interfaces)}/{self.dice.choice(KINDS)}/{token}", token

    def pipeline(self) -> None:
        """Many requests at once, their responses in order."""
        with self.server.connect() as peer:
            for _ in range(self.dice.randint(1, 4)):
                asked = [self.path() for _ in range(self.dice.randint(1, 24))]
                peer.send(b"".join(get(path) for path, _ in asked))
                for path, token in asked:
                    self.expect(path, token, peer.reply().body)

    def one_by_one(self) -> None:
        """Requests of which each waits for the response before it; some fail, some are streamed."""
        with self.server.connect() as peer:
            for _ in range(self.dice.randint(1, 30)):
                path, token = self.path()
                self.expect(path, token, peer.request("GET", path, x_more=token).body)
            path = f"/stream/{token}"
            assert set(peer.request("GET", path).body.decode().split()) == {token}

    def garbage(self) -> None:
        """No requests at all, or the beginnings of some."""
        with self.server.connect() as peer:
            path, _ = self.path()
            head = get(path)
            peer.send(self.dice.choice((
                self.dice.randbytes(200), head[: self.dice.randrange(len(head))], head * 2 + b"\0\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.dice.randbytes(100),
                b"POST /a/b/c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            )))  # fmt: skip
            if self.dice.random() < 0.5:
                peer.socket.shutdown(socket.SHUT_WR)
                peer.read_to_end()

    def leave(self) -> None:
        """Goes before its responses come."""
        peer = self.server.connect()
        for _ in range(self.dice.randint(1, 10)):
            peer.send(get(self.path()[0]))
        if self.dice.random() < 0.5:
            peer.reset()
        else:
            peer.close()

    def trickle(self) -> None:
        """A request in pieces."""
        path, token = self.path()
        data = get(path)
        with self.server.connect() as peer:
            while data:
                size = self.dice.randint(1, len(data))
                peer.send(data[:size])
                data = data[size:]
            self.expect(path, token, peer.reply().body)

    def streams(self) -> None:
        """Streams of HTTP/2, some of them reset."""
        with self.server.connect() as peer:
            h2 = H2Peer(peer)
            asked: dict[int, tuple[str, str]] = {}
            for stream in range(1, 2 * self.dice.randint(2, 20), 2):
                asked[stream] = self.path()
                h2.request(stream, "GET", asked[stream][0])
                if self.dice.random() < 0.2:
                    h2.reset(stream)
                    del asked[stream]
            for stream, (path, token) in asked.items():
                self.expect(path, token, bytes(h2.answer(stream).body))

    def bodies(self) -> None:
        """JSON there and back, and errors."""
        with self.server.connect() as peer:
            for _ in range(self.dice.randint(1, 10)):
                token = self.path()[1]
                text = "x" * self.dice.choice((0, 10, 100_000))
                body = json.dumps({"token": token, "text": text}).encode()
                reply = peer.request(
                    "POST", f"/body/{token}", body, content_type="application/json"
                )
                assert json.loads(reply.body) == {"token": token, "n": len(text)}, reply
                self.expect("/fails", token, peer.request("GET", f"/fails/{token}").body)

    def chat(self) -> None:
        """A WebSocket in a room of all reactors."""
        raw = RawSocket(self.server, "/ws").accepted()
        for _ in range(self.dice.randint(1, 10)):
            token = self.path()[1]
            raw.text(f"all {token}" if self.dice.random() < 0.3 else token)
            until = time.monotonic() + 30
            while (message := str(raw.message())) not in (token, f"all {token}"):
                assert message.startswith("all "), f"{message} for {token}"
                assert time.monotonic() < until, f"no {token}"
        raw.peer.close()

    def expect(self, path: str, token: str, body: bytes) -> None:
        assert body.decode() == token, f"{path}: {body!r}"


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("app", ("--no-access-log",)),
        ("app", ("--loop", "asyncio", "--management", "127.0.0.1:0")),
        ("asgi", ("--no-access-log",)),
        ("wsgi", ("--no-access-log",)),
        ("wsgi", ("--threads", "3", "--no-access-log")),
    ],
    ids=["native", "native-observed", "asgi", "wsgi", "wsgi-threads"],
)
@pytest.mark.timeout(SECONDS + 120)
def test_responses_are_those_of_their_requests(
    serve: Callable[..., Server], target: str, options: tuple[str, ...]
) -> None:
    source = f"sys.path.insert(0, {str(APPLICATIONS)!r})\nfrom storm_app import {target} as app\n"
    server = serve(
        source,
        "--reactor-threads",
        "3",
        *options,
        "--drain-s",
        "3",
        env={**PLAIN, "PYTHONFAULTHANDLER": "1"},
    )
    clients = [Client(server, seed, target == "app") for seed in range(CLIENTS)]
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    assert not [one for client in clients for one in client.wrong], server.err[-5000:]
    assert server.process.poll() is None, server.err[-5000:]
    with server.connect() as peer:
        assert peer.request("GET", "/async/plain/last").body == b"last"
    server.signal(signal.SIGTERM)
    try:
        code = server.wait()
    except subprocess.TimeoutExpired:
        server.signal(signal.SIGABRT)  # prints the stacks of all threads
        code = server.wait()
    assert code == 0, server.err[-5000:]
    for word in ("Traceback", "defect", "panicked", "cut off"):
        assert word not in server.err, server.err[-5000:]
    print(target, *options, sum(client.sent for client in clients), "requests")
