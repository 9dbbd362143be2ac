"""WSGI applications over HTTP/2, called on the reactor's thread, in threads, and in greenlets."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
from h2peer import DATA, END_STREAM, connect, frame
from rig import Server, application, wait_for

APP = application("http2_wsgi_app")

WAYS = {"alone": [], "threads": ["--threads", "2"], "greenlets": ["--loop", "gevent"]}


@pytest.fixture(params=WAYS)
def server(request, serve) -> Server:
    if request.param == "greenlets" and find_spec("gevent") is None:
        pytest.skip("gevent is not installed")
    return serve(APP, *WAYS[request.param])


def test_the_environ(server: Server) -> None:
    with connect(server) as peer:
        seen = json.loads(peer.get(1, "/environ?a=b", [("x-a", "1")]).body)
        assert seen == {
            "SERVER_PROTOCOL": "HTTP/2", "REQUEST_METHOD": "GET", "HTTP_HOST": "test",
            "QUERY_STRING": "a=b", "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http",
            "CONTENT_LENGTH": None, "HTTP_X_A": "1",
        }  # fmt: skip


def test_bodies_and_files(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", end=False) + frame(DATA, 0, 1, b"abc"))
        assert peer.get(3, "/x").body == b"/x"
        peer.send(frame(DATA, END_STREAM, 1, b"def"))
        assert peer.answer(1).body == b"abcdef"
        assert peer.get(5, "/file").body == APP.read_bytes()


@pytest.mark.parametrize("server", ["threads", "greenlets"], indirect=True)
def test_an_application_that_reads_a_body_is_told_of_a_reset(server: Server) -> None:
    with connect(server) as peer:
        expects = [("expect", "100-continue")]
        peer.send(peer.head(1, "POST", "/upload", expects, end=False) + frame(DATA, 0, 1, b"abc"))
        wait_for(lambda: json.loads(server.get("/events").body) == ["called"], "the call")
        peer.reset(1)
        told = ["called", "reset"]
        wait_for(lambda: json.loads(server.get("/events").body) == told, "the application's error")


def test_a_reset_closes_the_iterable(server: Server) -> None:
    with connect(server, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/endless"))
        while sum(len(answer.body) for answer in peer.answers.values()) < 65535:
            peer.step()
        peer.reset(1)
        # The application on the reactor's own thread is asked for the next piece first.
        peer.open_window(0, 1 << 20)
        wait_for(lambda: json.loads(server.get("/events").body) == ["closed"], "close()")
        assert peer.get(3, "/x").body == b"/x"
