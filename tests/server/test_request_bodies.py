"""Bodies that come in pieces: read twice, given away once, cut off while they are waited for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rig import Server, application, wait_for

BODIES = application("request_bodies_app")

HEAD = "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n"


@pytest.fixture
def bodies(serve) -> Server:
    return serve(BODIES)


def post(server: Server, path: str, body: bytes) -> Any:
    with server.connect() as peer:
        reply = peer.request("POST", path, body)
    assert reply.status == 200, reply
    return json.loads(reply.body)


def test_a_body_that_was_read_can_be_had_again(bodies: Server) -> None:
    assert post(bodies, "/again", b"x" * 300_000) == [True, 300_000]
    assert post(bodies, "/again", b"") == [True, 0]
    assert post(bodies, "/json", b"[1]") == [[1], [1]]


def test_a_whole_body_can_be_had_in_every_way_and_as_often_as_wanted(bodies: Server) -> None:
    assert post(bodies, "/plain", b"x" * 300_000) == [[300_000]] * 2 + [300_000] * 2 + [[300_000]]


@pytest.mark.parametrize(
    ("path", "lengths"),
    [("/cut-off", [10, 10]), ("/cut-off-stream", [10]), ("/impatient", [10])],
)
def test_a_wait_that_is_cut_off_loses_nothing(
    bodies: Server, path: str, lengths: list[int]
) -> None:
    with bodies.connect() as peer:
        peer.send(HEAD.format(path, 10).encode() + b"xxxx")
        wait_for(lambda: "timeout" in bodies.out, "the wait to be cut off")
        peer.send(b"xxxxxx")
        assert json.loads(peer.reply().body) == lengths


@pytest.mark.parametrize(
    ("path", "refusals"), [("/twice", 3), ("/partly", 2), ("/twice-blocking", 1)]
)
def test_a_stream_is_given_away_once(bodies: Server, path: str, refusals: int) -> None:
    total, *said = post(bodies, path, b"x" * 300_000)
    assert total == 300_000
    assert len(said) == refusals
    for text in said:
        assert text.startswith("the body of this request has been taken")


def test_a_second_reader_is_refused_while_the_first_waits(bodies: Server) -> None:
    with bodies.connect() as peer:
        peer.send(HEAD.format("/both", 10).encode() + b"xxxx")
        wait_for(lambda: "refused" in bodies.out, "the second reader to be refused")
        peer.send(b"xxxxxx")
        length, *said = json.loads(peer.reply().body)
    assert length == 10
    assert said == ["the body of this request is being read by another call"] * 2


def test_an_empty_body_is_empty_every_time(bodies: Server) -> None:
    with bodies.connect() as peer:
        peer.send(b"POST /empty HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert json.loads(peer.reply().body) == [[], []]


def test_nothing_is_kept_of_a_request_that_is_over(bodies: Server) -> None:
    for path in ("/again", "/twice", "/partly"):
        post(bodies, path, b"x" * 100_000)
    wait_for(lambda: bodies.get("/kept").body == b"0", "the requests to go")
