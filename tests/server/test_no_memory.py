"""An allocation that fails costs the request at hand, and neither a thread nor the worker.

CPython's own test module makes one allocation fail, the n-th from where a handler says so: in the handler,
in the server's code behind it, or in a later request. Wherever memory is missing, each request gets a
response or its connection is closed, and the worker goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import Server

pytest.importorskip("_testcapi")

WSGI = """
import threading
import _testcapi

both = threading.Barrier(2)

def app(environ, start_response):
    _, what, number = environ["PATH_INFO"].split("/")
    _testcapi.remove_mem_hooks()
    if what == "both":
        both.wait(20)
    if what == "first":
        fail(number)
    start_response("200 OK", [("content-type", "text/plain"), ("x-number", number)])
    if what == "stream":
        return blocks(number)
    if what == "last":
        fail(number)
    return [b"hello"]

def blocks(number):
    yield b"hel"
    fail(number)
    yield b"lo"

def fail(number):
    _testcapi.set_nomemory(int(number), int(number) + 1)
"""
ASGI = """
import _testcapi

async def app(scope, receive, send):
    _, what, number = scope["path"].split("/")
    _testcapi.remove_mem_hooks()
    if what == "body":
        while (await receive())["more_body"]:
            pass
    if what != "alive":
        _testcapi.set_nomemory(int(number), int(number) + 1)
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-number", number.encode())]})
    if what == "stream":
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
    await send({"type": "http.response.body", "body": b"lo"})
"""
NATIVE = """
import _testcapi
from citius import App

app = App()

@app.get("/alive/{number:int}")
def alive(number: int):
    _testcapi.remove_mem_hooks()
    return "yes"

@app.get("/def/{number:int}")
def plain(number: int):
    fail(number)
    return {"number": [number]}

@app.get("/async/{number:int}")
async def stepped(number: int):
    fail(number)
    return {"number": [number]}

@app.get("/blocking/{number:int}", blocking=True)
def blocking(number: int):
    fail(number)
    return {"number": [number]}

@app.get("/stream/{number:int}")
def blocks(number: int):
    yield "hel"
    fail(number)
    yield "lo"

def fail(number):
    _testcapi.set_nomemory(number, number + 1)
"""
THREADS = ("--interface", "wsgi", "--threads", "2")
CASES = [
    *((WSGI, THREADS, what) for what in ("first", "last", "stream")),
    *((WSGI, ("--interface", "wsgi"), what) for what in ("first", "last", "stream")),
    *((ASGI, ("--lifespan", "off"), what) for what in ("plain", "body", "stream", "websocket")),
    *((NATIVE, (), what) for what in ("def", "async", "blocking", "stream")),
]
# Without them fewer objects are made that are not the server's.
QUIET = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    servers: list[Server] = []

    def start(source: str, *options: str) -> Server:
        (tmp_path / "main.py").write_text(source)
        servers.append(Server(["main.py", "--port", "0", *options], QUIET, tmp_path).wait_ready())
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def outcome(server: Server, target: str) -> bytes:
    """All that comes of a request on a connection of its own; it ends, or this times out."""
    fields = "host: x\r\nconnection: close\r\n"
    if "websocket" in target:
        fields = (
            "host: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
    with server.connect() as peer:
        try:
            peer.send(f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode())
            return peer.read_to_end()
        except ConnectionResetError:
            return b""


def until_alive(server: Server) -> None:
    """The first requests may still find the allocation that fails."""
    for _ in range(10):
        if outcome(server, "/alive/0").startswith(b"HTTP/1.1 200"):
            return
    raise AssertionError(f"no answer any more:\n{server.err}")


@pytest.mark.parametrize(("source", "options", "what"), CASES)
def test_every_request_ends_and_the_worker_goes_on(
    serve: Any, source: str, options: tuple[str, ...], what: str
) -> None:
    server = serve(source, *options)
    until_alive(server)
    for number in range(40):
        outcome(server, f"/{what}/{number}")
        until_alive(server)
    assert server.process.poll() is None
    if options == THREADS:
        # Each of them waits for the other: both threads are there.
        peers = [server.connect() for _ in range(2)]
        for peer in peers:
            peer.send(b"GET /both/0 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert [peer.reply().status for peer in peers] == [200, 200]


def test_a_thread_that_fails_outside_of_calls_is_started_again(tmp_path: Path) -> None:
    """Once; a worker whose threads fail again and again ends, with a line that says so."""
    source = (
        "import threading\n"
        "from citius.serving.interfaces import wsgi\n"
        "class Failing:\n"
        "    def __init__(self, gateway): self.gateway, self.failed = gateway, 0\n"
        "    def __getattr__(self, name): return getattr(self.gateway, name)\n"
        "    def work(self):\n"
        "        self.failed += 1\n"
        "        if self.failed <= FAILURES: raise MemoryError('none')\n"
        "        return self.gateway.work()\n"
        "before = wsgi.WsgiApp.start\n"
        "async def start(self):\n"
        "    self._gateway = Failing(self._gateway)\n"
        "    await before(self)\n"
        "wsgi.WsgiApp.start = start\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [b'yes']\n"
    )
    arguments = ["main.py:app", "--interface", "wsgi", "--threads", "1", "--port", "0"]
    (tmp_path / "main.py").write_text("FAILURES = 3\n" + source)
    server = Server(arguments, QUIET, tmp_path).wait_ready()
    try:
        assert server.get("/").body == b"yes"
        server.wait_for_log("a thread of --threads failed; it is started again")
    finally:
        server.kill()
    (tmp_path / "main.py").write_text("FAILURES = 1000\n" + source)
    server = Server(arguments, QUIET, tmp_path)
    try:
        assert server.wait() == -6
        assert "a thread of --threads failed again and again; the worker ends" in server.err
    finally:
        server.kill()
