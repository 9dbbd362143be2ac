"""Starlette beyond the course: state, sessions, middleware, files, background tasks, disconnects."""

from __future__ import annotations

import json

import pytest
from asking import HOST, Client, ask
from rig import wait_for
from servers import Pair, Running, connect

pytestmark = pytest.mark.parametrize(
    "pair", [pytest.param(("asgi", "starlette_app:app", (), {}), id="starlette")], indirect=True
)


def test_state_of_the_lifespan(pair: Pair) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/state")).body == b'"yes"'


def test_sessions(pair: Pair) -> None:
    def count(server: Running) -> list[int]:
        with Client(server) as client:
            return [client.get("/count").json() for _ in range(3)]

    assert pair.same(count) == [1, 2, 3]


def test_work_after_the_answer(pair: Pair) -> None:
    def work(server: Running) -> list[str]:
        with Client(server) as client:
            assert client.get("/background").json() == []
            wait_for(lambda: client.get("/background").json(), "the work to be done")
            return client.get("/background").json()[:1]

    assert pair.same(work) == ["background"]


def test_compressed_by_middleware(pair: Pair) -> None:
    headers = {"accept-encoding": "gzip"}
    for path in ("/zipped/hello", "/zipped/stream"):
        answer = pair.same(lambda server, path=path: ask(server, "GET", path, headers=headers))
        assert answer["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    "headers",
    [{}, {"range": "bytes=0-9"}, {"range": "bytes=-5,0-3"}, {"range": "bytes=999999-"}],
    ids=["whole", "range", "ranges", "beyond"],
)
def test_static_files(pair: Pair, headers: dict[str, str]) -> None:
    answer = pair.same(lambda server: ask(server, "GET", "/static/course.bin", headers=headers))
    assert answer.status in (200, 206, 416)
    etag = {"if-none-match": ask(pair.ours, "HEAD", "/static/course.bin")["etag"]}
    again = pair.same(lambda server: ask(server, "GET", "/static/course.bin", headers=etag))
    assert again.status == 304


def test_a_handler_learns_that_its_client_has_left(pair: Pair) -> None:
    def leave(server: Running) -> int:
        before = json.loads(ask(server, "GET", "/left").body)
        with connect(server) as peer:
            peer.send(f"GET /until-gone HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        wait_for(lambda: int(ask(server, "GET", "/left").body) > before, "the handler to notice")
        return int(ask(server, "GET", "/left").body) - before

    assert pair.same(leave) == 1
