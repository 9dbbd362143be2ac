"""What handlers keep, raise, return and share between threads."""

from __future__ import annotations

import pytest
from rig import PLAIN, Server, application, request, text, wait_for

LOOPS = ["asyncio", "uvloop"]


CYCLES = application("cycles_app")


def test_cycles_through_a_request_are_collected(serve) -> None:
    server: Server = serve(CYCLES)
    with server.connect() as peer:
        for path in ("/state", "/state/async", "/response"):
            for _ in range(20):
                assert peer.request("GET", path).status in (200, 204)
            # The last one may still be on its way out of its task.
            wait_for(lambda: text(peer, "/alive") == "0", f"{path}: the requests to go")


EXITS = application("exits_app")


@pytest.mark.parametrize("loop", LOOPS)
def test_sys_exit_in_a_handler_is_a_logged_500_and_the_worker_lives(serve, loop: str) -> None:
    server: Server = serve(EXITS, "--loop", loop)
    with server.connect() as peer:
        for kind in ("def", "before", "after", "later", "blocking"):
            assert peer.request("GET", f"/exit/{kind}").status == 500, kind
            server.wait_for_log(rf"ERROR .*/exit/{kind}\b")
            assert text(peer, "/") == "Hello"
    assert server.get("/").status == 200
    assert server.process.poll() is None


BUFFERS = application("buffers_app")
BUFFER_PATHS = [
    "/bytearray", "/memoryview", "/strided", "/response/bytearray", "/response/memoryview",
    "/async/bytearray", "/blocking/memoryview", "/stream/def", "/stream/async", "/stream/blocking",
]  # fmt: skip


def test_buffers_are_answers_and_chunks(serve) -> None:
    server: Server = serve(BUFFERS)
    with server.connect() as peer:
        for path in BUFFER_PATHS:
            reply = peer.request("GET", path)
            assert (reply.status, reply.body) == (200, b"abc"), path


SHARED = application("shared_values_app")


def test_a_response_may_be_shared_by_threads(serve) -> None:
    server: Server = serve(SHARED, "--no-access-log", env=PLAIN)
    with server.connect() as hammering, server.connect() as again, server.connect() as peer:
        for busy in (hammering, again):
            busy.send(request("/hammer"))
        for turn in range(200):
            kind = ("def", "async", "blocking")[turn % 3]
            reply = peer.request("GET", f"/{kind}")
            assert (reply.status, reply.body) == (200, b"shared"), kind
            assert reply.headers["a"] == "b"
        assert text(peer, "/stop") == "stopping"
        assert hammering.reply().body == b"over"
        assert again.reply().body == b"over"
        assert text(peer, "/") == "Hello"
    assert "panic" not in server.err
