"""Trailer sections of responses in one piece: text and bytes may have one, as streams have."""

from __future__ import annotations

import pytest
from rig import application

APP = application("trailer_sections_app")


@pytest.fixture(scope="module")
def server(serve_module):
    return serve_module(APP)


@pytest.mark.parametrize("path", ["/bytes", "/text"])
def test_a_body_in_one_piece_has_trailers(server, path) -> None:
    with server.connect() as peer:
        peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        head = peer.read_until(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert b"content-length" not in head
        assert peer.read_until(b"\r\n\r\n") == b"5\r\nwhole\r\n0\r\nx-sum: 7\r\n\r\n"
        # HTTP/1.0 has no framing for them.
        peer.send(f"GET {path} HTTP/1.0\r\nHost: a\r\n\r\n".encode())
        assert peer.read_to_end().endswith(b"\r\n\r\nwhole")


def test_no_content_has_none(server) -> None:
    with server.connect() as peer:
        for method, path, status in (("HEAD", "/bytes", 200), ("GET", "/empty", 204)):
            reply = peer.request(method, path)
            assert (reply.status, reply.body) == (status, b"")
        assert peer.request("GET", "/none").headers["content-length"] == "5"


def test_trailers_that_fail_are_an_error_of_the_whole(server) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/broken").status == 500
