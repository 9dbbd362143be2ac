"""Work after the response: when it runs, what becomes of its failures, and that a stop waits for it."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from citius import App, Depends, Request, Response, WebSocket
from citius._core import FAST_PATHS
from citius.observability import logging as server_logging
from citius.testing import Client
from citius.web.execution import background
from citius.web.execution.background import defer, pending
from citius.web.middleware import AsyncNext
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


@pytest.mark.parametrize("kind", ["async", "def"])
@pytest.mark.parametrize("failing", ["", "stream", "dependency"])
def test_a_stream_that_fails_defers_nothing(kind: str, failing: str) -> None:
    """Issue 32 F6: closing it behind its end or failure called what was deferred, for the second time."""
    app, done = App(), list[str]()

    async def later() -> None:
        done.append("deferred")

    def fail(where: str) -> None:
        if where == failing:
            raise RuntimeError(where)

    async def of_async() -> AsyncIterator[int]:
        yield 1
        fail("dependency")

    def of_def() -> Iterator[int]:
        yield 1
        fail("dependency")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        fail("stream")
        done.append("end of the stream")

    def blocking_pieces() -> Iterator[bytes]:
        yield b"a"
        fail("stream")
        done.append("end of the stream")

    @app.get("/async", dependencies=[Depends(of_async)])
    async def asked(request: Request) -> AsyncIterator[bytes]:
        defer(request, later)
        return pieces()

    @app.get("/def", dependencies=[Depends(of_def)])
    def asked_def(request: Request) -> Iterator[bytes]:
        defer(request, later)
        return blocking_pieces()

    with Client(app) as client:
        if failing:
            with pytest.raises(Exception, match="closed in the middle"):
                client.get(f"/{kind}")
        else:
            assert client.get(f"/{kind}").text == "a"
    end = [] if failing == "stream" else ["end of the stream"]
    assert done == [*end, *([] if failing else ["deferred"])]


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


VARIABLE: ContextVar[str] = ContextVar("variable", default="none")


class Awaited:
    """What a function that is marked as a coroutine function may return besides a coroutine."""

    def __init__(self, done: list[object]) -> None:
        self._done = done

    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.sleep(0).__await__()
        self._done.append("awaited")


def test_calls_in_threads_have_the_context_of_their_request() -> None:
    """They had the defaults of its variables, unlike those on the loop."""
    app, done = App(), list[str]()

    def work(name: str) -> None:
        done.append(f"{name} {VARIABLE.get()}")
        VARIABLE.set("of another call")

    def set_variable(name: str) -> None:
        VARIABLE.set(name)

    def asked(name: str, request: Request) -> None:
        for _ in range(2):
            defer(request, work, name)
        VARIABLE.set("later")

    @app.get("/async/{name}", dependencies=[Depends(set_variable)])
    async def asked_by_coroutine(name: str, request: Request) -> None:
        asked(name, request)

    app.get("/def/{name}", dependencies=[Depends(set_variable)])(asked)
    app.get("/blocking/{name}", dependencies=[Depends(set_variable)], blocking=True)(asked)
    names = ["ann", "bob"]
    with Client(app) as client:
        for kind in ("async", "def", "blocking"):
            for name in names:
                assert client.get(f"/{kind}/{name}").status_code == 204
        wait_for(lambda: len(done) == 12, "the work")
    assert sorted(done) == sorted(f"{name} {name}" for name in names * 6)


@pytest.mark.parametrize("is_set", [False, True])
def test_calls_at_the_end_of_a_turn_are_as_those_of_tasks(
    is_set: bool, logged: list[logging.LogRecord]
) -> None:
    """With a variable of the context set, each call is a task of its own; what can be seen is the same."""
    app, done, seen = App(), list[object](), set[str]()

    async def begin(value: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        done.append((value, VARIABLE.get()))
        VARIABLE.set("of another call")
        seen.add(task.get_name())
        if value % 2:
            await asyncio.sleep(0)
            assert asyncio.current_task() is task
            done.append((value, VARIABLE.get()))

    async def fail() -> None:
        raise ValueError("at once")

    async def fail_late() -> None:
        await asyncio.sleep(0)
        raise ValueError("late")

    async def cancel_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        done.append("not cancelled")

    @functools.wraps(fail)  # so it counts as a coroutine function
    def awaitable() -> Awaited:
        return Awaited(done)

    @app.get("/{how}")
    def asked(how: str, request: Request) -> str:
        if is_set:
            VARIABLE.set("set")
        for value in range(4):
            defer(request, begin, value)
        for one in (fail, fail_late, cancel_itself, awaitable):
            defer(request, one)
        done.append("handler")
        return str(pending(request.app))

    @app.get("/async/{how}")
    async def asked_by_coroutine(how: str, request: Request) -> str:
        return asked(how, request)

    expected = "set" if is_set else "none"
    with Client(app) as client:
        for path in ("/first", "/second", "/async/third"):
            done.clear()
            logged.clear()
            assert client.get(path).text == "8"
            wait_for(lambda: pending(app) == 0, "the deferred calls")
            assert done[0] == "handler"
            assert done[1:5] == [(value, expected) for value in range(4)]
            assert sorted(map(str, done[5:])) == sorted(
                ["(1, 'of another call')", "(3, 'of another call')", "awaited"]
            )
            errors = [one.exc_info for one in logged if one.levelno == logging.ERROR]
            assert sorted(str(one[1]) for one in errors if one) == ["at once", "late"]
    assert (seen == {"citius-request"}) is (FAST_PATHS and not is_set)


def test_a_deferred_call_of_a_deferred_call_comes_later() -> None:
    app, done = App(), list[str]()

    async def first(request: Request) -> None:
        defer(request, second)
        done.append("first")

    async def second() -> None:
        done.append("second")

    @app.get("/")
    def asked(request: Request) -> str:
        defer(request, first, request)
        return "asked"

    with Client(app) as client:
        assert client.get("/").text == "asked"
    assert done == ["first", "second"]


def test_the_exit_of_a_deferred_call_ends_the_server(serve: Callable[..., Server]) -> None:
    server = serve(
        """
        from citius.web.execution.background import defer
        async def later():
            raise SystemExit(7)
        @app.get("/")
        def asked(request):
            defer(request, later)
            return "asked"
        """
    )
    assert server.get("/").body == b"asked"
    assert server.wait() != 0


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


class Refused(Exception):
    """What handlers below raise, and an error handler responds to."""


HANDLERS = ("def", "blocking", "async", "waiting", "composed")


@pytest.mark.parametrize("is_set", [False, True])
@pytest.mark.parametrize("outcome", ["returns", "raises", "is refused"])
@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("of_loop", [False, True])
def test_deferred_calls_wait_for_the_end_of_their_handler(
    of_loop: bool, kind: str, outcome: str, is_set: bool
) -> None:
    """Issue 32 F6: a call that an error handler has made is made, and none of the handler that failed."""
    app, done = App(), list[str]()

    async def in_loop(what: str) -> None:
        done.append(what)

    def in_thread(what: str) -> None:
        done.append(what)

    def begin(request: Request) -> None:
        if is_set:
            VARIABLE.set("set")
        defer(request, in_loop if of_loop else in_thread, "deferred")

    def end() -> str:
        done.append("handler")
        if outcome == "raises":
            raise ValueError(outcome)
        if outcome == "is refused":
            raise Refused
        return "returned"

    @app.exception_handler(Refused)
    def refused(request: Request, error: Refused) -> Response:
        defer(request, in_thread, "of the error handler")
        return Response("refused", 409)

    def plain(request: Request) -> str:
        begin(request)
        return end()

    async def coroutine(request: Request) -> str:
        begin(request)
        return end()

    async def waiting(request: Request) -> str:
        begin(request)
        for _ in range(20):
            await asyncio.sleep(0)
        return end()

    async def passes(request: Request, next: AsyncNext) -> Response:
        response = await next(request)
        await asyncio.sleep(0)
        done.append("middleware")
        return response

    if kind == "composed":
        app.middleware(passes)
        app.get("/")(waiting)
    elif kind == "waiting":
        app.get("/")(waiting)
    elif kind == "async":
        app.get("/")(coroutine)
    else:
        app.get("/", blocking=kind == "blocking")(plain)
    if of_loop and kind == "blocking":
        pytest.skip("no loop runs there")
    with Client(app, raise_errors=False) as client:
        status = client.get("/").status_code
    assert status == {"returns": 200, "raises": 500, "is refused": 409}[outcome]
    called = {"returns": ["deferred"], "raises": [], "is refused": ["of the error handler"]}
    assert [one for one in done if one != "middleware"] == ["handler", *called[outcome]]
    if kind == "composed" and outcome == "returns":
        assert done == ["handler", "middleware", "deferred"]
    assert pending(app) == 0


@pytest.mark.parametrize("kind", ["async", "def", "blocking"])
@pytest.mark.parametrize("fails", [False, True])
def test_deferred_calls_wait_for_the_end_of_a_stream(kind: str, fails: bool) -> None:
    app, done = App(), list[str]()

    def later() -> None:
        done.append("deferred")

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b"a" * 10_000
        done.append("stream")
        if fails:
            raise ValueError("in the stream")

    async def async_pieces() -> AsyncIterator[bytes]:
        for piece in pieces():
            await asyncio.sleep(0)
            yield piece

    async def stream(request: Request) -> AsyncIterator[bytes]:
        defer(request, later)
        return async_pieces()

    def stream_of_def(request: Request) -> Iterator[bytes]:
        defer(request, later)
        return pieces()

    app.get("/", blocking=kind == "blocking")(stream if kind == "async" else stream_of_def)
    with Client(app) as client:
        if fails:
            with pytest.raises(Exception, match="closed in the middle"):
                client.get("/")
        else:
            assert len(client.get("/").content) == 1_000_000
    assert done == ["stream", *([] if fails else ["deferred"])]
    assert pending(app) == 0


def test_what_is_deferred_behind_the_end_is_called() -> None:
    app, done, tasks = App(), list[str](), list[asyncio.Task[None]]()
    responded = asyncio.Event()

    async def later(what: str) -> None:
        done.append(what)

    async def outlive(request: Request) -> None:
        await responded.wait()
        defer(request, later, "late")

    @app.get("/go")
    async def go() -> str:
        responded.set()
        return " ".join(done)

    @app.get("/")
    async def asked(request: Request) -> str:
        tasks.append(asyncio.create_task(outlive(request)))
        return "asked"

    @app.websocket("/")
    async def socket(socket: WebSocket) -> None:
        await socket.accept()
        defer(socket.request, later, "of a WebSocket")
        await socket.receive()

    with Client(app) as client:
        assert client.get("/").text == "asked"
        wait_for(lambda: client.get("/go").text == "late", "the deferred call")
        with client.websocket("/"):
            wait_for(lambda: client.get("/go").text == "late of a WebSocket", "the deferred call")


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


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_handler_defers_that_goes_on_waits_for_its_end(
    serve: Callable[..., Server], fails: bool
) -> None:
    server = serve(CONTINUES)
    with server.connect() as peer:
        path = "fails" if fails else "continues"
        peer.send(f"GET /{path}?defer HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for(lambda: b"begun" in server.get("/log").body, "the handler")
        peer.reset()
    with server.connect() as peer:
        peer.send(b"GET /cancelled HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.get("/log").body == b"begun begun", "the other handler")
        peer.reset()
    wait_for(lambda: b"cancelled" in server.get("/log").body, "its end: by then both have left")
    assert server.get("/go").body == b"went"
    end = "begun begun cancelled done" if fails else "begun begun cancelled done deferred"
    wait_for(lambda: server.get("/log").body == end.encode(), "the handler's end")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert f"log: {end}\n" in server.out
