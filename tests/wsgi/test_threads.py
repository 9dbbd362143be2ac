"""Applications in threads: at once, bounded, and left behind in order."""

from __future__ import annotations

import select
import signal
from pathlib import Path

from rig import TIMEOUT_S, wait_for

SLOW = """
entered, allowed = threading.Semaphore(0), threading.Event()
def application(environ, start_response):
    if environ["PATH_INFO"] == "/allow":
        allowed.set()
    elif environ["PATH_INFO"] == "/wait":
        print("entered", file=sys.stderr, flush=True)
        allowed.wait(60)
    return answer(start_response, threading.current_thread().name.encode())
"""
GATE = """
        while not os.path.exists("open"): time.sleep(0.005)
"""


def test_calls_run_at_once(serve_wsgi) -> None:
    server = serve_wsgi(SLOW, "--threads", "2")
    with server.connect() as waits:
        waits.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        server.get("/allow")
        assert waits.reply().body.startswith(b"citius-wsgi-")


def test_a_full_queue_is_told(serve_wsgi) -> None:
    server = serve_wsgi(SLOW, "--threads", "1", "--blocking-queue-max", "1")
    with server.connect() as first, server.connect() as second, server.connect() as third:
        first.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        # There is room for one of them, whichever comes first; the other is told at once.
        for peer in (second, third):
            peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        told, _, _ = select.select([second.socket, third.socket], [], [], TIMEOUT_S)
        assert len(told) == 1
        refused = (second if told[0] is second.socket else third).reply()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        # The one thread waits for a request that cannot be accepted: only its time-out would end that.
        server.signal(signal.SIGKILL)


def test_a_stop_waits_for_answers(serve_wsgi) -> None:
    server = serve_wsgi(SLOW.replace("allowed.wait(60)", "time.sleep(0.3)"), "--threads", "2")
    with server.connect() as peer:
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        server.signal(signal.SIGTERM)
        assert peer.reply().status == 200
    assert server.wait() == 0


def test_a_thread_that_hangs_is_left_behind(serve_wsgi) -> None:
    server = serve_wsgi(SLOW, "--threads", "1", "--drain-s", "0.2")
    with server.connect() as peer:
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_clients_that_leave_while_they_wait_are_not_served(serve_wsgi, tmp_path: Path) -> None:
    tells = 'print(environ["PATH_INFO"], file=sys.stderr, flush=True)\n    if environ["PATH_INFO"]'
    server = serve_wsgi(
        SLOW.replace('if environ["PATH_INFO"]', tells, 1).replace("allowed.wait(60)", GATE),
        "--threads",
        "1",
    )
    with server.connect() as first:
        first.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        with server.connect() as second:
            second.send(b"GET /left HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "/left" in server.out, "the line about the one that has left")
        (tmp_path / "open").touch()
        # Behind the one that has left, and served by the same thread.
        assert server.get("/last").status == 200
        assert first.reply().status == 200
    server.wait_for_log("/last")
    assert "/left" not in server.err
