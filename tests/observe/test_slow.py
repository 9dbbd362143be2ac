"""`--slow-handler-ms`: a handler that keeps the event loop's thread is named in the log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from rig import application

if TYPE_CHECKING:
    from rig import Server

KEPT = r"kept the event loop's thread for \d+ ms"

NATIVE = application("slow_handlers_app")

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan": return
    time.sleep(0.05)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"slow"})
"""

WSGI = """
def app(environ, start_response):
    time.sleep(0.05)
    start_response("200 OK", [("Content-Length", "4")])
    return [b"slow"]
"""


def slow_lines(server: Server) -> list[str]:
    return [line for line in server.err.splitlines() if re.search(KEPT, line)]


def ended(server: Server) -> list[str]:
    """The lines of a server that has come to its end, so that none is still on its way."""
    server.process.terminate()
    assert server.wait() == 0
    return slow_lines(server)


@pytest.mark.parametrize(
    ("path", "handler"),
    [("/slow/3", "slow"), ("/first-step", "first_step"), ("/later-step", "later_step")],
)
def test_a_slow_handler_is_named(serve, path: str, handler: str) -> None:
    server = serve(NATIVE, "--slow-handler-ms", "30")
    assert server.get(path).status == 200
    (line,) = ended(server)
    assert f"GET {path} kept the event loop's thread for" in line
    assert re.search(rf"\[.*{handler} \(.*slow_handlers_app\.py:\d+\)", line), line


def test_a_slow_handler_of_a_request_with_content_is_named(serve) -> None:
    server = serve(NATIVE, "--slow-handler-ms", "30")
    with server.connect() as peer:
        assert peer.request("POST", "/body", b"content").status == 200
    (line,) = ended(server)
    assert "POST /body kept" in line


@pytest.mark.parametrize(("source", "interface"), [(ASGI, "asgi"), (WSGI, "wsgi")])
def test_applications_are_named_by_their_request(serve, source: str, interface: str) -> None:
    server = serve(source, "--interface", interface, "--slow-handler-ms", "30")
    assert server.get("/items?x=1").body == b"slow"
    (line,) = ended(server)
    assert "GET /items?x=1 kept the event loop's thread for" in line


@pytest.mark.epoll("the times of other systems' threads are not known")
@pytest.mark.parametrize(
    ("path", "is_busy"),
    [("/busy/first", True), ("/busy/step", True), ("/slowest", False), ("/later-step", False)],
)
def test_time_on_a_processor_is_told_apart(serve, path: str, is_busy: bool) -> None:
    """Scale, last paragraph: on a crowded core a handler keeps the thread without having used it."""
    server = serve(NATIVE, "--slow-handler-ms", "30")
    assert server.get(path).status == 200
    (line,) = ended(server)
    found = re.search(
        r"kept the event loop's thread for (\d+) ms \((\d+) ms on a processor\), w", line
    )
    assert found, line
    took_ms, cpu_ms = map(int, found.groups())
    assert cpu_ms <= took_ms
    assert cpu_ms >= 90 if is_busy else cpu_ms < 40


def test_one_line_a_minute(serve) -> None:
    server = serve(NATIVE, "--slow-handler-ms", "30")
    for n in range(4):
        assert server.get(f"/slow/{n}").status == 200
    assert len(ended(server)) == 1


def test_of_connections_accepted_together_the_slow_one_is_named(serve) -> None:
    source = """
@app.get("/holds")
def holds():
    time.sleep(0.2)
    return "held"
@app.get("/slow/{n:int}")
def slow(n: int):
    time.sleep(0.7)
    return "slow"
"""
    server = serve(source, "--slow-handler-ms", "500")
    with server.connect() as first:
        first.send(b"GET /holds HTTP/1.1\r\nhost: test\r\n\r\n")
        # While the thread is held, these wait to be accepted.
        with server.connect() as second, server.connect() as third:
            for n, peer in enumerate((second, third)):
                peer.send(b"GET /slow/%d HTTP/1.1\r\nhost: test\r\n\r\n" % n)
            for peer in (first, second, third):
                assert peer.reply().status == 200
    (line,) = ended(server)
    assert "/slow/" in line


def test_what_waits_keeps_no_thread(serve) -> None:
    # They wait for longer than the limit, and that is longer than a thread waits for a busy processor.
    server = serve(NATIVE, "--slow-handler-ms", "1000")
    for path in ("/waits?for_s=1.2", "/thread?for_s=1.2", "/quick"):
        assert server.get(path).status == 200
    assert ended(server) == []


def test_zero_never_tells(serve) -> None:
    server = serve(NATIVE, "--slow-handler-ms", "0")
    assert server.get("/slow/1").status == 200
    assert ended(server) == []


def test_many_handlers_of_one_read_are_not_taken_for_a_slow_one(serve) -> None:
    server = serve(NATIVE, "--slow-handler-ms", "100")
    request = b"GET /short HTTP/1.1\r\nhost: test\r\n\r\n"
    with server.connect() as peer:
        for _ in range(2):
            peer.send(request * 20)
            for _ in range(20):
                assert peer.reply().body == b"short"
        assert slow_lines(server) == []
        # From now on each is timed: one that is slow is told from those beside it.
        peer.send(request * 3 + b"GET /slowest HTTP/1.1\r\nhost: test\r\n\r\n" + request * 3)
        for _ in range(7):
            assert peer.reply().status == 200
    (line,) = ended(server)
    assert "GET /slowest kept" in line
