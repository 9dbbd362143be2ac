"""Answers compressed on their way out: which, for whom, whole and streamed."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import time
import zlib

import pytest
from citius import App, Config, ConfigError
from rig import Server, application

APP = application("compression_app")
TEXT = b"all work and no play makes jack a dull boy\n" * 200
CODINGS = ["--compress", "br", "--compress", "zstd", "--compress", "gzip"]


@pytest.fixture(scope="module")
def server(serve_module) -> Server:
    return serve_module(APP, *CODINGS)


@pytest.mark.parametrize("path", ["/text", "/blocking", "/late", "/typed/application/ld+json"])
def test_whole_answers(server: Server, path: str) -> None:
    plain = server.get(path)
    assert (plain.body, plain.headers["vary"]) == (TEXT, "accept-encoding")
    assert "content-encoding" not in plain.headers
    reply = server.get(path, accept_encoding="gzip")
    assert gzip.decompress(reply.body) == TEXT
    assert reply.headers["content-encoding"] == "gzip"
    assert reply.headers["content-length"] == str(len(reply.body))
    assert reply.headers["vary"] == "accept-encoding"
    assert len(reply.body) < len(TEXT) / 10


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip"])
def test_another_program_decodes_them(server: Server, coding: str) -> None:
    features = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True)
    if {"br": "brotli", "zstd": "zstd", "gzip": "libz"}[coding] not in features.stdout:
        pytest.skip(f"this curl knows no {coding}")
    for path in ("/text", "/json", "/events"):
        url = f"http://127.0.0.1:{server.port}{path}"
        command = ["curl", "-sS", "--compressed", "-H", f"accept-encoding: {coding}", url]
        done = subprocess.run(command, capture_output=True, check=True)
        assert done.stdout == server.get(path).body


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, br, zstd", "br"),
        ("gzip, zstd", "zstd"),
        ("gzip;q=1, br;q=0.1", "gzip"),
        ("br;q=0, gzip;q=0", None),
        ("identity", None),
        ("*", "br"),
        ("deflate", None),
        ("gzip;q=nonsense", None),
    ],
)
def test_the_client_chooses(server: Server, accepted: str, coding: str | None) -> None:
    reply = server.get("/text", accept_encoding=accepted)
    assert reply.headers.get("content-encoding") == coding
    assert reply.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize(
    ("path", "coded"),
    [
        ("/size/1023", False),
        ("/size/1024", True),
        ("/size/1048576", True),
        ("/size/1048577", False),
        ("/noise", False),
        ("/random", True),
        ("/typed/image/png", False),
        ("/typed/application/x-own", False),
        ("/typed/image/svg+xml", True),
        ("/field/content-encoding/identity", False),
        ("/field/cache-control/no-transform", False),
        ("/field/cache-control/no-cache", True),
        ("/field/content-range/bytes 0-1%2F2", False),
        ("/status/404", True),
        ("/status/206", False),
        ("/status/204", False),
        ("/status/304", False),
        ("/file", False),
    ],
)
def test_only_what_is_worth_it_and_allowed(server: Server, path: str, coded: bool) -> None:
    reply = server.get(path.replace(" ", "%20"), accept_encoding="gzip")
    assert (reply.headers.get("content-encoding") == "gzip") == coded


def test_fields_are_kept_true(server: Server) -> None:
    reply = server.get("/field/etag/%22a%22", accept_encoding="gzip")
    assert reply.headers["etag"] == 'W/"a"'
    assert server.get("/field/etag/%22a%22").headers["etag"] == '"a"'
    reply = server.get("/field/vary/Accept-Encoding", accept_encoding="gzip")
    assert reply.headers["vary"] == "Accept-Encoding"
    with server.connect() as peer:
        reply = peer.request("POST", "/text", b"x", accept_encoding="gzip")
        assert (reply.status, gzip.decompress(reply.body)) == (201, TEXT)


def test_an_unchanged_response_varies_as_the_whole_one_does(server: Server) -> None:
    """RFC 9110 §15.4.5: a cache replaces the fields that it has by those of a 304."""
    for accepted in ("gzip", "identity"):
        assert (
            server.get("/status/304", accept_encoding=accepted).headers["vary"] == "accept-encoding"
        )


def test_head_says_what_get_would(server: Server) -> None:
    with server.connect() as peer:
        for path in ("/text", "/events"):
            whole = peer.request("GET", path, accept_encoding="gzip")
            head = peer.request("HEAD", path, accept_encoding="gzip")
            for name in ("content-encoding", "vary", "content-type", "content-length"):
                assert head.headers.get(name) == whole.headers.get(name), name
        assert peer.request("GET", "/text").body == TEXT


def test_streams_arrive_as_they_come(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /stream HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n")
        head = peer.read_until(b"\r\n\r\n").lower()
        assert b"transfer-encoding: chunked" in head
        assert b"content-encoding: gzip" in head
        decoder = zlib.decompressobj(31)
        chunks = peer.chunks()
        text = b""
        while len(text) < len(TEXT):
            text += decoder.decompress(next(chunks))
        assert text == TEXT, "the first piece is here before the second is made"
        server.get("/open")
        for chunk in chunks:
            text += decoder.decompress(chunk)
        assert text == TEXT + TEXT[::-1]
        assert decoder.eof


def test_announced_lengths_are_held_against_the_body(server: Server) -> None:
    reply = server.get(f"/announced/{2 * len(TEXT)}", accept_encoding="gzip")
    assert gzip.decompress(reply.body) == TEXT * 2
    assert "content-length" not in reply.headers
    for wrong in (2 * len(TEXT) - 1, 2 * len(TEXT) + 1):
        with server.connect() as peer:
            peer.send(
                f"GET /announced/{wrong} HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n".encode()
            )
            assert not peer.read_to_end().endswith(b"0\r\n\r\n"), "a cut is visible"
    server.wait_for_log("does not have the announced length")


def test_pipelined_answers_keep_their_order(server: Server) -> None:
    with server.connect() as peer:
        for path in ("/late", "/text", "/events", "/late"):
            peer.send(f"GET {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n".encode())
        bodies = [gzip.decompress(peer.reply().body) for _ in range(4)]
    assert bodies == [TEXT, TEXT, b"data: 0\n\ndata: 1\n\ndata: 2\n\n", TEXT]


def test_streams_beyond_the_limit_go_as_they_are(serve) -> None:
    server = serve(APP, *CODINGS, "--compress-streams-max", "2")
    peers = [server.connect() for _ in range(4)]
    coded = 0
    for peer in peers:
        peer.send(b"GET /stream HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n")
        coded += b"content-encoding" in peer.read_until(b"\r\n\r\n")
    assert coded == 2
    for peer in peers:
        peer.reset()
    reply = server.get("/text", accept_encoding="gzip")
    assert gzip.decompress(reply.body) == TEXT


def test_types_of_ones_own_and_an_order_of_ones_own(serve) -> None:
    server = serve(
        APP, "--compress", "gzip", "--compress", "br", "--compress-types", "application/x-own",
    )  # fmt: skip
    reply = server.get("/typed/application/x-own", accept_encoding="br, gzip, zstd")
    assert gzip.decompress(reply.body) == TEXT
    assert "content-encoding" not in server.get("/text", accept_encoding="zstd").headers


def test_static_files_are_not_touched(serve, site) -> None:
    (site / "long.txt").write_bytes(TEXT)
    server = serve(APP, *CODINGS, "--static", f"/assets={site}")
    reply = server.get("/assets/long.txt", accept_encoding="gzip")
    assert (reply.body, reply.headers.get("vary")) == (TEXT, None)


def test_off_unless_asked_for(serve) -> None:
    reply = serve(APP).get("/text", accept_encoding="gzip")
    assert (reply.body, reply.headers.get("vary")) == (TEXT, None)


def test_a_coding_that_is_none(serve) -> None:
    server = serve("", "--compress", "deflate", ready=False)
    assert server.wait() != 0
    assert "expected br, zstd or gzip, got 'deflate'" in server.err


LARGE = application("large_streams_app")


@pytest.mark.parametrize("path", ["/file", "/bytes"])
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_large_pieces_of_a_stream_take_turns(serve, tmp_path, coding: str, path: str) -> None:
    """A client that takes nothing holds a step of its response; other clients do not wait."""
    server = serve(LARGE, *CODINGS, "--lifespan", "off")
    size = 24_000_000
    # Hexadecimal digits of noise: what comes out is half of what goes in, and memory would show it.
    (tmp_path / "large").write_bytes(os.urandom(size // 2).hex().encode())
    before = int(server.get("/rss").body)
    with server.connect(receive_buffer_bytes=4096) as slow:
        request = f"GET {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: {coding}\r\n\r\n"
        slow.send(request.encode())
        assert f"content-encoding: {coding}".encode() in slow.read_until(b"\r\n\r\n")
        began_at = time.monotonic()
        held = int(server.get("/rss").body) - before
        assert time.monotonic() - began_at < 3
        assert held < (size if path == "/bytes" else 0) + 6_000_000
        if coding != "gzip":
            return
        decoder = zlib.decompressobj(31)
        plain = hashlib.sha256()
        length = 0
        for chunk in slow.chunks():
            piece = decoder.decompress(chunk)
            plain.update(piece)
            length += len(piece)
    assert (length, decoder.eof) == (size + 3, True)
    expected = hashlib.sha256((tmp_path / "large").read_bytes() + b"end")
    assert plain.digest() == expected.digest()


LEVELS = application("compression_levels_app")


@pytest.mark.parametrize("coding", ["br", "gzip"])
def test_levels_of_the_server_and_of_routes(serve, coding: str) -> None:
    low = {"br": "br=0", "gzip": "gzip=1"}[coding]
    servers = [serve(LEVELS, "--compress", text) for text in (coding, low)]

    def length(server: Server, path: str) -> int:
        reply = server.get(path, accept_encoding=coding)
        assert reply.headers["content-encoding"] == coding
        return len(reply.body)

    default, lowest = (length(server, "/default") for server in servers)
    hard = length(servers[0], "/hard")
    assert hard < default < lowest
    for server in servers:
        assert length(server, "/hard") == length(server, "/hard-late") == hard
        assert length(server, "/hard-stream") < length(server, "/stream")
        reply = server.get("/never", accept_encoding=coding)
        assert "content-encoding" not in reply.headers


def test_levels_that_there_are_not() -> None:
    for text, message in (
        ("br=12", "from 0 to 11"),
        ("gzip=x", "from 1 to 9"),
        ("lzma", "got 'lzma'"),
    ):
        with pytest.raises(ConfigError, match=message):
            Config(compress=(text,))
        with pytest.raises(ConfigError, match=message):
            App().get("/", compress=text)
    with pytest.raises(ConfigError, match="expected a level for each coding"):
        App().get("/", compress="br")
