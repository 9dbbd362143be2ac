"""``start_response``, ``write``, the iterable and its ``close``: PEP 3333 from end to end."""

from __future__ import annotations

import re

import pytest
from rig import application

VALID = """
@validator
def validated(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["wsgi.input"].read(100), b"!"]

def application(environ, start_response):
    return validated(environ, start_response)
"""


def test_the_validator_has_nothing_to_say(serve_way) -> None:
    server = serve_way(VALID)
    with server.connect() as peer:
        assert peer.request("GET", "/a/b?c=d").body == b"!"
        assert peer.request("POST", "/", b"body", content_type="text/plain").body == b"body!"
        assert peer.request("OPTIONS", "*").body == b"!"
        assert peer.request("HEAD", "/").status == 200
    assert "Assertion" not in server.err
    assert "Warning" not in server.err


def test_shapes_of_bodies(serve_way) -> None:
    server = serve_way(application("wsgi_bodies_app"))
    with server.connect() as peer:
        for shape, (body, length) in {
            "list": (b"list", "4"), "tuple": (b"tuple", "5"), "empty": (b"", "0"),
            "sized": (b"sized", "5"), "generator": (b"generator", None), "iterator": (b"iter", None),
            "nothing": (b"", "0"), "bytes": (b"bytes", None),
        }.items():  # fmt: skip
            reply = peer.request("GET", f"/{shape}")
            assert (reply.body, reply.headers.get("content-length")) == (body, length), shape


def test_a_block_leaves_before_the_next_is_made(serve_way) -> None:
    server = serve_way(application("wsgi_blocks_app"))
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"5\r\nfirst\r\n")
        server.get("/allow")
        assert peer.read_until(b"0\r\n\r\n") == b"6\r\nsecond\r\n0\r\n\r\n"


def test_write_comes_before_the_iterable(serve_way) -> None:
    server = serve_way("""
def application(environ, start_response):
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    assert write(b"") is None
    write(b"one ")
    write(b"two ")
    return [b"three"] if environ["PATH_INFO"] == "/" else iter([b"th", b"ree"])
""")
    with server.connect() as peer:
        assert peer.request("GET", "/").body == b"one two three"
        assert peer.request("GET", "/iterator").body == b"one two three"
        assert peer.request("GET", "/").body == b"one two three"


def test_write_is_held_back_by_a_slow_reader(serve_wsgi) -> None:
    server = serve_wsgi(
        """
        def application(environ, start_response):
            write = start_response("200 OK", [("Content-Type", "text/plain")])
            for n in range(400):
                write(b"x" * 65536)
            print("written", file=sys.stderr, flush=True)
            return []
        """,
        "--threads", "1",
    )  # fmt: skip
    with server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(b"GET / HTTP/1.0\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        assert "written" not in server.err
        for _ in range(400):
            peer.read(65536)
    server.wait_for_log("written")


ERRORS = application("wsgi_errors_app")


def test_errors_before_the_head_are_500_and_told(serve_way_once) -> None:
    server = serve_way_once(ERRORS)
    with server.connect() as peer:
        for path, told in {
            "twice": "start_response has been called before", "never": "without having called",
            "never_iterated": "without having called", "raises": "ValueError: a reason",
            "exits": "SystemExit", "text": "bytes (PEP 3333), not str",
            "text_iterated": "bytes (PEP 3333), not str", "plain_bytes": "not int",
            "none": "'NoneType' object is not iterable",
            "short": "content-length says 10, but the body has 5 bytes",
        }.items():  # fmt: skip
            assert peer.request("GET", f"/{path}").status == 500, path
            server.wait_for_log(rf"(?s)GET /{path} failed.*{re.escape(told)}")
        assert peer.request("GET", "/fine").body == b"fine"


def test_exc_info_replaces_what_has_not_left(serve_way_once) -> None:
    server = serve_way_once(ERRORS)
    with server.connect() as peer:
        for path in ("replaced", "in_generator"):
            reply = peer.request("GET", f"/{path}")
            assert (reply.status, reply.body) == (503, b"sorry")
            assert "x-first" not in reply.headers


def test_exc_info_is_raised_again_when_the_head_has_left(serve_way_once) -> None:
    server = serve_way_once(ERRORS)
    for path in ("too_late", "written"):
        with server.connect() as peer:
            peer.send(f"GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            seen = peer.read_to_end()
            assert seen.startswith(b"HTTP/1.1 200 OK")
            assert b"part" in seen
            assert not seen.endswith(b"0\r\n\r\n")
            assert b"never" not in seen
        server.wait_for_log("ValueError: after the head")


def test_bodies_that_are_not_as_long_as_announced(serve_way_once) -> None:
    server = serve_way_once(ERRORS)
    with server.connect() as peer:
        for path in ("long", "long_iterated"):
            assert peer.request("GET", f"/{path}").body == b"long"
        assert "went on" not in server.err
        peer.send(b"GET /short_iterated HTTP/1.1\r\nHost: a\r\n\r\n")
        assert peer.read_to_end().endswith(b"\r\n\r\nshort")  # and the connection is cut
    server.wait_for_log("5 bytes shorter than its content-length")


def test_statuses(serve_wsgi_once) -> None:
    server = serve_wsgi_once(ERRORS)
    with server.connect() as peer:
        for text, status in {
            '"200"': 200, '"404 Not Found"': 404, '"299 Custom"': 299, '"200 "': 200,
            '"20 OK"': 500, '"2000 OK"': 500, '"100 Continue"': 500, '"101 Switching"': 500,
            '"200 O\\nK"': 500, '"200 O\\u0000K"': 500, '"600 No"': 500,
            '"OK"': 500, '""': 500, "200": 500, '"+20 OK"': 500,
        }.items():  # fmt: skip
            assert peer.request("GET", f"/status?{text.encode().hex()}").status == status, text


REASONS = """
HEADERS = [("Content-Type", "text/plain"), ("Content-Length", "2")]
def application(environ, start_response):
    start_response(bytes.fromhex(environ["QUERY_STRING"]).decode(), HEADERS)
    return [b"ok"]
"""


@pytest.mark.parametrize("options", [(), ("--compress", "gzip"), ("--request-id", "x-id")], ids=str)
def test_the_application_s_own_reason_phrase_is_kept(serve_wsgi, options: tuple[str, ...]) -> None:
    server = serve_wsgi(REASONS, *options)
    with server.connect() as peer:
        for status, line in {
            "200 OK": b"200 OK", "200 Fine": b"200 Fine", "404 Not Found": b"404 Not Found",
            "404 No such shop": b"404 No such shop", "299 Caf\u00e9": b"299 Caf\xe9", "404": b"404 Not Found",
            "404 ": b"404 Not Found", "200  OK ": b"200 OK",
        }.items():  # fmt: skip
            for _ in range(2):
                reply = peer.request("GET", f"/?{status.encode().hex()}")
                assert reply.raw_head.startswith(b"HTTP/1.1 " + line + b"\r\n"), status
                assert reply.body == b"ok"


@pytest.mark.parametrize(
    ("header", "answered"),
    [
        ('["X-A", "b"]', 200),
        ('["X-A", "caf\u00e9"]', 200),
        ('["X-A", ""]', 200),
        ('["Connection", "close"]', 200),
        ('["Connection", "keep-alive"]', 200),
        ('["X-A", "\u20ac"]', 500),
        ('["X-A", "a\\r\\nX-B: c"]', 500),
        ('["X-A", "a\\u0000"]', 500),
        ('["Content-Type", "a\\nb"]', 500),
        ('["X A", "b"]', 500),
        ('["", "b"]', 500),
        ('["X-A", 1]', 500),
        ('["X-A"]', 500),
        ('["Transfer-Encoding", "chunked"]', 500),
        ('["Keep-Alive", "timeout=5"]', 500),
        ('["Connection", "upgrade"]', 500),
        ('["Upgrade", "h2c"]', 500),
        ('["Content-Length", "-1"]', 500),
        ('["Content-Length", "x"]', 500),
    ],
)
def test_headers(serve_wsgi_once, header: str, answered: int) -> None:
    reply = serve_wsgi_once(ERRORS).get(f"/header?{header.encode().hex()}")
    assert reply.status == answered
    assert b"X-B" not in reply.raw_head
    if "caf" in header:
        assert reply.raw_head.count(b"x-a: caf\xe9\r\n") == 1


def test_bodiless_answers(serve_way) -> None:
    server = serve_way(application("wsgi_bodiless_app"))
    with server.connect() as peer:
        for status in (204, 304):
            reply = peer.request("GET", f"/{status}")
            assert (reply.status, reply.body) == (status, b"")
        head = peer.request("HEAD", "/200")
        assert head.headers["content-length"] == "6"
        head = peer.request("HEAD", "/200?7")
        assert head.headers["content-length"] == "7"
        assert peer.request("GET", "/200").body == b"a body"  # in step


def test_close_is_always_called(serve_way) -> None:
    server = serve_way(application("wsgi_close_app"))
    for kind in ("plain", "length", "iter", "raises", "text", "never", "close"):
        server.get(f"/{kind}")
        server.wait_for_log(f"closed {kind}\n")
        assert server.err.count(f"closed {kind}\n") == 1
    server.wait_for_log("ValueError: in close")
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /gone HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
    server.wait_for_log("closed gone\n")
    assert server.err.count("closed gone\n") == 1


def test_callables_that_are_kept_say_nothing_of_others(serve_way) -> None:
    server = serve_way(application("wsgi_kept_callables_app"))
    with server.connect() as peer:
        for path in ("/", "/", "/abuse", "/"):
            reply = peer.request("GET", path)
            assert (reply.status, reply.body) == (200, b"mine")
            assert "x-foreign" not in reply.headers


def test_owners_and_weak_references_that_are_kept_know_nothing_of_others(serve_way) -> None:
    server = serve_way(application("wsgi_kept_owners_app"))
    with server.connect() as peer:
        for path in ("/", "/a", "/own", "/b", "/", "/c"):
            reply = peer.request("GET", path)
            assert (reply.status, reply.body) == (200, b"nobody")
            assert "x-foreign" not in reply.headers


def test_pipelined_answers_keep_their_order(serve_way) -> None:
    server = serve_way("""
def application(environ, start_response):
    n = int(environ["PATH_INFO"][1:])
    if n % 3 == 0: time.sleep(0.02)
    start_response("200 OK", [])
    return [b"%d" % n] if n % 2 else iter([b"%d" % n, b""])
""")
    with server.connect() as peer:
        peer.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % n for n in range(20)))
        assert [peer.reply().body for _ in range(20)] == [b"%d" % n for n in range(20)]


def test_context_variables_are_each_request_s_own(serve_way) -> None:
    server = serve_way("""
import contextvars
mark = contextvars.ContextVar("mark", default="none")
def application(environ, start_response):
    before = mark.get()
    mark.set(environ["PATH_INFO"])
    return answer(start_response, before.encode())
""")
    with server.connect() as peer:
        assert [peer.request("GET", f"/{n}").body for n in range(4)] == [b"none"] * 4


WRITES = """
    def application(environ, start_response):
        write = start_response("200 OK", [("content-type", "text/plain")])
        count = int(environ["PATH_INFO"][1:])
        for _ in range(count // 1000):
            write(b"x" * 1000)
        return []
"""


def test_write_collects_so_much_where_it_cannot_wait(serve_wsgi) -> None:
    server = serve_wsgi(WRITES, "--threads", "0", "--wsgi-write-bytes-max", "50000")
    assert server.get("/50000").body == b"x" * 50_000
    with server.connect() as peer:
        peer.send(b"GET /51000 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert not peer.read_to_end().endswith(
            b"0\r\n\r\n"
        )  # cut, as after any error behind a write
    server.wait_for_log("write\\(\\) has collected 50000 bytes and may hold 50000")
    assert server.get("/50000").body == b"x" * 50_000


def test_write_waits_in_a_thread(serve_wsgi) -> None:
    server = serve_wsgi(WRITES, "--threads", "1", "--wsgi-write-bytes-max", "50000")
    assert server.get("/500000").body == b"x" * 500_000


def test_a_streamed_answer_stays_in_its_context(serve_way) -> None:
    """Flask's `stream_with_context` sets variables in a generator and resets them at its end."""
    server = serve_way(application("wsgi_stream_context_app"))
    with server.connect() as one, server.connect() as other:
        one.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        other.send(b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        assert one.reply().body == b"none " + b"a " * 20 + b"end"
        assert other.reply().body == b"none " + b"b " * 20 + b"end"
    assert server.get("/closed").body == b'["a", "b"]'
