"""Nothing an application returns or raises ends a worker: it is logged, and answered with 500 or close."""

from __future__ import annotations

import pytest
from rig import Server, application

APP = application("failures_app")

WHOLE = [
    "bad-status-0", "bad-status-99", "bad-status-1000", "bad-status-102", "crlf-value", "crlf-name",
    "nul-value", "crlf-type", "two-lengths", "unencodable", "unencodable-inside", "lone-surrogate",
    "exception", "base-exception", "async-exception", "async-base-exception", "recursion",
    "blocking-exception", "blocking-unencodable", "system-exit", "keyboard-interrupt",
]  # fmt: skip
STREAMED = [
    "stream-exception", "stream-wrong-type", "async-stream-exception", "blocking-stream-exception",
]  # fmt: skip


def test_all_of_them_and_the_worker_lives(serve) -> None:
    server: Server = serve(APP)
    for path in WHOLE:
        server_says_so(server, path)
    for path in STREAMED:
        breaks_off(server, path)
    assert server.get("/").body == b"Hello"
    assert server.process.poll() is None


def server_says_so(server: Server, path: str) -> None:
    with server.connect() as peer:
        reply = peer.request("GET", f"/{path}")
        assert reply.status == 500, f"{path}: {reply}"
        assert reply.raw_head.count(b"\r\n\r\n") == 1
        assert b"c: d" not in reply.raw_head
    server.wait_for_log(rf"ERROR .*/{path}\b")


def breaks_off(server: Server, path: str) -> None:
    with server.connect() as peer:
        peer.send(f"GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        rest = peer.read_to_end()
        assert rest.startswith(b"HTTP/1.1 200 OK"), path
        assert b"5\r\nbegun\r\n" in rest, path
        assert not rest.endswith(b"0\r\n\r\n"), f"{path}: half an answer looks whole"
    server.wait_for_log(
        rf"GET /{path}: its streamed response broke off \[route /{path}, handler \w+ \(.*_app\.py:\d+\)\]"
    )


@pytest.mark.parametrize("path", WHOLE[:3])
def test_the_connection_is_usable_after_a_500(serve, path: str) -> None:
    server: Server = serve(APP)
    with server.connect() as peer:
        assert peer.request("GET", f"/{path}").status == 500
        assert peer.request("GET", "/").body == b"Hello"


NOTHING = application("error_handlers_app")
PROBLEM = b'{"title":"Internal Server Error","status":500}'


@pytest.mark.parametrize("env", [{}, {"MIDDLEWARE": "1"}], ids=["bare", "middleware"])
def test_an_error_handler_that_returns_nothing_has_failed(serve, env: dict[str, str]) -> None:
    server = serve(NOTHING, env=env)
    for path in ("/def", "/async", "/late", "/async-handler", "/blocking"):
        reply = server.get(path)
        assert (reply.status, reply.body) == (500, PROBLEM), path
        name = "later" if path in ("/late", "/async-handler") else "quiet"
        server.wait_for_log(rf"GET {path} failed[^\n]*\[route {path}")
        server.wait_for_log(
            rf"TypeError: the error handler {name} \([^)]*error_handlers_app\.py:\d+\) returned"
        )
        server.err = ""


def test_so_has_a_last_resort(serve) -> None:
    server = serve(NOTHING, env={"LAST_RESORT": "1"})
    reply = server.get("/last")
    assert (reply.status, reply.body) == (500, PROBLEM)
    server.wait_for_log(r"GET /last failed in its error handler")
    server.wait_for_log(r"TypeError: the error handler last \(")
