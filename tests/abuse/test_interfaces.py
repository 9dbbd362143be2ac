"""Limits whose consequence an application could change are the same for ASGI and WSGI applications.

A refused request reaches no application; one that is cut off in the middle of its body leaves it unharmed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from rig import Server, application, wait_for

ASGI = application("asgi_limits_app")
WSGI = application("wsgi_limits_app")
INTERFACES = {
    "asgi": (ASGI, ("--interface", "asgi", "--lifespan", "off")),
    "wsgi": (WSGI, ("--interface", "wsgi")),
    "threads": (WSGI, ("--interface", "wsgi", "--threads", "2")),
    "gevent": (WSGI, ("--interface", "wsgi", "--loop", "gevent")),
}
Limited = Callable[..., Server]


@pytest.fixture(params=INTERFACES)
def limited(serve, request: pytest.FixtureRequest) -> Limited:
    """``limited(head_bytes_max=100)``."""
    source, options = INTERFACES[request.param]
    env = {}
    if request.param == "gevent":
        pytest.importorskip("gevent")
        env = {"PYTHONWARNINGS": "default"}

    def start(**limits: int) -> Server:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
        return serve(source, *options, *flags, "--no-access-log", env=env)

    return start


def seen(server: Server) -> bytes:
    return server.get("/seen").body


def test_heads_that_are_refused_reach_no_application(limited: Limited) -> None:
    server = limited(head_bytes_max=300, fields_max=5, target_bytes_max=100)
    for head, status in (
        (b"GET /" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"x" * 400 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 9 + b"\r\n", 431),
    ):
        with server.connect() as peer:
            peer.send(head)
            assert peer.reply().status == status
            assert peer.is_closed()
    assert seen(server) == b"[]"


def test_a_body_that_is_announced_too_long_reaches_no_application(limited: Limited) -> None:
    server = limited(body_bytes_max=1000)
    with server.connect() as peer:
        peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
        assert peer.reply().status == 413
    assert seen(server) == b"[]"
    with server.connect() as peer:
        assert peer.request("POST", "/", b"x" * 1000).body == b"x" * 1000


def test_the_log_says_which_limit_a_body_was_longer_than(limited: Limited) -> None:
    server = limited(body_bytes_max=1000)
    for head in (
        b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n",
        b"POST /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n",
    ):
        path = b"/%d" % len(head)
        with server.connect() as peer:
            peer.send(head % len(head))
            assert peer.reply().status == 413
        server.wait_for_log(rf"POST {path.decode()}: .* 1000 bytes; .* --body-streamed-bytes-max")


def test_without_an_option_a_body_may_have_any_length(limited: Limited) -> None:
    server = limited()
    body = bytes(range(256)) * 80_000
    with server.connect() as peer:
        assert peer.request("POST", "/", body).body == body


def test_chunks_that_become_too_long(limited: Limited) -> None:
    server = limited(body_bytes_max=1000)
    with server.connect() as peer:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        peer.send(head + b"200\r\n" + b"x" * 512 + b"\r\n200\r\n" + b"x" * 512 + b"\r\n")
        assert peer.reply().status == 413
    assert server.get("/seen").status == 200


def test_a_body_that_stops_is_answered_with_408(limited: Limited) -> None:
    server = limited(body_read_ms=200)
    with server.connect() as peer:
        begun = time.monotonic()
        peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome")
        assert peer.reply().status == 408
        assert 0.1 < time.monotonic() - begun < 5
        assert peer.is_closed()
    assert server.get("/seen").status == 200


def test_idle_connections_and_slow_heads(limited: Limited) -> None:
    server = limited(keep_alive_ms=1000, head_read_ms=1000)
    with server.connect() as peer:
        assert peer.request("GET", "/").status == 200
        assert peer.is_closed()
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHo")
        assert peer.reply().status == 408


def test_a_reader_that_takes_nothing_ends_the_answer(limited: Limited) -> None:
    server = limited(write_stall_ms=300)
    with server.connect(4096) as peer:
        peer.send(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read(1000)
        wait_for(lambda: b"end" in seen(server), "the end of the answer")


def test_an_unread_body_does_not_harm_the_next_request(limited: Limited) -> None:
    server = limited()
    with server.connect() as peer:
        for _ in range(3):
            assert peer.request("POST", "/unread", b"x" * 100_000).status == 200
            assert peer.request("POST", "/", b"y" * 10).body == b"y" * 10


def test_connections_beyond_the_limit(limited: Limited) -> None:
    server = limited(connections_max=2)
    with server.connect() as one, server.connect() as other:
        assert one.request("GET", "/").status == 200
        assert other.request("GET", "/").status == 200
        with server.connect() as third:
            assert third.reply().status == 503
        assert one.request("GET", "/").status == 200


@pytest.mark.parametrize("interface", INTERFACES)
def test_static_files_stand_in_front(serve, tmp_path, interface: str) -> None:
    source, options = INTERFACES[interface]
    env = {}
    if interface == "gevent":
        pytest.importorskip("gevent")
        env = {"PYTHONWARNINGS": "default"}
    files = tmp_path / "public"
    files.mkdir()
    (files / "style.css").write_text("p {}" * 100)
    server = serve(source, *options, "--static", f"/assets={files}", env=env)
    with server.connect() as peer:
        reply = peer.request("GET", "/assets/style.css")
        assert (reply.status, reply.body) == (200, b"p {}" * 100)
        etag = reply.headers["etag"]
        assert peer.request("GET", "/assets/style.css", if_none_match=etag).status == 304
        assert peer.request("GET", "/assets/style.css", range="bytes=0-3").body == b"p {}"
        assert peer.request("GET", "/assets/missing.css").status == 404
        assert peer.request("GET", "/assets/../main.py").status in (400, 404)
        assert peer.request("POST", "/other", b"body").body == b"body"
        assert peer.request("GET", "/seen").body == b'["/other"]'


@pytest.mark.parametrize("interface", INTERFACES)
def test_routes_in_metrics_and_log_are_the_patterns_given(serve, interface: str) -> None:
    source, options = INTERFACES[interface]
    env = {}
    if interface == "gevent":
        pytest.importorskip("gevent")
        env = {"PYTHONWARNINGS": "default"}
    server = serve(
        source, *options, "--path-pattern", "/users/{id}", "--management", "127.0.0.1:0",
        "--access-log-format", "json", env=env,
    )  # fmt: skip
    for path in ("/users/1", "/users/2", "/other"):
        assert server.get(path).status == 200
    wait_for(lambda: server.out.count('"route":"/users/{id}"') == 2, "two lines with the pattern")
