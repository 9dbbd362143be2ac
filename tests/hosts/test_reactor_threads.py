"""``--reactor-threads``: several reactors in one process, with a GIL or without."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
from citius.rpc import Client
from citius.serving.reactor_threads import has_gil
from pki import Pki, connect
from rig import Peer, Server, wait_for
from rpc_rig import rpc_address
from wspeer import RawSocket

APP = """
tenant = contextvars.ContextVar("tenant", default="nobody")
hooks, running = [], set()

@app.on_startup
async def begin():
    hooks.append(threading.current_thread().name)
    tenant.set("from the start")

@app.on_shutdown
async def end():
    print("hooks", hooks, "after", len(running), file=sys.stderr, flush=True)

@app.get("/thread")
def which():
    return threading.current_thread().name

@app.get("/tenant")
async def whose():
    before = tenant.get()
    tenant.set("changed")
    await asyncio.sleep(0)
    return before

@app.get("/sleep/{ms:int}")
async def sleep(ms: int):
    running.add(loop := asyncio.get_running_loop())
    print("sleeps", file=sys.stderr, flush=True)
    await asyncio.sleep(ms / 1000)
    assert asyncio.get_running_loop() is loop
    return threading.current_thread().name

@app.get("/block", blocking=True)
def block():
    time.sleep(0.05)
    return threading.current_thread().name

@app.get("/pieces")
async def pieces():
    for n in range(50):
        await asyncio.sleep(0)
        yield b"x" * 1000

@app.rpc
async def add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b

room = app.room("all")

@app.websocket("/room")
async def chat(ws):
    room.join(ws)
    async for message in ws:
        room.send(f"{threading.current_thread().name}: {message}")
"""
THREADS = ("--reactor-threads", "3", "--no-access-log")


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(APP, *THREADS, "--loop", "asyncio")


def by_thread(server: Server, stack: ExitStack) -> dict[str, Peer]:
    """A connection to each of the three."""
    found: dict[str, Peer] = {}

    def one_more() -> bool:
        peer = stack.enter_context(server.connect())
        found.setdefault(peer.request("GET", "/thread").body.decode(), peer)
        return len(found) == 3

    wait_for(one_more, "a connection to each reactor")
    return found


def test_each_serves_and_connections_stay(server: Server) -> None:
    # The server runs under the interpreter of the tests.
    assert server.err.count("take turns on this interpreter") == has_gil()
    with ExitStack() as stack:
        found = by_thread(server, stack)
        assert set(found) == {"MainThread", "citius-reactor-1", "citius-reactor-2"}
        for name, peer in found.items():
            assert peer.request("GET", "/thread").body.decode() == name
            assert peer.request("GET", "/sleep/10").body.decode() == name
            assert peer.request("GET", "/block").body.startswith(b"citius-blocking-")
            assert len(peer.request("GET", "/pieces").body) == 50_000
            for _ in range(2):
                assert peer.request("GET", "/tenant").body == b"from the start"
            assert peer.request("GET", "/nowhere").status == 404


def test_many_at_once(server: Server) -> None:
    wrong: list[object] = []

    def ask() -> None:
        with server.connect() as peer:
            for _ in range(60):
                peer.send(b"GET /tenant HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
                replies = [peer.reply() for _ in range(5)]
                wrong.extend(one for one in replies if one.body != b"from the start")

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert "Traceback" not in server.err


def test_a_stop_drains_all_of_them(server: Server) -> None:
    with ExitStack() as stack:
        found = by_thread(server, stack)
        for peer in found.values():
            peer.send(b"GET /sleep/700 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.err.count("sleeps") == 3, "the handlers")
        server.signal(signal.SIGTERM)
        for name, peer in found.items():
            reply = peer.reply()
            assert (reply.body.decode(), reply.headers["connection"]) == (name, "close")
    assert server.wait() == 0
    assert "hooks ['MainThread'] after 3" in server.err


def test_who_does_not_end_is_cut(serve: Callable[..., Server]) -> None:
    server = serve(APP, *THREADS, "--drain-s", "0.3", "--loop", "asyncio")
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            peer.send(b"GET /sleep/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.err.count("sleeps") == 3, "the handlers")
        begun = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - begun < 8
    assert "3 open requests were cut off" in server.err


def test_rooms_reach_all_of_them(server: Server) -> None:
    sockets: list[RawSocket] = []
    names: set[str] = set()

    def one_more() -> bool:
        sockets.append(RawSocket(server, "/room").accepted())
        sockets[-1].text("hello")
        names.add(str(sockets[-1].message()).partition(":")[0])
        return len(names) == 3

    wait_for(one_more, "a socket at each reactor")
    sockets[0].text("bye")
    for socket in sockets:
        wait_for(lambda socket=socket: str(socket.message()).endswith(": bye"), "the last message")


def test_all_of_them_speak_tls(serve: Callable[..., Server], tmp_path: Path) -> None:
    pki = Pki(trustme.CA(), tmp_path)
    certificate, key = pki.issue("localhost", "127.0.0.1")
    server = serve(APP, *THREADS, "--ssl-certfile", certificate, "--ssl-keyfile", key)
    names: set[bytes] = set()

    def one_more() -> bool:
        with connect(server, pki.client()) as peer:
            names.add(peer.request("GET", "/thread").body)
        return len(names) == 3

    wait_for(one_more, "an answer of each reactor")


def test_calls_logs_and_workers(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(
        APP, "--reactor-threads", "2", "--workers", "2", "--rpc", f"unix:{tmp_path}/rpc",
        "--access-log-format", "json",
    )  # fmt: skip
    clients = [Client(rpc_address(server), timeout_s=20) for _ in range(8)]
    for client in clients:
        assert list(client.map("add", [(n, 1) for n in range(100)])) == list(range(1, 101))
        client.close()
    for _ in range(20):
        assert server.get("/thread").status == 200
    server.signal(signal.SIGHUP)
    wait_for(lambda: "all workers are new" in server.err, "new workers")
    assert server.get("/thread").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    lines = [json.loads(line) for line in server.out.splitlines() if line.startswith("{")]
    assert sum(line.get("path", line.get("target")) == "/thread" for line in lines) == 21


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loop", "gevent"], "needs an asyncio loop in each thread"),
        (["--loop", "none"], "needs an asyncio loop in each thread"),
        (["--management", "127.0.0.1:0"], "management works with one reactor"),
    ],
)
def test_what_knows_one_reactor_is_refused(
    serve: Callable[..., Server], options: list[str], message: str
) -> None:
    server = serve("", "--reactor-threads", "2", *options, ready=False)
    assert server.wait() == 2
    assert message in server.err


def test_a_wsgi_application_has_no_loop(serve: Callable[..., Server]) -> None:
    source = "def app(environ, start_response): return []"
    server = serve(source, "--reactor-threads", "2", ready=False)
    assert server.wait() == 3
    assert "a WSGI application has none" in server.err
