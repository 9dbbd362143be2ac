"""The pool of blocking handlers: jobs of clients that have left, full queues, threads that cannot be had."""

from __future__ import annotations

import json
import signal
import socket
import threading
from queue import SimpleQueue
from typing import Any

import pytest
from citius.web.execution.thread_pool import BlockingPool
from rig import Peer, Server, application, request, wait_for

POOL = application("blocking_pool_app")

MIDDLEWARE = {"MIDDLEWARE": "1"}


def begun(server: Server) -> list[str]:
    return json.loads(server.get("/begun").body)


def ask(server: Server, path: str) -> Peer:
    """Send a request and do not wait."""
    peer = server.connect()
    peer.send(request(path))
    return peer


@pytest.mark.parametrize("env", [{}, MIDDLEWARE], ids=["straight", "as async"])
def test_a_job_whose_client_has_left_is_not_run(serve, env: dict[str, str]) -> None:
    server: Server = serve(POOL, "--blocking-threads", "1", env=env)
    ask(server, "/wait")
    wait_for(lambda: begun(server) == ["wait"], "the thread to be busy")
    for _ in range(3):
        leaving = ask(server, "/job/left")
        leaving.socket.shutdown(socket.SHUT_WR)
        assert leaving.is_closed()
    if env:  # a task needs some turns to hear of it
        wait_for(lambda: server.get("/cancelled").body == b"3", "the tasks to be cancelled")
    staying = ask(server, "/job/stayed")
    assert begun(server) == ["wait"]
    server.get("/open")
    assert staying.reply().body == b"stayed"
    assert begun(server) == ["wait", "stayed"]


def test_exceptions_that_no_future_takes(serve) -> None:
    server: Server = serve(POOL, "--blocking-threads", "1", env=MIDDLEWARE)
    for path in ("/stop", "/exit"):
        assert server.get(path).status == 500
        assert server.get("/job/next").body == b"next"


def test_who_has_an_answer_finds_the_place_free(serve) -> None:
    # One thread, no queue: a place that is given back too late is a 503.
    server: Server = serve(
        """
        sys.setswitchinterval(1e-6)

        @app.get("/quick", blocking=True)
        def quick():
            return "done"

        @app.get("/stream", blocking=True)
        def stream():
            yield b"a"
            yield b"b"
        """,
        *("--blocking-threads", "1", "--blocking-queue-max", "0"),
    )
    with server.connect() as peer:
        statuses = [
            peer.request("GET", path).status for _ in range(300) for path in ("/quick", "/stream")
        ]
    assert statuses == [200] * 600


def test_a_full_queue_breaks_no_stream_off(serve) -> None:
    server: Server = serve(
        POOL,
        *("--blocking-threads", "1", "--blocking-queue-max", "1"),
    )
    streaming = ask(server, "/later")
    wait_for(lambda: begun(server) == ["later"], "the thread to be busy")
    queued = ask(server, "/job/queued")
    assert server.get("/job/refused").status == 503
    server.get("/open")
    assert streaming.reply().body == b"onetwo"
    assert queued.reply().body == b"queued"


def test_aborted_downloads_leave_all_threads_free(serve) -> None:
    server: Server = serve(
        POOL,
        *("--blocking-threads", "4"),
    )
    for number in range(40):
        peer = ask(server, "/endless")
        if number % 2:  # some leave while the thread waits for room, some while it is still queued
            peer.read(100_000)
        peer.reset() if number % 3 else peer.close()
    with server.connect() as last:
        assert last.request("GET", "/job/last").body == b"last"
    # All four at once: no thread is stuck.
    waiting = [ask(server, "/wait") for _ in range(4)]
    wait_for(lambda: begun(server) == ["last"] + ["wait"] * 4, "four threads to be free")
    assert len(json.loads(server.get("/left").body)) >= 20
    server.get("/open")
    assert [peer.reply().body for peer in waiting] == [b"done"] * 4


class Noted:
    """The methods of a request that the pool calls."""

    def __init__(self) -> None:
        self.outcomes: SimpleQueue[Any] = SimpleQueue()

    def _is_open(self) -> bool:
        return True

    def _respond(self, value: object) -> None:
        self.outcomes.put(value)

    def _fail(self, error: BaseException) -> None:
        self.outcomes.put(error)
        raise SystemExit("in an error handler")


def test_a_pool_without_a_thread_refuses_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = BlockingPool(threads_max=1, queue_max=0)
    request: Any = Noted()

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        assert not any(pool.submit(request, int, ()) for _ in range(3))
    assert pool.submit(request, int, ())
    assert request.outcomes.get(timeout=30) == 0
    assert pool.close(5)


def test_a_pool_goes_on_with_the_threads_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = BlockingPool(threads_max=2, queue_max=8)
    request: Any = Noted()
    gate = threading.Event()
    assert pool.submit(request, gate.wait, ())

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert pool.submit(request, int, ())
    gate.set()
    assert [request.outcomes.get(timeout=30) for _ in range(2)] == [True, 0]
    assert pool.close(5)


def test_a_thread_survives_what_answering_raises() -> None:
    pool = BlockingPool(threads_max=1, queue_max=1)
    request: Any = Noted()
    for _ in range(3):
        assert pool.submit(request, lambda: 1 // 0, ())
        assert isinstance(request.outcomes.get(timeout=30), ZeroDivisionError)
    assert pool.submit(request, int, ())
    assert request.outcomes.get(timeout=30) == 0
    assert pool.close(5)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "none"])
def test_idle_threads_are_not_left_behind(serve, loop: str) -> None:
    server: Server = serve(POOL, "--loop", loop, "--blocking-threads", "4")
    for name in "abcd":
        assert server.get(f"/job/{name}").status == 200
    server.signal(signal.SIGQUIT)
    assert server.wait() == 0
    assert "left behind" not in server.err
