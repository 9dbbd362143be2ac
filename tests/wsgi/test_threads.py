"""Applications in threads: at once, bounded, and left behind in order."""

from __future__ import annotations

import signal
import threading

SLOW = """
entered, allowed = threading.Semaphore(0), threading.Event()
def application(environ, start_response):
    if environ["PATH_INFO"] == "/allow":
        allowed.set()
    elif environ["PATH_INFO"] == "/wait":
        print("entered", file=sys.stderr, flush=True)
        allowed.wait(10)
    return answer(start_response, threading.current_thread().name.encode())
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
    with server.connect() as first, server.connect() as second:
        first.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        second.send(b"GET /allow HTTP/1.1\r\nHost: a\r\n\r\n")
        while (refused := server.get("/")).status != 503:
            pass  # the second one may not be in the queue yet, but then this one was and is served
        assert refused.headers["retry-after"] == "1"
        # One thread, which waits for what is behind it in the queue: only its time-out helps.
        server.signal(signal.SIGKILL)


def test_a_stop_waits_for_answers(serve_wsgi) -> None:
    server = serve_wsgi(SLOW.replace("allowed.wait(10)", "time.sleep(0.3)"), "--threads", "2")
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


def test_clients_that_leave_while_they_wait_are_not_served(serve_wsgi) -> None:
    server = serve_wsgi(
        SLOW.replace(
            'if environ["PATH_INFO"]',
            'print(environ["PATH_INFO"], file=sys.stderr, flush=True)\n    if environ["PATH_INFO"]',
            1,
        ),
        "--threads",
        "1",
    )
    with server.connect() as first:
        first.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("entered")
        with server.connect() as second:
            second.send(b"GET /left HTTP/1.1\r\nHost: a\r\n\r\n")
        threading.Event().wait(0.1)
        server.signal(signal.SIGTERM)
        # The first ends by its own time-out only; that is not waited for.
        assert "/left" not in server.err
