"""Who reads a body when its request is over learns that no more comes, and does not wait for ever."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rig import Server, application, wait_for

Serve = Callable[..., Server]


@pytest.mark.parametrize(("path", "status"), [("/late", 503), ("/early", 200)])
@pytest.mark.parametrize("how", ["stays", "leaves"])
def test_a_reader_of_a_request_that_is_over(serve: Serve, path: str, status: int, how: str) -> None:
    server = serve(application("late_readers_app"))
    with server.connect() as peer:
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
        peer.send(head.encode() + b"x" * 100)
        assert peer.reply().status == status
        if how == "leaves":
            peer.close()
        wait_for(
            lambda: json.loads(server.get("/ends").body) == ["ClientDisconnected after 100"],
            "the end of the reader",
        )


def test_a_reader_of_a_whole_body(serve: Serve) -> None:
    server = serve(application("late_readers_app"))
    with server.connect() as peer:
        assert peer.request("POST", "/early", b"x" * 100).status == 200
    wait_for(
        lambda: json.loads(server.get("/ends").body) == ["all of 100"], "the end of the reader"
    )
