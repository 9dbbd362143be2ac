"""``wsgi.input``: PEP 3333, "Input and Error Streams"."""

from __future__ import annotations

import contextlib
import json
import textwrap
from pathlib import Path

import pytest
from rig import application, wait_for

READ = """
def application(environ, start_response):
    body = environ["wsgi.input"]
    how = environ["QUERY_STRING"]
    got = eval(bytes.fromhex(how).decode(), {"body": body})
    if not isinstance(got, list):
        got = [got]
    return answer(start_response, json.dumps([piece.decode("latin-1") for piece in got]).encode())
"""
LINES = b"one\ntwo\n\nthree"
CASES = {
    "body.read()": [LINES],
    "body.read(-1)": [LINES],
    "body.read(None)": [LINES],
    "body.read(0)": [b""],
    "body.read(5)": [LINES[:5]],
    "body.read(10**12)": [LINES],
    "[body.read(2), body.read()]": [b"on", LINES[2:]],
    "[body.read(), body.read(), body.read(3)]": [LINES, b"", b""],
    "body.readline()": [b"one\n"],
    "body.readline(2)": [b"on"],
    "body.readline(-1)": [b"one\n"],
    "body.readline(100)": [b"one\n"],
    "[body.readline(4), body.readline(4)]": [b"one\n", b"two\n"],
    "[body.readline() for _ in range(6)]": [b"one\n", b"two\n", b"\n", b"three", b"", b""],
    "body.readlines()": [b"one\n", b"two\n", b"\n", b"three"],
    "body.readlines(None)": [b"one\n", b"two\n", b"\n", b"three"],
    "body.readlines(0)": [b"one\n", b"two\n", b"\n", b"three"],
    "body.readlines(5)": [b"one\n", b"two\n"],
    "[*body.readlines(1), body.read(3), *body]": [b"one\n", b"two", b"\n", b"\n", b"three"],
    "list(body)": [b"one\n", b"two\n", b"\n", b"three"],
    "[next(body), *body.readlines(1), body.read()]": [b"one\n", b"two\n", b"\nthree"],
}  # fmt: skip


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_every_way_to_read(serve_way_once, framing: str) -> None:
    server = serve_way_once(READ)
    with server.connect() as peer:
        for how, expected in CASES.items():
            target = f"/?{how.encode().hex()}"
            if framing == "length":
                reply = peer.request("POST", target, LINES)
            else:
                head = f"POST {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                chunks = b"".join(
                    b"%x\r\n%s\r\n" % (1, LINES[n : n + 1]) for n in range(len(LINES))
                )
                peer.send(head.encode() + chunks + b"0\r\n\r\n")
                reply = peer.reply()
            assert [piece.encode() for piece in json.loads(reply.body)] == expected, how


def test_a_request_without_a_body(serve_way_once) -> None:
    server = serve_way_once(READ)
    for how in ("[body.read(), body.read(5), body.readline(), *body.readlines(), *body]",):
        reply = server.get(f"/?{how.encode().hex()}")
        assert json.loads(reply.body) == ["", "", ""]


ECHO = """
def application(environ, start_response):
    body = environ["wsgi.input"].read()
    length = environ.get("CONTENT_LENGTH", "none")
    return answer(start_response, body, ("X-Length", length), ("Content-Length", str(len(body))))
"""


def test_long_bodies_come_back(serve_way_once) -> None:
    server = serve_way_once(ECHO)
    body = bytes(range(256)) * 12_000
    with server.connect() as peer:
        assert peer.request("POST", "/", body).body == body
        assert peer.request("POST", "/", b"short").body == b"short"  # the connection is in step


def test_a_chunked_body_has_a_length_when_it_is_complete(serve_way_once) -> None:
    server = serve_way_once(ECHO)
    with server.connect() as peer:
        peer.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
        reply = peer.reply()
    assert (reply.body, reply.headers["x-length"]) == (b"abc", "3")


def test_a_slow_body_keeps_nobody_waiting(serve_wsgi) -> None:
    """Neither the loop's own thread nor the only thread of a pool waits for a client."""
    for arguments in ((), ("--threads", "1")):
        server = serve_wsgi(ECHO, *arguments)
        with server.connect() as slow:
            slow.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na")
            assert server.get("/").body == b""
            slow.send(b"bc")
            assert slow.reply().body == b"abc"


def test_a_long_body_is_read_while_it_comes(serve_wsgi) -> None:
    server = serve_wsgi(
        """
        def application(environ, start_response):
            first = environ["wsgi.input"].read(1)
            start_response("200 OK", [("Content-Type", "text/plain")])
            yield first
            yield b"%d" % (1 + len(environ["wsgi.input"].read()))
        """,
        "--threads", "1",
    )  # fmt: skip
    with server.connect() as peer:
        peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100_000)
        assert peer.read_until(b"1\r\nx\r\n").startswith(b"HTTP/1.1 200 OK")
        peer.send(b"x" * 100_000)
        assert peer.read_until(b"200000\r\n")


def test_a_client_that_leaves_within_its_body_is_told_of(serve_wsgi) -> None:
    server = serve_wsgi(
        """
        def application(environ, start_response):
            print("begun", file=sys.stderr, flush=True)
            try:
                environ["wsgi.input"].read()
            except ConnectionError as error:
                print("told:", error, file=sys.stderr, flush=True)
                raise
        """,
        "--threads", "1",
    )  # fmt: skip
    with server.connect() as peer:
        peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100_000)
        server.wait_for_log("begun")
    server.wait_for_log("told: the client has gone")


def test_the_limit_holds(serve_way) -> None:
    server = serve_way(ECHO, "--body-bytes-max", "1000")
    with server.connect() as peer:
        assert peer.request("POST", "/", b"x" * 1001).status == 413


HOLD = """
def application(environ, start_response):
    total = 0
    while piece := environ["wsgi.input"].read(10_000):
        total += len(piece)
    return answer(start_response, b"%d" % total)
"""


def most_memory_kib(pid: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def deleted_files_bytes(pid: int) -> int:
    """The size of the files that a process has open and that have no name."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            if str(link.readlink()).endswith(" (deleted)"):
                found += link.stat().st_size
    return found


def test_a_long_body_is_not_held_in_memory(serve_way) -> None:
    server = serve_way(HOLD)
    body = b"x" * 40_000_000
    with server.connect() as peer:
        peer.request("POST", "/", body[:1_000_000])
        before = most_memory_kib(server.process.pid)
        assert peer.request("POST", "/", body).body == b"40000000"
    assert most_memory_kib(server.process.pid) - before < 10_000


def test_temporary_files_of_bodies_are_bounded(serve_wsgi) -> None:
    server = serve_wsgi(HOLD, "--body-spooled-bytes-max", "600000")
    head = b"POST /up HTTP/1.1\r\nHost: a\r\n"
    with server.connect() as peer:
        peer.send(head + b"Content-Length: 600001\r\n\r\n")
        assert peer.reply().status == 413
    server.wait_for_log(r"POST /up: .* 600000 bytes; .* --body-spooled-bytes-max.* --threads")
    # Much more than the buffer of a file, which is 128 KiB from Python 3.14 on.
    chunk = b"61a80\r\n" + b"x" * 400_000 + b"\r\n"
    with server.connect() as first, server.connect() as second:
        first.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
        pid = server.process.pid
        wait_for(lambda: deleted_files_bytes(pid) > 100_000, "the body's file")
        second.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
        assert second.reply().status == 503
        first.send(b"0\r\n\r\n")
        assert first.reply().body == b"400000"
    with server.connect() as peer:  # files that are closed count no longer
        peer.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
        assert peer.reply().body == b"400000"


def test_a_body_that_cannot_be_written_to_a_file_is_a_500(serve_wsgi) -> None:
    source = """
    import tempfile
    def full():
        raise OSError(28, "No space left on device")
    tempfile.TemporaryFile = full
    """
    server = serve_wsgi(textwrap.dedent(source) + HOLD)
    with server.connect() as peer:
        assert peer.request("POST", "/", b"x" * 200_000).status == 500
    server.wait_for_log("No space left on device")
    assert server.get("/").body == b"0"


UNREAD = """
def application(environ, start_response):
    if environ["PATH_INFO"] == "/refuse":
        return answer(start_response, b"no", status="401 Unauthorized")
    return answer(start_response, environ["wsgi.input"].read())
"""


@pytest.mark.parametrize("way", ["threads", "gevent"], indirect=True)
def test_no_100_continue_before_the_body_is_read(serve_way) -> None:
    server = serve_way(UNREAD)
    rest = b"Host: a\r\nContent-Length: 200000\r\nExpect: 100-continue\r\n\r\n"
    with server.connect() as peer:
        peer.send(b"POST /refuse HTTP/1.1\r\n" + rest)
        assert peer.reply().status == 401
    with server.connect() as peer:
        peer.send(b"POST /read HTTP/1.1\r\n" + rest)
        assert peer.reply().status == 100
        peer.send(b"x" * 200_000)
        assert peer.reply().body == b"x" * 200_000


LEAVES = application("wsgi_left_input_app")


@pytest.mark.parametrize("way", ["threads", "gevent"], indirect=True)
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("leaves", ["close", "reset"])
def test_reading_a_body_raises_when_its_client_has_left(
    serve_way, framing: str, leaves: str
) -> None:
    server = serve_way(LEAVES)
    for number, how in enumerate(("read", "pieces", "lines", "slow")):
        head = f"POST /{how}?{number} HTTP/1.1\r\nHost: a\r\n".encode()
        with server.connect() as peer:
            if framing == "length":
                peer.send(head + b"Content-Length: 200000\r\n\r\n" + b"x" * 100_000)
            else:
                peer.send(head + b"Transfer-Encoding: chunked\r\n\r\n186a0\r\n" + b"x" * 100_000)
            server.wait_for_log(f"{number} begun")
            getattr(peer, leaves)()
        server.wait_for_log(f"{number} told: the client has gone")


def test_expect_continue(serve_way_once) -> None:
    server = serve_way_once(ECHO)
    with server.connect() as peer:
        peer.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
        assert peer.reply().status == 100
        peer.send(b"abc")
        assert peer.reply().body == b"abc"
