"""`pool=True`: threads without the GIL, bounded, and answers by the mailbox."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import Server, wait_for


@pytest.fixture
def serve(misuse_path: Path, tmp_path: Path) -> Iterator[Any]:
    servers: list[Server] = []

    def start(*options: str) -> Server:
        (tmp_path / "main.py").write_text(
            "from citius import App, load_handlers\n"
            "app = App()\n"
            f"handlers = load_handlers({str(misuse_path)!r})\n"
            "app.get('/sleep', compiled=handlers['sleeps'], pool=True)\n"
            "app.post('/echo', compiled=handlers['echo'], pool=True)\n"
            "@app.get('/alive')\n"
            "def alive(): return 'yes'\n"
        )
        made = Server(["main.py", "--port", "0", *options], {}, tmp_path).wait_ready()
        servers.append(made)
        return made

    yield start
    for server in servers:
        server.kill()


def test_the_reactor_serves_others_meanwhile_and_threads_work_at_once(serve: Any) -> None:
    server = serve("--compiled-threads", "3")
    began = time.monotonic()
    peers = [server.connect() for _ in range(3)]
    for peer in peers:
        peer.send(b"GET /sleep?ms=2000 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert server.get("/alive").body == b"yes"
    answered, _, _ = select.select([peer.socket for peer in peers], [], [], 0)
    assert answered == []
    assert [peer.reply().body for peer in peers] == [b"2000"] * 3
    assert time.monotonic() - began < 5.9, "one after the other would have taken six seconds"


def test_a_full_queue_is_503_and_the_rest_is_answered(serve: Any) -> None:
    server = serve("--compiled-threads", "1", "--compiled-queue-max", "2")
    peers = [server.connect() for _ in range(8)]
    peers[0].send(b"GET /sleep?ms=1000 HTTP/1.1\r\nhost: x\r\n\r\n")
    time.sleep(0.2)  # nothing outside shows that the thread is at work
    for peer in peers[1:]:
        peer.send(b"GET /sleep?ms=1 HTTP/1.1\r\nhost: x\r\n\r\n")
    replies = [peer.reply() for peer in peers]
    assert sorted(reply.status for reply in replies) == [200] * 3 + [503] * 5
    refused = next(reply for reply in replies if reply.status == 503)
    assert refused.headers["retry-after"] == "1"


def test_pipelined_answers_keep_their_order(serve: Any) -> None:
    server = serve("--compiled-threads", "4")
    with server.connect() as peer:
        waits = [60, 5, 30, 1, 20]
        peer.send(
            b"".join(b"GET /sleep?ms=%d HTTP/1.1\r\nhost: x\r\n\r\n" % wait for wait in waits)
        )
        assert [int(peer.reply().body) for _ in waits] == waits


def test_whoever_leaves_the_queue_is_not_worked_for(serve: Any) -> None:
    server = serve("--compiled-threads", "1")
    with server.connect() as busy:
        busy.send(b"GET /sleep?ms=1000 HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(0.2)  # nothing outside shows that the thread is at work
        for _ in range(5):
            gone = server.connect()
            gone.send(b"GET /sleep?ms=5000 HTTP/1.1\r\nhost: x\r\n\r\n")
            server.get("/alive")
            gone.reset()
        assert busy.reply().body == b"1000"
    began = time.monotonic()
    assert server.get("/sleep?ms=1").body == b"1"
    assert time.monotonic() - began < 20, "one of five that have left was worked for"


def test_bodies_and_long_answers(serve: Any) -> None:
    server = serve("--compiled-threads", "2")
    with server.connect() as peer:
        for size in (0, 1, 16_384, 1_000_000):
            body = b"x" * size
            assert peer.request("POST", "/echo", body).body == b"POST /echo |" + body


def test_the_body_of_a_request_is_bounded(serve: Any) -> None:
    server = serve("--body-bytes-max", "10")
    with server.connect() as peer:
        assert peer.request("POST", "/echo", b"x" * 10).status == 200
        assert peer.request("POST", "/echo", b"x" * 11).status == 413


def test_a_stop_waits_for_what_is_at_work(serve: Any) -> None:
    import signal

    server = serve("--compiled-threads", "1")
    with server.connect() as peer:
        peer.send(b"GET /sleep?ms=400 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert server.get("/alive").body == b"yes"
        server.signal(signal.SIGTERM)
        assert peer.reply().body == b"400"
    assert server.wait() == 0


def test_a_stop_does_not_wait_for_ever(serve: Any) -> None:
    import signal

    server = serve("--compiled-threads", "1", "--drain-s", "0.3")
    with server.connect() as peer:
        peer.send(b"GET /sleep?ms=5000 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert server.get("/alive").body == b"yes"
        server.signal(signal.SIGTERM)
        wait_for(lambda: server.process.poll() is not None, "the end", 4.0)
    assert server.wait() == 0
