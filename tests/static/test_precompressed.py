"""Copies that were compressed before: who gets which."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from rig import Server

TEXT = b"body { color: blue }\n" * 50


@pytest.fixture
def server(serve, site: Path) -> Server:
    (site / "a.css").write_bytes(TEXT)
    (site / "a.css.gz").write_bytes(gzip.compress(TEXT))
    (site / "a.css.br").write_bytes(b"as if brotli")
    (site / "stale.css").write_bytes(TEXT)
    (site / "stale.css.gz").write_bytes(gzip.compress(b"an older version"))
    os.utime(site / "stale.css.gz", (1, 1))
    return serve("", "--static", f"/assets={site}", "--static-cache-control", "no-cache")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip;q=1, br;q=0.5", "gzip"),
        ("br;q=0, *", "gzip"),
        ("zstd", None),
        ("identity", None),
        ("", None),
    ],
)
def test_the_client_chooses(server: Server, accepted: str, coding: str | None) -> None:
    reply = server.get("/assets/a.css", accept_encoding=accepted)
    bodies = {"gzip": gzip.compress(TEXT), "br": b"as if brotli", None: TEXT}
    if coding == "gzip":
        assert gzip.decompress(reply.body) == TEXT
    else:
        assert reply.body == bodies[coding]
    assert reply.headers.get("content-encoding") == coding
    assert reply.headers["content-type"] == "text/css; charset=utf-8"
    assert reply.headers["vary"] == "accept-encoding"


def test_each_has_its_own_tag(server: Server) -> None:
    tags = {
        server.get("/assets/a.css", accept_encoding=accepted).headers["etag"]
        for accepted in ("gzip", "br", "identity")
    }
    assert len(tags) == 3
    for accepted, status in [("gzip", 304), ("br", 200)]:
        tag = server.get("/assets/a.css", accept_encoding="gzip").headers["etag"]
        reply = server.get("/assets/a.css", **{"accept_encoding": accepted, "if-none-match": tag})
        assert reply.status == status
        assert reply.headers["vary"] == "accept-encoding"
        assert reply.headers["cache-control"] == "no-cache"


def test_an_older_copy_is_of_something_else(server: Server) -> None:
    reply = server.get("/assets/stale.css", accept_encoding="gzip")
    assert reply.body == TEXT
    assert not {"content-encoding", "vary"} & reply.headers.keys()


def test_a_copy_asked_for_by_name_is_a_file(server: Server) -> None:
    reply = server.get("/assets/a.css.gz", accept_encoding="gzip")
    assert reply.headers["content-type"] == "application/gzip"
    assert "content-encoding" not in reply.headers


def test_ranges_are_of_the_coded_bytes(server: Server) -> None:
    reply = server.get("/assets/a.css", accept_encoding="br", range="bytes=3-4")
    assert (reply.status, reply.body) == (206, b"if")
    assert reply.headers["content-encoding"] == "br"


def test_it_can_be_switched_off(serve, site: Path) -> None:
    (site / "a.css").write_bytes(TEXT)
    (site / "a.css.gz").write_bytes(gzip.compress(TEXT))
    server = serve("", "--static", f"/assets={site}", "--no-static-precompressed")
    reply = server.get("/assets/a.css", accept_encoding="gzip")
    assert (reply.body, reply.headers.get("vary")) == (TEXT, None)
