"""ASGI applications over HTTP/2."""

from __future__ import annotations

import json

import pytest
from h2peer import DATA, END_STREAM, StreamResponse, connect, frame
from rig import Server, application, wait_for

APP = application("http2_asgi_app")


@pytest.fixture
def server(serve) -> Server:
    return serve(APP, "--lifespan", "off")


def events(server: Server) -> list[object]:
    return json.loads(server.get("/events").body)


def test_the_scope(server: Server) -> None:
    with connect(server) as peer:
        scope = json.loads(peer.get(1, "/scope?a=b", [("x-a", "1"), ("cookie", "a=b")]).body)
        assert scope == {
            "type": "http", "http_version": "2", "scheme": "http", "path": "/scope", "method": "GET",
            "query": "a=b", "headers": [["host", "test"], ["x-a", "1"], ["cookie", "a=b"]],
            "client": "127.0.0.1",
        }  # fmt: skip


def test_bodies_go_both_ways_at_once(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", end=False))
        for piece in (b"one", b"two"):
            peer.send(frame(DATA, 0, 1, piece))
            while not peer.answers.get(1, StreamResponse()).body.endswith(piece):
                peer.step()
        peer.send(frame(DATA, END_STREAM, 1, b""))
        assert peer.answer(1).body == b"onetwo"


def test_a_reset_is_a_disconnect(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "GET", "/wait") + peer.head(3, "GET", "/wait"))
        wait_for(lambda: events(server).count("began") == 2, "both")
        peer.reset(1)
        wait_for(lambda: events(server).count("http.disconnect") == 1, "the first")
        peer.ping()
        assert events(server).count("http.disconnect") == 1
    wait_for(lambda: events(server).count("http.disconnect") == 2, "the second")


def test_a_slow_reader_holds_its_sender(server: Server) -> None:
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/endless"))
        wait_for(lambda: events(server), "the first pieces")
        seen: list[object] = []

        def stands_still() -> bool:
            before, seen[:] = seen[:], events(server)
            return before == seen

        wait_for(stands_still, "the sender to be held")
        assert isinstance(seen[0], int)
        assert seen[0] < 400_000
        peer.open_window(0, 100_000)
        peer.open_window(1, 100_000)
        wait_for(lambda: events(server) > seen, "it to go on")
        peer.reset(1)
        wait_for(lambda: events(server)[-1] == "gone", "the error")


def test_early_hints_and_trailers(server: Server) -> None:
    with connect(server) as peer:
        answer = peer.get(1, "/hints")
        assert answer.informational == [(103, {"link": "</a.css>; rel=preload"})]
        assert answer.body == b"hinted"
        answer = peer.get(3, "/trailers", [("te", "trailers")])
        assert (bytes(answer.body), answer.trailers) == (b"body", {"x-sum": "4"})
