"""What a worker holds: alone, and with ten thousand connections that say nothing."""

from __future__ import annotations

import re
import resource
import socket
from pathlib import Path

import pytest
from citius.process.processors import has_gil
from rig import PLAIN, Server
from wspeer import TEXT, RawSocket, deflated, frame

APP = """
@app.get("/")
def hello():
    return "Hello"
"""
ASGI = """
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"Hello"})
"""
WSGI = """
def app(environ, start_response):
    start_response("200 OK", [])
    return [b"Hello"]
"""
INTERFACES = {
    "native": (APP, ()),
    "asgi": (ASGI, ("--interface", "asgi", "--lifespan", "off")),
    "wsgi": (WSGI, ("--interface", "wsgi")),
    "threads": (WSGI, ("--interface", "wsgi", "--threads", "4")),
    "gevent": (WSGI, ("--interface", "wsgi", "--loop", "gevent")),
}
SOCKETS = {
    "native": (
        """
@app.websocket("/")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
""",
        (),
    ),
    "asgi": (
        """
async def app(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
""",
        ("--lifespan", "off"),
    ),
}
# Without a GIL an object is larger and an interpreter has another allocator.
WORKER_KB_MAX = (25 if has_gil() else 40) * 1024
IDLE_KB_MAX = 40 * 1024
SOCKETS_KB_MAX = {"plain": 80 * 1024, "deflate": 160 * 1024}
CONNECTIONS = 10_000


def pss_kb(server: Server) -> int:
    """Proportional set size of the process."""
    text = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.M)
    assert found is not None
    return int(found[1])


def allow_descriptors(server: Server) -> None:
    """As many as the connections need, here and there."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < CONNECTIONS + 100:
        pytest.skip(f"only {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture
def server(serve) -> Server:
    # Development mode is for the other tests: it imports and keeps more.
    return serve(APP, "--no-access-log", env=PLAIN)


def test_a_worker(server: Server) -> None:
    server.get("/")
    assert pss_kb(server) <= WORKER_KB_MAX


@pytest.mark.parametrize(
    ("returned", "has_encoder"),
    [("", False), (" -> str", False), (" -> dict[str, int]", True), (" -> list[str] | None", True)],
)
def test_the_encoder_is_there_before_a_request_needs_it(
    serve, returned: str, has_encoder: bool
) -> None:
    source = (
        f"@app.get('/none')\ndef none(){returned}: return None\n"
        "@app.get('/')\ndef has(): return str('msgspec' in sys.modules)\n"
    )
    assert serve(source, env=PLAIN).get("/").body == str(has_encoder).encode()


# The first is read without click, the second has an alias that only click knows.
@pytest.mark.parametrize("arguments", [[], ["--timeout-keep-alive", "5"]])
def test_the_parser_of_the_command_line_is_gone(serve, arguments: list[str]) -> None:
    """Review (list): no function, class or module of it is left in a worker."""
    source = (
        "import gc\n"
        "@app.get('/')\n"
        "def left() -> list[str]:\n"
        "    names = (getattr(one, '__module__', None) for one in gc.get_objects() if callable(one))\n"
        "    gone = ('click', 'citius.cli', 'citius.settings.compat')\n"
        "    return [name for name in names if isinstance(name, str) and name.startswith(gone)]\n"
    )
    assert serve(source, *arguments, env=PLAIN).get("/").body == b"[]"


@pytest.mark.parametrize("arguments", [[], ["--timeout-keep-alive", "5"]])
def test_an_application_may_import_what_was_forgotten(serve, arguments: list[str]) -> None:
    # The command line, and what it is made with.
    source = (
        "import click, citius.cli\n"
        + APP
        + "@app.get('/same')\ndef same(): return citius.cli.click is click\n"
    )
    server = serve(source.replace("Hello", "again"), *arguments, env=PLAIN)
    assert server.get("/same").body == b"true"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("interface", INTERFACES)
def test_idle_connections(serve, interface: str) -> None:
    source, options = INTERFACES[interface]
    server = serve(source, "--no-access-log", *options, env=PLAIN)
    allow_descriptors(server)
    before = pss_kb(server)
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(CONNECTIONS)]
    try:
        # No more at once than may wait for a thread.
        for first in range(0, CONNECTIONS, 500):
            some = connections[first : first + 500]
            for connection in some:
                connection.sendall(request)
            for connection in some:
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert pss_kb(server) - before <= IDLE_KB_MAX
        assert server.get("/").status == 200
    finally:
        for connection in connections:
            connection.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", SOCKETS_KB_MAX)
@pytest.mark.parametrize("interface", SOCKETS)
def test_idle_websockets(serve, interface: str, kind: str) -> None:
    """Each has echoed a message of 600 bytes, compressed where that is agreed on."""
    source, options = SOCKETS[interface]
    server = serve(source, "--no-access-log", *options, env=PLAIN)
    allow_descriptors(server)
    before = pss_kb(server)
    sockets: list[RawSocket] = []
    offer = {"sec_websocket_extensions": "permessage-deflate" if kind == "deflate" else ""}
    text = b"hello " * 100
    sent = frame(TEXT, deflated(text), rsv=4) if kind == "deflate" else frame(TEXT, text)
    try:
        for _ in range(CONNECTIONS):
            sockets.append(RawSocket(server, **offer).accepted())
            sockets[-1].send(sent)
        for client in sockets:
            got = client.frame()
            assert got.is_compressed == (kind == "deflate")
        used = pss_kb(server) - before
        print(f"{interface}, {kind}: {used * 1024 / CONNECTIONS:.0f} bytes each")
        assert used <= SOCKETS_KB_MAX[kind]
    finally:
        for client in sockets:
            client.peer.close()
