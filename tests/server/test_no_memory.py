"""An allocation that fails costs the request at hand, and neither a thread nor the worker.

CPython's own test module makes one allocation fail, the n-th from where a handler says so: in the handler,
in the server's code behind it, or in a later request. Wherever memory is missing, each request gets a
response or its connection is closed, and the worker goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rig import PLAIN, Server, application

pytest.importorskip("_testcapi")

WSGI = application("no_memory_wsgi_app")
ASGI = application("no_memory_asgi_app")
NATIVE = application("no_memory_native_app")
THREADS = ("--interface", "wsgi", "--threads", "2")
CASES = [
    *((WSGI, THREADS, what) for what in ("first", "last", "stream")),
    *((WSGI, ("--interface", "wsgi"), what) for what in ("first", "last", "stream")),
    *((ASGI, ("--lifespan", "off"), what) for what in ("plain", "body", "stream", "websocket")),
    *((NATIVE, (), what) for what in ("def", "async", "blocking", "stream")),
]


def outcome(server: Server, target: str) -> bytes:
    """All that comes of a request on a connection of its own; it ends, or this times out."""
    fields = "host: x\r\nconnection: close\r\n"
    if "websocket" in target:
        fields = (
            "host: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
    with server.connect() as peer:
        try:
            peer.send(f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode())
            return peer.read_to_end()
        except ConnectionResetError:
            return b""


def until_alive(server: Server) -> None:
    """The first requests may still find the allocation that fails."""
    for _ in range(10):
        if outcome(server, "/alive/0").startswith(b"HTTP/1.1 200"):
            return
    raise AssertionError(f"no answer any more:\n{server.err}")


@pytest.mark.epoll("without memory asyncio fails by itself")
@pytest.mark.parametrize(
    ("app", "options", "what"), CASES, ids=lambda of: of.stem if isinstance(of, Path) else None
)
def test_every_request_ends_and_the_worker_goes_on(
    serve: Any, app: Path, options: tuple[str, ...], what: str
) -> None:
    server = serve(app, *options, env=PLAIN)  # fewer objects are made that are not the server's
    until_alive(server)
    for number in range(40):
        outcome(server, f"/{what}/{number}")
        until_alive(server)
    assert server.process.poll() is None
    if options == THREADS:
        # Each of them waits for the other: both threads are there.
        peers = [server.connect() for _ in range(2)]
        for peer in peers:
            peer.send(b"GET /both/0 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert [peer.reply().status for peer in peers] == [200, 200]


def test_a_thread_that_fails_outside_of_calls_is_started_again(serve) -> None:
    """Once; a worker whose threads fail again and again ends, with a line that says so."""
    app, options = application("failing_threads_app"), ("--interface", "wsgi", "--threads", "1")
    server = serve(app, *options, env={**PLAIN, "FAILURES": "3"})
    assert server.get("/").body == b"yes"
    server.wait_for_log("a thread of --threads failed; it is started again")
    server = serve(app, *options, env={**PLAIN, "FAILURES": "1000"}, ready=False)
    assert server.wait() == -6
    assert "a thread of --threads failed again and again; the worker ends" in server.err
