"""body_bytes_max and body_streamed_bytes_max: 413 and close, before the body is taken."""

from __future__ import annotations

import re

import pytest
from rig import application

ROUTES = application("body_bytes_app")
DEFAULT = 16 * 1024 * 1024


def chunked(path: str, *chunks: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


def test_only_bodies_that_the_server_holds_have_a_default_limit(serve) -> None:
    server = serve(ROUTES)
    body = b"x" * (DEFAULT + 1)
    with server.connect() as peer:
        assert peer.request("POST", "/streamed", body).body == b"%d" % len(body)
        assert peer.request("POST", "/large", body).body == b"%d" % len(body)
        peer.send(b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert peer.reply().status == 413
    server.wait_for_log(
        r"POST /held: .* 16777216 bytes; .* --body-bytes-max.* \[route /held, handler held "
    )


@pytest.mark.parametrize("path", ["/small/a", "/small-stream"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_route_has_a_limit_of_its_own(serve, path: str, framing: str) -> None:
    server = serve(ROUTES, "--body-bytes-max", "5")
    with server.connect() as peer:
        assert peer.request("POST", path, b"x" * 10).body == b"10"
        if framing == "length":
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"
            peer.send(head.encode())
        else:
            peer.send(chunked(path, b"x" * 10, b"x"))
        assert peer.reply().status == 413
        assert peer.is_closed()
    pattern = path.replace("/a", "/{name}")
    server.wait_for_log(
        rf"POST {path}: .* 10 bytes; .* body_bytes_max= of its route \[route {re.escape(pattern)}, "
    )


def test_an_option_for_all_bodies_and_one_for_streamed_ones(serve) -> None:
    server = serve(ROUTES, "--body-bytes-max", "5")
    with server.connect() as peer:
        assert peer.request("POST", "/streamed", b"123456").status == 413
    server.wait_for_log("5 bytes; the limit is set by --body-streamed-bytes-max")
    server = serve(ROUTES, "--body-bytes-max", "5", "--body-streamed-bytes-max", "6")
    with server.connect() as peer:
        assert peer.request("POST", "/streamed", b"123456").body == b"6"
        assert peer.request("POST", "/held", b"123456").status == 413


def test_a_length_too_large(limited) -> None:
    server = limited(body_bytes_max=1000, discard_bytes_max=100)
    with server.connect() as peer:
        assert peer.request("POST", "/echo", b"x" * 1000).body == b"x" * 1000
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
        assert peer.reply().status == 413
        assert peer.is_closed()


def test_chunks_that_add_up_to_too_much(limited) -> None:
    server = limited(body_bytes_max=1000, discard_bytes_max=100)
    with server.connect() as peer:
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            peer.send(b"190\r\n" + b"x" * 400 + b"\r\n")
        assert peer.reply().status == 413
        assert peer.is_closed()


def test_no_continue_for_what_is_refused(limited) -> None:
    server = limited(body_bytes_max=1000)
    with server.connect() as peer:
        peer.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert peer.reply().status == 413
