"""What hostile clients and careless handlers once broke, each over a real socket.

Contexts and tasks of one request never reach the next; sockets that a child or another server holds
too cost no processor time; nobody is starved, and nothing is kept without bound.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import TIMEOUT_S, Peer, Server, wait_for

LOOPS = ["asyncio", "uvloop"]
SPIN_MEASURED_S = 0.3
SPIN_SHARE_MAX = 0.2
STARVED_S = 10.0
PARKED_KB_MAX = 100 * 1024
# Development mode gives asyncio checks and memory of its own; these tests want what users run.
PLAIN = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}


def text(peer: Peer, path: str, method: str = "GET") -> str:
    """The body of a 200."""
    reply = peer.request(method, path)
    assert reply.status == 200, f"{path}: {reply}"
    return reply.body.decode()


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def processor_share(server: Server) -> float:
    """How busy the process is, of one processor, over a short while."""
    schedstat = Path(f"/proc/{server.process.pid}/schedstat")

    def now() -> tuple[int, float]:
        return int(schedstat.read_text().split()[0]), time.monotonic()

    ran_ns, began_at = now()
    # A span to measure over, not a wait for something to happen.
    time.sleep(SPIN_MEASURED_S)
    ran_later_ns, ended_at = now()
    return (ran_later_ns - ran_ns) / 1e9 / (ended_at - began_at)


def pss_kb(server: Server) -> int:
    """Proportional set size of the process."""
    found = re.search(
        r"^Pss:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/smaps_rollup").read_text(), re.M
    )
    assert found is not None
    return int(found[1])


def stands_still(server: Server, path: str) -> int:
    """The number at ``path`` once it has stopped growing."""
    seen: list[int] = []

    def is_still() -> bool:
        seen.append(int(server.get(path).body))
        return len(seen) > 20 and seen[-1] == seen[-20]

    wait_for(is_still, f"{path} to stand still")
    return seen[-1]


# --- One request's context and task are not the next one's ---------------------------------------

CONTEXTS = """
user = contextvars.ContextVar("user", default="nobody")
flag = contextvars.ContextVar("flag", default=None)
flag.set(0)

@app.get("/login/def")
def login_def():
    before = user.get()
    user.set("somebody")
    return before

@app.get("/login/async")
async def login_async():
    return login_def()

@app.get("/login/suspended")
async def login_suspended():
    before = user.get()
    user.set("somebody")
    await asyncio.sleep(0.001)
    return before

@app.get("/login/sleep-zero")
async def login_sleep_zero():
    before = login_def()
    await asyncio.sleep(0)
    return before

app.get("/login/blocking", blocking=True)(login_def)

@app.get("/flag/def")
def flag_def():
    return repr(flag.get())

@app.get("/flag/async")
async def flag_async():
    return repr(flag.get())

@app.get("/set-flag/def")
def set_flag_def():
    flag.set(False)

@app.get("/set-flag/async")
async def set_flag_async():
    flag.set(False)
"""
KINDS = ["def", "async", "suspended", "sleep-zero", "blocking"]


@pytest.mark.parametrize("loop", LOOPS)
def test_no_request_sees_what_another_has_set(serve, loop: str) -> None:
    server: Server = serve(CONTEXTS, "--loop", loop, "--no-access-log", env=PLAIN)
    peers = [server.connect() for _ in range(10)]
    for turn in range(40):
        kinds = [KINDS[(turn + place * (turn // 5 + 1)) % len(KINDS)] for place in range(10)]
        for peer, kind in zip(peers, kinds, strict=True):
            peer.send(request(f"/login/{kind}"))
        for peer, kind in zip(peers, kinds, strict=True):
            assert peer.reply().body == b"nobody", f"{kind} knows another's user"


@pytest.mark.parametrize("kind", ["def", "async"])
def test_a_context_that_differs_only_by_false_and_zero_is_not_reused(serve, kind: str) -> None:
    server: Server = serve(CONTEXTS, env=PLAIN)
    with server.connect() as peer:
        assert text(peer, f"/flag/{kind}") == "0"
        # In one piece, so that nothing but the context itself can have been put right in between.
        peer.send(request(f"/set-flag/{kind}") + request(f"/flag/{kind}"))
        assert peer.reply().status in (200, 204)
        assert peer.reply().body == b"0"


TASKS = """
@app.get("/mark")
async def mark():
    asyncio.current_task().secret = "alice"
    return "marked"

@app.get("/marks")
async def marks():
    return getattr(asyncio.current_task(), "secret", "none")

@app.get("/cancel-and-return")
async def cancel_and_return():
    asyncio.current_task().cancel()
    return "returned"

@app.get("/wait")
async def wait():
    await asyncio.sleep(0.001)
    return "waited"

@app.get("/cancelling")
async def cancelling():
    return str(asyncio.current_task().cancelling())

gate = asyncio.Event()

@app.get("/open")
async def open_gate():
    gate.set()

@app.get("/cancel-all")
async def cancel_all():
    me = asyncio.current_task()
    await gate.wait()
    for task in asyncio.all_tasks():
        if task is not me and task.get_name().startswith("citius-request"):
            task.cancel()
    return "cancelled"

@app.get("/cancel/sleep-zero")
async def cancel_and_sleep():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return "not cancelled"

@app.get("/cancel/caught")
async def cancel_and_catch():
    asyncio.current_task().cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return "caught"
    return "not cancelled"

@app.get("/cancel/future")
async def cancelled_future():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_done_to_a_task_does_not_reach_the_next_request(serve, loop: str) -> None:
    server: Server = serve(TASKS, "--loop", loop, env=PLAIN)
    with server.connect() as peer:
        for _ in range(3):
            assert text(peer, "/marks") == "none"
            assert text(peer, "/mark") == "marked"
        assert text(peer, "/marks") == "none"
        assert text(peer, "/cancel-and-return") == "returned"
        assert text(peer, "/cancelling") == "0"
        assert text(peer, "/cancel-and-return") == "returned"
        assert text(peer, "/wait") == "waited"
        # Who goes through all tasks finds the one that waits for its request.
        with server.connect() as canceller:
            canceller.send(request("/cancel-all"))
            assert text(peer, "/wait") == "waited"
            assert peer.request("GET", "/open").status in (200, 204)
            assert canceller.reply().body == b"cancelled"
        assert text(peer, "/wait") == "waited"
        assert text(peer, "/cancelling") == "0"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_cancels_itself_in_its_first_step_is_answered(serve, loop: str) -> None:
    server: Server = serve(TASKS, "--loop", loop, env=PLAIN)
    with server.connect() as peer:
        assert text(peer, "/cancel/caught") == "caught"
        assert peer.request("GET", "/cancel/sleep-zero").status == 500
        assert peer.request("GET", "/cancel/future").status == 500
        assert text(peer, "/wait") == "waited"


# --- Sockets that somebody else holds too ---------------------------------------------------------

FORKS = """
@app.get("/")
def hello():
    return "Hello"

@app.get("/fork")
def fork():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return str(child)

@app.get("/slow")
async def slow():
    await asyncio.sleep(60)
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_forks_leaves_nothing_that_spins(serve, loop: str) -> None:
    server: Server = serve(FORKS, "--loop", loop, env=PLAIN)
    with server.connect() as other, server.connect() as asking:
        assert text(other, "/") == "Hello"
        asking.send(b"GET /fork HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        child = int(asking.reply().body)
        try:
            assert asking.is_closed()  # although the child has the socket too
            other.close()
            asking.close()
            assert server.get("/").status == 200
            assert processor_share(server) < SPIN_SHARE_MAX
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_shared_listener_does_not_spin_while_its_server_drains(serve, monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        descriptor = listener.fileno()
        with monkeypatch.context() as patch:
            inheriting = functools.partial(subprocess.Popen, pass_fds=[descriptor])
            patch.setattr(subprocess, "Popen", inheriting)
            server: Server = serve(FORKS, "--fd", str(descriptor), env=PLAIN)
        with server.connect() as busy:
            assert text(busy, "/") == "Hello"
            busy.send(request("/slow"))
            server.signal(signal.SIGTERM)
            server.wait_for_log("stopping waits for 1 open request")
            wait_for(lambda: not accepts(server), "the server to take no more connections")
            with server.connect() as waiting:
                waiting.send(request("/"))
                assert processor_share(server) < SPIN_SHARE_MAX
                # The other holders of the socket get what this one leaves.
                listener.accept()[0].close()
            server.signal(signal.SIGQUIT)
            server.wait()


def accepts(server: Server) -> bool:
    """Whether a new connection is answered."""
    with server.connect() as peer:
        peer.socket.settimeout(0.2)
        try:
            return peer.request("GET", "/").status == 200
        except (TimeoutError, EOFError, ConnectionError):
            return False


# --- Threads whose clients have gone --------------------------------------------------------------

GONE = """
gate = threading.Event()
events = []

@app.get("/events")
def seen():
    return events

@app.get("/open")
def open_gate():
    gate.set()
    return "open"

@app.get("/late", blocking=True)
def late():
    events.append("running")
    gate.wait(20)
    def pieces():
        try:
            for _ in range(300):
                yield b"x" * 1000
        finally:
            events.append("closed")
    return pieces()

@app.get("/exit", blocking=True)
def leave():
    yield b"begun"
    sys.exit(3)

@app.get("/quick", blocking=True)
def quick():
    return "quick"

@app.post("/echo")
def echo(request):
    return request.body()
"""


def test_a_stream_that_starts_when_its_client_has_gone_harms_nobody(serve) -> None:
    server: Server = serve(GONE, "--blocking-threads", "1")
    with server.connect() as control:

        def has(event: str) -> bool:
            return event in json.loads(text(control, "/events"))

        with server.connect() as leaving:
            leaving.send(request("/late"))
            wait_for(lambda: has("running"), "the handler to run")
        assert not has("closed")
        # The next connection takes the place of the one that left, and is in the midst of its body.
        with server.connect() as peer:
            peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234")
            assert text(control, "/open") == "open"
            wait_for(lambda: has("closed"), "the generator to be closed")
            peer.send(b"56789")
            assert peer.reply().body == b"0123456789"
            assert text(peer, "/quick") == "quick"  # the only thread is back


def test_sys_exit_in_a_blocking_stream_costs_no_thread(serve) -> None:
    server: Server = serve(GONE, "--blocking-threads", "1")
    with server.connect() as peer:
        peer.send(request("/exit"))
        broken = peer.read_to_end()
    assert b"begun" in broken
    assert not broken.endswith(b"0\r\n\r\n")
    with server.connect() as peer:
        assert text(peer, "/quick") == "quick"


# --- Nobody is starved, nothing is kept without bound ---------------------------------------------

HEAVY = """
gate = asyncio.Event()
made = [0]

@app.get("/")
def hello():
    return "Hello"

@app.get("/busy")
def busy():
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass
    return "busy"

@app.get("/slow")
async def slow():
    await gate.wait()
    return "slow"

@app.get("/open")
async def open_gate():
    gate.set()

@app.get("/large/{size:int}")
def large(size):
    made[0] += 1
    return b"x" * size

@app.get("/made")
def how_many():
    return made[0]
"""


@contextmanager
def flood(server: Server, path: str) -> Iterator[Peer]:
    """A connection that always has a request more on its way, and reads what it gets."""
    is_over = threading.Event()
    with server.connect() as peer:

        def ask() -> None:
            # Cut anywhere: what is sent goes on where the last piece ended.
            block = request(path) * 500
            sent = 0
            peer.socket.settimeout(0.05)
            while not is_over.is_set():
                try:
                    sent += peer.socket.send(block[sent % len(block) :])
                except TimeoutError:
                    continue

        def drain() -> None:
            while not is_over.is_set():
                try:
                    if not peer.socket.recv(1 << 20):
                        return
                except TimeoutError:
                    continue

        threads = [threading.Thread(target=work) for work in (ask, drain)]
        for thread in threads:
            thread.start()
        try:
            yield peer
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
            peer.reset()


def test_one_flooding_connection_does_not_starve_the_others(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log", env=PLAIN)
    with flood(server, "/busy"):
        wait_for(lambda: processor_share(server) > 0.05, "the flood to arrive")
        for _ in range(3):
            with server.connect() as peer:
                peer.socket.settimeout(STARVED_S)
                assert text(peer, "/") == "Hello"


def test_large_answers_behind_a_slow_one_stop_reading(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log", env=PLAIN)
    server.get("/")
    before_kb = pss_kb(server)
    peers = [server.connect() for _ in range(2)]
    for peer in peers:
        peer.send(request("/slow") + request("/large/4000000") * 127)
    made = stands_still(server, "/made")
    assert pss_kb(server) - before_kb < PARKED_KB_MAX
    assert 1 <= made < 127
    server.get("/open")
    for peer in peers:
        assert peer.reply().body == b"slow"
        for _ in range(5):
            assert len(peer.reply().body) == 4_000_000
        peer.reset()


def test_a_half_closed_pipeline_gets_all_its_answers(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log")
    for path, count, size in (
        ("/", 400, 5),
        ("/large/1000000", 5, 10**6),
        ("/large/1000000", 40, 10**6),
    ):
        with server.connect() as peer:
            peer.send(request(path) * count)
            peer.socket.shutdown(socket.SHUT_WR)
            assert [len(peer.reply().body) for _ in range(count)] == [size] * count
            assert peer.is_closed()


# --- Streams without a reader, and the end of the process -----------------------------------------

ENDLESS = """
made = [0]

def endless():
    while True:
        made[0] += 1
        yield b"x" * 1000

async def endless_async():
    while True:
        made[0] += 1
        yield b"x" * 1000

app.get("/def")(lambda: endless())
app.get("/async")(endless_async)
app.get("/blocking", blocking=True)(lambda: endless())
app.get("/204/def")(lambda: Response(endless(), status_code=204))
app.get("/204/async")(lambda: Response(endless_async(), status_code=204))

@app.get("/304/async")
async def not_modified():
    return Response(endless_async(), status_code=304)

app.get("/204/blocking", blocking=True)(lambda: Response(endless(), status_code=204))

@app.get("/made")
def how_many():
    return made[0]
"""
BODILESS = [
    ("HEAD", "/def", 200), ("HEAD", "/async", 200), ("HEAD", "/blocking", 200),
    ("GET", "/204/def", 204), ("GET", "/204/async", 204), ("GET", "/204/blocking", 204),
    ("GET", "/304/async", 304),
]  # fmt: skip


def test_an_answer_without_a_body_runs_no_iterator(serve) -> None:
    server: Server = serve(ENDLESS)
    with server.connect() as peer:
        for method, path, status in BODILESS:
            reply = peer.request(method, path)
            assert reply.status == status, f"{method} {path}: {reply}"
            assert text(peer, "/made") == "0", f"{method} {path} made a body that nobody sees"
    assert processor_share(server) < SPIN_SHARE_MAX


CUT = """
def pieces():
    try:
        while True:
            yield b"x" * 1000
    finally:
        print("in finally", file=sys.stderr, flush=True)
        time.sleep(0.3)
        sum(range(10))

app.get("/")(lambda: pieces())
"""


def test_a_second_quit_during_a_cut_ends_the_process(serve) -> None:
    server: Server = serve(CUT, "--loop", "none")
    with server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(request("/"))
        peer.read_until(b"\r\n\r\n")
        server.signal(signal.SIGQUIT)
        server.wait_for_log("in finally")
        server.signal(signal.SIGQUIT)
        server.wait()


# --- What handlers keep, raise and return ---------------------------------------------------------

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
