"""Handlers on executors: values, errors, limits, deadlines, cancellation, progress."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from citius import App, ConfigError
from citius.testing import Client
from rig import Server, application, wait_for

APP = application("executors_app")
Serve = Callable[..., Server]
needs_interpreters = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="sub-interpreters come with CPython 3.14"
)
EXECUTORS = ["threads", "processes", pytest.param("interpreters", marks=needs_interpreters)]


@pytest.mark.parametrize("name", EXECUTORS)
def test_values_go_there_and_back(serve: Serve, name: str) -> None:
    server = serve(APP)
    found = json.loads(server.get(f"/{name}/where/7").body)
    assert found["n"] == 7
    pid = int(server.get("/pid").body)
    assert (found["pid"] == pid) == (name != "processes")
    assert name != "threads" or found["thread"].startswith("citius-threads")
    assert (found["interpreter"] != 0) == (name == "interpreters")
    with server.connect() as peer:
        fields = {"content-type": "application/json"}
        reply = peer.request("POST", f"/{name}/area", b'{"width": 3, "height": 4}', **fields)
        assert (reply.status, reply.body) == (200, b"12")
        # What does not fit never gets there.
        assert peer.request("POST", f"/{name}/area", b'{"width": "x"}', **fields).status == 422


@pytest.mark.parametrize("name", EXECUTORS)
def test_long_values_go_there_and_back(serve: Serve, name: str) -> None:
    server = serve(APP, "--body-bytes-max", str(1 << 26))
    text = os.urandom(1 << 19).hex() * 20
    with server.connect() as peer:
        fields = {"content-type": "application/json"}
        body = json.dumps({"text": text}).encode()
        reply = peer.request("POST", f"/{name}/backwards", body, **fields)
    assert (reply.status, reply.body) == (200, text[::-1].encode())


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_traceback_of_the_other_side_is_logged(serve: Serve, name: str) -> None:
    server = serve(APP)
    assert server.get(f"/{name}/fail?text=what-was-wrong").status == 500
    wait_for(lambda: "KeyError: 'what-was-wrong'" in server.err, "a traceback")
    assert "executor_bodies.py" in server.err
    assert "raise KeyError(text)" in server.err


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_call_too_many_gets_503(serve: Serve, name: str, tmp_path: Path) -> None:
    server = serve(APP)
    path = tmp_path / "go"

    with ThreadPoolExecutor(5) as pool:
        # Two run, two wait, and none of them ends before the file is there.
        asked = [pool.submit(server.get, f"/{name}/wait?path={path}") for _ in range(5)]
        wait_for(lambda: any(one.done() for one in asked), "a refusal")
        path.touch()
        replies = [one.result() for one in asked]
    assert sorted(reply.status for reply in replies) == [200] * 4 + [503]
    assert [reply.body for reply in replies if reply.status == 200] == [b"there"] * 4
    assert server.get(f"/{name}/where/1").status == 200


def test_a_call_that_takes_too_long_is_given_up(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP)
    path = tmp_path / "go"
    reply = server.get(f"/hasty/steps?path={path}")
    assert reply.status == 503
    assert b"2 s" in reply.body
    wait_for((tmp_path / "go.cancelled").exists, "the body to be told")
    wait_for(lambda: server.get("/hasty/where/1").status == 200, "its process")


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_body_learns_that_its_client_has_left(serve: Serve, name: str, tmp_path: Path) -> None:
    server = serve(APP)
    path = tmp_path / "go"
    with server.connect() as peer:
        peer.send(
            f"GET /{name}/steps?path={path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".encode()
        )
        peer.read_until(b"event: progress\n")
    wait_for((tmp_path / "go.cancelled").exists, "the body to be told")


@pytest.mark.parametrize("name", EXECUTORS)
def test_progress_comes_as_events_and_the_result_last(
    serve: Serve, name: str, tmp_path: Path
) -> None:
    server = serve(APP)
    path = tmp_path / "go"
    with server.connect() as peer:
        peer.send(
            f"GET /{name}/steps?path={path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".encode()
        )
        numbers: list[int] = []
        while len(numbers) < 5:
            event = peer.read_until(b"\n\n").partition(b"data: ")[2]
            numbers.append(json.loads(event)["data"]["step"])
        assert numbers == sorted(numbers)
        path.touch()
        assert peer.read_until(b"event: result\ndata: done\n\n")
    # Without the wish for events there is the result alone.
    assert server.get(f"/{name}/steps?path={path}").body == b"done"


@pytest.mark.parametrize("path", ["", "fail"])
@pytest.mark.parametrize("name", EXECUTORS)
def test_progress_of_a_handler_with_a_declared_record(serve: Serve, name: str, path: str) -> None:
    """Reports were refused, for they are not of the record's type, and the stream broke off."""
    server = serve(APP)
    with server.connect() as peer:
        target = f"/{name}/measured?path={path}"
        peer.send(f"GET {target} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".encode())
        report = peer.read_until(b"\n\n").partition(b"event: progress\ndata: ")[2]
        assert json.loads(report) == {"done": 0.5, "data": {"step": 1}}
        last = peer.read_until(b"\n\n").partition(b"event: ")[2]
        assert last == (
            b'error\ndata: {"status":500}\n\n'
            if path
            else b'result\ndata: {"width":3,"height":4}\n\n'
        )


def test_what_cannot_work_ends_the_start() -> None:
    app = App()

    @app.get("/a", executor="nowhere")
    def index() -> str:
        return ""

    with pytest.raises(ConfigError, match="executor='nowhere'.*the application has none"):
        Client(app).__enter__()
    with pytest.raises(ConfigError, match="is `async def`"):

        @app.get("/b", executor="nowhere")
        async def other() -> None: ...

    with pytest.raises(ConfigError, match="drop blocking"):

        @app.get("/c", executor="nowhere", blocking=True)
        def third() -> None: ...

    with pytest.raises(ConfigError, match="expected an executor, or one of"):
        App().executor("x")
    app = App()
    app.executor("x", threads=1)
    with pytest.raises(ConfigError, match="two executors 'x'"):
        app.executor("x", threads=2)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this interpreter has them")
def test_interpreters_need_a_newer_python() -> None:
    with pytest.raises(
        ConfigError, match=r"CPython 3\.14 or later, this is 3\.1\d; use processes="
    ):
        App().executor("x", interpreters=2)


@needs_interpreters
def test_a_body_that_no_interpreter_can_load_ends_the_start(tmp_path: Path) -> None:
    """Its module imports Citius' extension, which is of one interpreter."""
    (tmp_path / "unfit.py").write_text(
        "from citius import App\n"
        "SEVEN = 7\n"
        "app = App()\n"
        "app.executor('x', interpreters=1)\n"
        "@app.get('/', executor='x')\n"
        "def seven() -> int:\n"
        "    return SEVEN\n"
    )
    server = Server([str(tmp_path / "unfit.py"), "--port", "0"], {}, tmp_path)
    try:
        assert server.process.wait(30) != 0
        wait_for(lambda: "seven" in server.err and "use processes=" in server.err, "the reason")
        assert "'unfit' does not load in a sub-interpreter (ImportError: " in server.err
        assert "citius._core does not support loading in subinterpreters" in server.err
    finally:
        server.kill()


@needs_interpreters
def test_calls_at_the_same_time_are_in_different_interpreters(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP)
    here, there = tmp_path / "here", tmp_path / "there"
    with ThreadPoolExecutor(2) as pool:
        both = [
            pool.submit(server.get, f"/interpreters/meet?own={own}&other={other}")
            for own, other in ((here, there), (there, here))
        ]
        found = {int(one.result().body) for one in both}
    assert len(found) == 2
    assert 0 not in found


def test_an_executor_of_a_routers_application_serves_it() -> None:
    from citius import Router

    router = Router()

    @router.get("/twice/{n:int}", executor="x")
    def twice(n: int) -> int:
        return 2 * n

    app, inner = App(), App()
    app.executor("x", threads=1)
    inner.include(router)
    app.mount("/in", inner)
    with Client(app) as client:
        assert client.get("/in/twice/21").text == "42"


def test_a_class_makes_an_executor_at_the_start() -> None:
    made: list[object] = []

    class Immediate:
        def __init__(self) -> None:
            made.append(self)

        def submit(
            self, function: Callable[..., int], /, *args: int, **keywords: int
        ) -> Future[int]:
            future: Future[int] = Future()
            future.set_result(function(*args, **keywords))
            return future

    app = App()
    app.executor("x", Immediate)

    @app.get("/twice/{n:int}", executor="x")
    def twice(n: int) -> int:
        return 2 * n

    assert made == []
    with Client(app) as client:
        assert client.get("/twice/21").text == "42"
    assert len(made) == 1
