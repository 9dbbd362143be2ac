"""What must not go wrong around handlers: odd exceptions, bodies read twice, jobs nobody waits for, stops."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest
from citius.web.pool import BlockingPool
from rig import Peer, Server, wait_for

# --- exceptions that are no Exception -------------------------------------------------------------

BREAKS = """
def breaking(error):
    yield b"begun"
    raise error

def stubborn():
    try:
        for _ in range(2):
            yield b"begun"
            raise KeyError("in the middle")
    finally:
        raise SystemExit("while it is closed")

class Closed:
    def __iter__(self):
        return self
    def __next__(self):
        raise KeyError("first")
    def close(self):
        raise KeyboardInterrupt("while it is closed")

ERRORS = {
    "exit": SystemExit("odd"),
    "interrupt": KeyboardInterrupt("odd"),
    "cancelled": asyncio.CancelledError("odd"),
    "base": BaseException("odd"),
    "gone": ClientDisconnected("odd"),
}

app.get("/def/{name}")(lambda name: breaking(ERRORS[name]))
app.get("/blocking/{name}", blocking=True)(lambda name: breaking(ERRORS[name]))
app.get("/closed")(lambda: Closed())
app.get("/closed-blocking", blocking=True)(lambda: Closed())

@app.get("/async/{name}")
async def from_async(name):
    yield b"begun"
    await asyncio.sleep(0)
    raise ERRORS[name]

@app.get("/raise/{name}", blocking=True)
def raises(name):
    raise ERRORS[name]

@app.get("/thread", blocking=True)
def thread():
    return threading.current_thread().name
"""


@pytest.mark.parametrize("kind", ["def", "blocking", "async"])
def test_whatever_a_generator_raises_breaks_its_answer_off(serve, kind: str) -> None:
    server: Server = serve(BREAKS, "--blocking-threads", "1")
    for name in ("exit", "interrupt", "cancelled", "base", "gone"):
        with server.connect() as peer:
            peer.send(f"GET /{kind}/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answer = peer.read_to_end()
        assert answer.endswith(b"5\r\nbegun\r\n"), name  # without the last chunk: cut
        assert server.get("/thread").body == b"citius-blocking-0"
    # All but the disconnect.
    server.wait_for_log("(?s)its streamed response broke off.*?: odd", 4)
    assert server.err.count("its streamed response broke off") == 4
    assert server.err.count(": odd") == 4


@pytest.mark.parametrize("path", ["closed", "closed-blocking"])
def test_whatever_close_raises_ends_nothing(serve, path: str) -> None:
    server: Server = serve(BREAKS, "--blocking-threads", "1")
    with server.connect() as peer:
        peer.send(f"GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        peer.read_to_end()
    server.wait_for_log("KeyboardInterrupt: while it is closed")
    assert server.get("/thread").body == b"citius-blocking-0"


def test_a_thread_of_the_pool_survives_every_exception(serve) -> None:
    server: Server = serve(BREAKS, "--blocking-threads", "1")
    for name in ("exit", "interrupt", "cancelled", "base"):
        with server.connect() as peer:
            assert peer.request("GET", f"/raise/{name}").status == 500
            assert peer.request("GET", "/thread").body == b"citius-blocking-0"
        server.wait_for_log(f"GET /raise/{name} failed")


# --- bodies that come in pieces -------------------------------------------------------------------

BODIES = """
def lengths(*pieces):
    return [len(piece) for piece in pieces]

@app.post("/again", stream=True)
async def again(request):
    first = await request.read()
    streamed = b"".join([piece async for piece in request.stream()])
    return [first == streamed == await request.read() == request.body(), len(first)]

@app.post("/json", stream=True)
async def as_json(request):
    await request.read()
    return [request.json(), request.json()]

@app.post("/plain")
async def plain(request):
    pieces = [[len(piece) async for piece in request.stream()] for _ in range(2)]
    return [*pieces, len(await request.read()), len(request.body()), [len(p) for p in request.stream()]]

@app.post("/cut-off", stream=True)
async def cut_off(request):
    for _ in range(2):
        try:
            await asyncio.wait_for(request.read(), 0.05)
        except TimeoutError:
            print("timeout", flush=True)
    return lengths(await request.read(), request.body())

@app.post("/cut-off-stream", stream=True)
async def cut_off_stream(request):
    try:
        await asyncio.wait_for(request.read(), 0.05)
    except TimeoutError:
        print("timeout", flush=True)
    return lengths(b"".join([piece async for piece in request.stream()]))

@app.post("/impatient", stream=True)
async def impatient(request):
    pieces, total = aiter(request.stream()), 0
    while True:
        try:
            total += len(await asyncio.wait_for(anext(pieces), 0.05))
        except TimeoutError:
            print("timeout", flush=True)
        except StopAsyncIteration:
            return [total]

async def refused(awaitable):
    try:
        await awaitable
    except RuntimeError as error:
        return str(error)

@app.post("/twice", stream=True)
async def twice(request):
    stream = request.stream()
    total = sum([len(piece) async for piece in stream])
    return [
        total,
        await refused(anext(aiter(request.stream()))),
        await refused(anext(aiter(stream))),
        await refused(request.read()),
    ]

@app.post("/partly", stream=True)
async def partly(request):
    stream = request.stream()
    async for piece in stream:
        break
    said = [await refused(anext(aiter(request.stream()))), await refused(request.read())]
    rest = [len(piece) async for piece in stream]
    return [len(piece) + sum(rest), *said]

@app.post("/twice-blocking", stream=True, blocking=True)
def twice_blocking(request):
    total = sum(len(piece) for piece in request.stream())
    try:
        next(iter(request.stream()))
    except RuntimeError as error:
        return [total, str(error)]

@app.post("/both", stream=True)
async def both(request):
    first = asyncio.ensure_future(request.read())
    await asyncio.sleep(0)
    said = [await refused(request.read()), await refused(anext(aiter(request.stream())))]
    print("refused", flush=True)
    return [len(await first), *said]

@app.post("/empty", stream=True)
async def empty(request):
    return [[len(piece) async for piece in request.stream()] for _ in range(2)]

@app.get("/kept")
def kept():
    from citius.web import bodies
    import gc
    gc.collect()
    return len(bodies._intakes)
"""

HEAD = "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n"


@pytest.fixture
def bodies(serve) -> Server:
    return serve(BODIES)


def post(server: Server, path: str, body: bytes) -> Any:
    with server.connect() as peer:
        reply = peer.request("POST", path, body)
    assert reply.status == 200, reply
    return json.loads(reply.body)


def test_a_body_that_was_read_can_be_had_again(bodies: Server) -> None:
    assert post(bodies, "/again", b"x" * 300_000) == [True, 300_000]
    assert post(bodies, "/again", b"") == [True, 0]
    assert post(bodies, "/json", b"[1]") == [[1], [1]]


def test_a_whole_body_can_be_had_in_every_way_and_as_often_as_wanted(bodies: Server) -> None:
    assert post(bodies, "/plain", b"x" * 300_000) == [[300_000]] * 2 + [300_000] * 2 + [[300_000]]


@pytest.mark.parametrize(
    ("path", "lengths"),
    [("/cut-off", [10, 10]), ("/cut-off-stream", [10]), ("/impatient", [10])],
)
def test_a_wait_that_is_cut_off_loses_nothing(
    bodies: Server, path: str, lengths: list[int]
) -> None:
    with bodies.connect() as peer:
        peer.send(HEAD.format(path, 10).encode() + b"xxxx")
        wait_for(lambda: "timeout" in bodies.out, "the wait to be cut off")
        peer.send(b"xxxxxx")
        assert json.loads(peer.reply().body) == lengths


@pytest.mark.parametrize(
    ("path", "refusals"), [("/twice", 3), ("/partly", 2), ("/twice-blocking", 1)]
)
def test_a_stream_is_given_away_once(bodies: Server, path: str, refusals: int) -> None:
    total, *said = post(bodies, path, b"x" * 300_000)
    assert total == 300_000
    assert len(said) == refusals
    for text in said:
        assert text.startswith("the body of this request has been taken")


def test_a_second_reader_is_refused_while_the_first_waits(bodies: Server) -> None:
    with bodies.connect() as peer:
        peer.send(HEAD.format("/both", 10).encode() + b"xxxx")
        wait_for(lambda: "refused" in bodies.out, "the second reader to be refused")
        peer.send(b"xxxxxx")
        length, *said = json.loads(peer.reply().body)
    assert length == 10
    assert said == ["the body of this request is being read by somebody else"] * 2


def test_an_empty_body_is_empty_every_time(bodies: Server) -> None:
    with bodies.connect() as peer:
        peer.send(b"POST /empty HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert json.loads(peer.reply().body) == [[], []]


def test_nothing_is_kept_of_a_request_that_is_over(bodies: Server) -> None:
    for path in ("/again", "/twice", "/partly"):
        post(bodies, path, b"x" * 100_000)
    wait_for(lambda: bodies.get("/kept").body == b"0", "the requests to go")


# --- the pool -------------------------------------------------------------------------------------

POOL = """
gate = threading.Event()
begun = []
cancelled = []

@app.get("/cancelled")
def how_many():
    return len(cancelled)

@app.get("/wait", blocking=True)
def wait():
    begun.append("wait")
    gate.wait(20)
    return "done"

@app.get("/job/{name}", blocking=True)
def job(name):
    begun.append(name)
    return name

@app.get("/begun")
def how_far():
    return begun

@app.get("/open")
def open_gate():
    gate.set()
"""

ASYNC_MIDDLEWARE = """
@app.middleware
async def pass_on(request, next):
    try:
        return await next(request)
    except asyncio.CancelledError:
        cancelled.append(request.path)
        raise

app.get("/stop", blocking=True)(lambda: next(iter(())))
app.get("/exit", blocking=True)(lambda: sys.exit(3))
"""


def begun(server: Server) -> list[str]:
    return json.loads(server.get("/begun").body)


def ask(server: Server, path: str) -> Peer:
    """Send a request and do not wait."""
    peer = server.connect()
    peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    return peer


@pytest.mark.parametrize("middleware", ["", ASYNC_MIDDLEWARE], ids=["straight", "as async"])
def test_a_job_whose_client_has_left_is_not_run(serve, middleware: str) -> None:
    server: Server = serve(POOL + middleware, "--blocking-threads", "1")
    ask(server, "/wait")
    wait_for(lambda: begun(server) == ["wait"], "the thread to be busy")
    for _ in range(3):
        leaving = ask(server, "/job/left")
        leaving.socket.shutdown(socket.SHUT_WR)
        assert leaving.is_closed()
    if middleware:  # a task needs some turns to hear of it
        wait_for(lambda: server.get("/cancelled").body == b"3", "the tasks to be cancelled")
    staying = ask(server, "/job/stayed")
    assert begun(server) == ["wait"]
    server.get("/open")
    assert staying.reply().body == b"stayed"
    assert begun(server) == ["wait", "stayed"]


def test_exceptions_that_no_future_takes(serve) -> None:
    server: Server = serve(POOL + ASYNC_MIDDLEWARE, "--blocking-threads", "1")
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
        POOL
        + """
@app.get("/later", blocking=True)
def later():
    begun.append("later")
    gate.wait(20)
    return iter([b"one", b"two"])
""",
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
        POOL
        + """
left = []

@app.get("/endless", blocking=True)
def endless():
    try:
        while True:
            yield b"x" * 65536
    finally:
        left.append(threading.current_thread().name)

@app.get("/left")
def who_left():
    return left
""",
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


# --- stopping -------------------------------------------------------------------------------------

STUCK = """
@app.get("/stuck", blocking=True)
def stuck():
    print("stuck", flush=True)
    time.sleep(60)

@app.on_shutdown
def down():
    print("down", flush=True)
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "none"])
@pytest.mark.parametrize(
    "signals", [[signal.SIGQUIT], [signal.SIGINT, signal.SIGINT], [signal.SIGTERM, signal.SIGQUIT]]
)
def test_now_is_now(serve, loop: str, signals: list[signal.Signals]) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "50", "--no-access-log")
    with server.connect() as idle:
        assert idle.request("GET", "/").status == 404
        peer = ask(server, "/stuck")
        wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
        began_at = time.monotonic()
        server.signal(signals[0])
        if signals[1:]:
            assert idle.is_closed()  # it drains
            server.signal(signals[1])
        assert server.wait() == 0
        assert time.monotonic() - began_at < 20
        peer.close()
    assert server.out == "stuck\ndown\n"
    assert "left behind" in server.err


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_now_is_heard_while_only_threads_are_waited_for(serve, loop: str) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "50", "--no-access-log")
    peer = ask(server, "/stuck")
    wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
    began_at = time.monotonic()
    server.signal(signal.SIGTERM)
    peer.close()  # the last connection: from here on the thread alone is waited for
    time.sleep(0.3)  # nothing outside shows that it is
    assert server.process.poll() is None
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert time.monotonic() - began_at < 20
    assert server.out == "stuck\ndown\n"


@pytest.mark.parametrize("loop", ["asyncio", "none"])
def test_the_drain_time_is_waited_for_once(serve, loop: str) -> None:
    server: Server = serve(STUCK, "--loop", loop, "--drain-s", "4")
    ask(server, "/stuck")
    wait_for(lambda: "stuck" in server.out, "the handler to be stuck")
    began_at = time.monotonic()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert 3.9 < time.monotonic() - began_at < 7.8, "the time is waited for once, not twice"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "none"])
def test_idle_threads_are_not_left_behind(serve, loop: str) -> None:
    server: Server = serve(POOL, "--loop", loop, "--blocking-threads", "4")
    for name in "abcd":
        assert server.get(f"/job/{name}").status == 200
    server.signal(signal.SIGQUIT)
    assert server.wait() == 0
    assert "left behind" not in server.err


def test_hooks_behind_one_that_is_broken_off_are_called(serve) -> None:
    server: Server = serve(
        """
        @app.on_shutdown
        def last():
            print("last", flush=True)

        @app.on_shutdown
        async def hangs():
            print("hangs", flush=True)
            await asyncio.sleep(1000)
        """
    )
    server.signal(signal.SIGTERM)
    wait_for(lambda: "hangs" in server.out, "the hook to hang")
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert server.out == "hangs\nlast\n"
    assert re.search(r"hook hangs \(.*\) did not end and was broken off", server.err)
