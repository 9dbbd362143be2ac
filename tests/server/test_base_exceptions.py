"""Exceptions that are no Exception: they break a response off, and end neither a thread nor the worker."""

from __future__ import annotations

import json

import pytest
from rig import Server, application

BREAKS = application("base_exceptions_app")


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


HANDSHAKE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def of_tool(tool: str, name: str) -> str:
    body = json.dumps(
        {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {"name": name}},
        }
    )  # fmt: skip
    return (
        "POST /mcp HTTP/1.1\r\nHost: a\r\nConnection: close\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )


def of_path(path: str, fields: str = "Connection: close\r\n") -> str:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"


@pytest.mark.parametrize("name", ["exit", "interrupt"])
@pytest.mark.parametrize("kind", ["events", "cached", "tool", "blocking_tool", "asgi"])
def test_tasks_of_handlers_end_no_event_loop(serve, kind: str, name: str) -> None:
    server: Server = serve(BREAKS)
    request = of_tool(kind, name) if kind.endswith("tool") else of_path(f"/{kind}/{name}")
    if kind == "asgi":
        request = of_path(f"/asgi/{name}", HANDSHAKE)
    with server.connect() as peer:
        peer.send(request.encode())
        peer.read_to_end()
    server.wait_for_log("(SystemExit|KeyboardInterrupt)")
    assert server.get("/thread").body == b"citius-blocking-0"
