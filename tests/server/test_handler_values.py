"""What handlers keep, raise, return and share between threads."""

from __future__ import annotations

import pytest
from rig import PLAIN, Server, request, text, wait_for

LOOPS = ["asyncio", "uvloop"]


CYCLES = """
import gc

class User:
    alive = 0
    def __init__(self, request):
        self.request = request
        User.alive += 1
    def __del__(self):
        User.alive -= 1

@app.get("/state")
def in_state(request):
    request.state.user = User(request)

@app.get("/state/async")
async def in_state_async(request):
    await asyncio.sleep(0)
    request.state.user = User(request)

@app.get("/response")
def in_response(request):
    user = User(request)
    user.response = Response(user)

@app.get("/alive")
def alive():
    gc.collect()
    return User.alive
"""


def test_cycles_through_a_request_are_collected(serve) -> None:
    server: Server = serve(CYCLES)
    with server.connect() as peer:
        for path in ("/state", "/state/async", "/response"):
            for _ in range(20):
                assert peer.request("GET", path).status in (200, 204)
            # The last one may still be on its way out of its task.
            wait_for(lambda: text(peer, "/alive") == "0", f"{path}: the requests to go")


EXITS = """
@app.get("/")
def hello():
    return "Hello"

@app.get("/exit/def")
def exit_def():
    sys.exit(3)

@app.get("/exit/before")
async def exit_before():
    sys.exit(3)

@app.get("/exit/after")
async def exit_after():
    await asyncio.sleep(0)
    sys.exit(3)

@app.get("/exit/later")
async def exit_later():
    await asyncio.sleep(0.001)
    raise KeyboardInterrupt

@app.get("/exit/blocking", blocking=True)
def exit_blocking():
    sys.exit(3)
"""


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


BUFFERS = """
of = lambda path, make: app.get(path)(make)
of("/bytearray", lambda: bytearray(b"abc"))
of("/memoryview", lambda: memoryview(b"abc"))
of("/strided", lambda: memoryview(b"a-b-c-")[::2])
of("/response/bytearray", lambda: Response(bytearray(b"abc")))
of("/response/memoryview", lambda: Response(memoryview(b"abc")))

@app.get("/async/bytearray")
async def in_async():
    await asyncio.sleep(0)
    return bytearray(b"abc")

app.get("/blocking/memoryview", blocking=True)(lambda: memoryview(bytearray(b"abc")))

def pieces():
    # What counts is what the buffer holds when it is yielded.
    buffer = bytearray(b"a")
    yield memoryview(buffer)
    buffer[:] = b"b"
    yield buffer
    buffer[:] = b"c"
    yield buffer
    buffer[:] = b"d"

@app.get("/stream/def")
def stream_def():
    return pieces()

@app.get("/stream/async")
async def stream_async():
    for piece in pieces():
        yield piece

app.get("/stream/blocking", blocking=True)(lambda: pieces())
"""
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


SHARED = """
sys.setswitchinterval(1e-6)
shared = Response("shared", headers={"a": "b"})
is_over = threading.Event()

@app.get("/")
def hello():
    return "Hello"

@app.get("/hammer", blocking=True)
def hammer():
    until = time.monotonic() + 60
    while not is_over.is_set() and time.monotonic() < until:
        for _ in range(1000):
            shared.headers
            shared.status_code = 200
    return "over"

@app.get("/stop")
def stop():
    is_over.set()
    return "stopping"

@app.get("/def")
def from_def():
    return shared

@app.get("/async")
async def from_async():
    return shared

app.get("/blocking", blocking=True)(lambda: shared)
"""


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
