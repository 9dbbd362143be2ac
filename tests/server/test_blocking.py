"""Handlers with blocking=True: threads, a bounded queue, and a server that goes on meanwhile."""

from __future__ import annotations

import json
import threading

import pytest
from rig import Server, application, wait_for

APP = application("blocking_app")

# Behind a middleware there is a request object, and another way to a thread.
MIDDLEWARE = {"MIDDLEWARE": "1"}


def test_a_full_pool_is_503_and_recovers(serve) -> None:
    server: Server = serve(APP, "--blocking-threads", "2", "--blocking-queue-max", "1")
    replies: list[int] = []
    threads = [
        threading.Thread(target=lambda: replies.append(server.get("/wait").status))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(json.loads(server.get("/running").body)) == 2, "both threads to be busy")
    with server.connect() as peer:
        # In one piece, so both are taken before the gate opens: one waits, one is too many.
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /quick/x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert server.get("/running").status == 200  # the loop's own handlers do not wait
        server.get("/open")
        assert peer.reply().status == 200
        refused = peer.reply()
    assert refused.status == 503
    assert "retry-after" in refused.headers
    for thread in threads:
        thread.join(10)
    assert replies == [200, 200]
    found = json.loads(server.get("/quick/y").body)
    assert found["name"] == "y"
    assert found["thread"].startswith("citius-blocking-")


@pytest.mark.epoll("an end is heard in the turn in which it comes")
@pytest.mark.parametrize("env", [{}, MIDDLEWARE], ids=["plain", "middleware"])
def test_who_leaves_while_queued_is_not_worked_for(serve, env: dict[str, str]) -> None:
    server: Server = serve(APP, "--blocking-threads", "1", "--blocking-queue-max", "4", env=env)
    # What is asked on a connection that is there already is heard in its turn; new ones may go before.
    with server.connect() as busy, server.connect() as other:
        assert other.request("GET", "/running").status == 200
        busy.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(
            lambda: len(json.loads(other.request("GET", "/running").body)) == 1, "a busy thread"
        )
        for _ in range(3):
            with server.connect() as gone:
                gone.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
                assert other.request("GET", "/running").status == 200  # it has been taken by now
            assert other.request("GET", "/running").status == 200  # and its end, too
        other.request("GET", "/open")
        assert busy.reply().body == b"done"
        assert other.request("GET", "/quick/x").status == 200  # it has waited behind the others
        assert len(json.loads(other.request("GET", "/running").body)) == 1


def test_context_variables_go_along_and_stay_with_their_request(serve) -> None:
    server: Server = serve(APP, "--blocking-threads", "2", env=MIDDLEWARE)
    for name in ("ann", "bob"):
        assert server.get("/who", who=name).body == name.encode()
        assert server.get("/who/pieces", who=name).body == f"{name} {name}".encode()
    assert server.get("/who").body == b"nobody"
