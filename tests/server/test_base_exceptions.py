"""Exceptions that are no Exception: they break a response off, and end neither a thread nor the worker."""

from __future__ import annotations

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
