"""Work after the response: when it runs, what becomes of its failures, and that a stop waits for it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from citius import App, Request, Response
from citius.observability import logging as server_logging
from citius.testing import Client
from citius.web.execution import background
from citius.web.execution.background import defer, pending
from rig import Server, application, wait_for


def test_deferred_work() -> None:
    app, done = App(), list[object]()

    async def later(value: int, *, name: str) -> None:
        await asyncio.sleep(0.01)  # the work takes a moment
        done.append((value, name, threading.current_thread() is threading.main_thread()))

    def work(value: int) -> None:
        done.append((value, threading.current_thread() is threading.main_thread()))

    @app.get("/async")
    async def asked(request: Request) -> str:
        defer(request, later, 1, name="a")
        defer(request, work, 2)
        return "asked"

    @app.get("/def")
    def plain(request: Request) -> str:
        defer(request, later, 3, name="b")
        return "plain"

    @app.get("/blocking", blocking=True)
    def blocking(request: Request) -> str:
        defer(request, work, 4)
        return "blocking"

    with Client(app) as client:
        for path in ("/async", "/def", "/blocking"):
            assert client.get(path).text == path[1:].replace("async", "asked").replace(
                "def", "plain"
            )
    # Closing the client has waited.
    assert sorted(map(repr, done)) == [
        "(1, 'a', True)",
        "(2, False)",
        "(3, 'b', True)",
        "(4, False)",
    ]
    assert pending(app) == 0


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What the server logs; caplog's handler hears it once, twice or never, as other tests have left it."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = server_logging._logger()
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def test_a_failure_is_logged_with_its_request(logged: list[logging.LogRecord]) -> None:
    app = App()

    async def fail_later() -> None:
        raise ValueError("later")

    def fail() -> None:
        raise ValueError("in a thread")

    @app.get("/")
    async def asked(request: Request) -> str:
        defer(request, fail_later)
        defer(request, fail)
        return "x"

    with Client(app) as client:
        assert client.get("/").text == "x"
    records = [record for record in logged if record.levelno == logging.ERROR]
    assert len(records) == 2
    assert all("GET /" in record.getMessage() for record in records)


def test_a_coroutine_needs_a_loop() -> None:
    app = App()

    async def later() -> None: ...

    app.get("/", blocking=True)(lambda request: defer(request, later))
    with pytest.raises(RuntimeError, match="no loop runs here"), Client(app) as client:
        client.get("/")


def test_there_is_a_limit_and_a_deadline(
    monkeypatch: pytest.MonkeyPatch, logged: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(background, "PENDING_MAX", 2)
    monkeypatch.setattr(background, "DRAIN_S", 0.1)
    app, ended = App(), list[str]()

    async def endless() -> None:
        try:
            await asyncio.sleep(60)  # cut short by the stop
        finally:
            ended.append("cancelled")

    @app.get("/")
    async def asked(request: Request) -> Any:
        defer(request, endless)
        return pending(request.app)

    began = time.monotonic()
    with Client(app) as client:
        assert [client.get("/").text for _ in range(2)] == ["1", "2"]
        assert client.get("/").status_code == 503
    assert time.monotonic() - began < 5
    assert ended == ["cancelled", "cancelled"]
    assert any("2 deferred calls were not done" in record.getMessage() for record in logged)


def test_a_stop_waits(serve: Callable[..., Server], tmp_path: Any) -> None:
    server = serve(
        """
        from citius.web.execution.background import defer
        async def later():
            await asyncio.sleep(0.5)
            open("done.txt", "w").write("done")
        @app.get("/")
        async def asked(request):
            defer(request, later)
            return "asked"
        """
    )
    assert server.get("/").body == b"asked"
    server.signal(signal.SIGTERM)
    server.process.wait(20)
    assert (tmp_path / "done.txt").read_text() == "done"


def test_work_of_a_response() -> None:
    app, done = App(), list[str]()

    async def later() -> None:
        done.append("async")

    @app.get("/async")
    async def asked() -> Response:
        return Response("asked", background=later)

    @app.get("/def")
    def plain() -> Response:
        response = Response("plain")
        response.background = [lambda: done.append("first"), lambda: done.append("second")]
        return response

    @app.get("/blocking", blocking=True)
    def blocking() -> Response:
        return Response("blocking", background=lambda: done.append("thread"))

    @app.get("/wrong", blocking=True)
    def wrong() -> Response:
        return Response("wrong", background=later)

    with Client(app, raise_errors=False) as client:
        assert client.get("/async").text == "asked"
        assert client.get("/def").text == "plain"
        assert client.get("/blocking").text == "blocking"
        assert client.get("/wrong").status_code == 500
    assert sorted(done) == ["async", "first", "second", "thread"]


CONTINUES = application("continuing_app")


def test_a_handler_goes_on_without_its_client(serve: Callable[..., Server]) -> None:
    """Scale, last paragraph: for client libraries that do not survive cancellation."""
    server = serve(CONTINUES)
    for path in ("/cancelled", "/continues", "/fails"):
        begun = server.get("/log").body.count(b"begun")
        with server.connect() as peer:
            peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            wait_for(
                lambda begun=begun: server.get("/log").body.count(b"begun") > begun, "the handler"
            )
            peer.reset()
        if path == "/cancelled":
            wait_for(lambda: b"cancelled" in server.get("/log").body, "the cancellation")
    assert server.get("/go").body == b"went"
    wait_for(lambda: server.get("/log").body.count(b"done") == 2, "the handlers' ends")
    assert server.get("/log").body.count(b"cancelled") == 1
    server.wait_for_log("failed after its client had disconnected")
    assert server.get("/continues").body == b"worked"
    assert server.get("/fails").status == 500


def test_a_stop_waits_for_it(serve: Callable[..., Server]) -> None:
    server = serve(CONTINUES, "--no-access-log")  # a line of it could come between words of the log
    with server.connect() as peer:
        peer.send(b"GET /continues HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: b"begun" in server.get("/log").body, "the handler")
        peer.reset()
    assert server.get("/go").body == b"went"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "log: begun done" in server.out
