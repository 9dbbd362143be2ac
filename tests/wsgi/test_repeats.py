"""Environs and response heads are reused between requests, which the application must not notice."""

from __future__ import annotations

import json
import random
import string
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from citius._core import FAST_PATHS
from h2peer import connect
from rig import application

if TYPE_CHECKING:
    from rig import Server

SEED = 4

# What an application does to its environ, and says of it before and after.
TREATMENTS = application("wsgi_treatments_app")
DOINGS = (
    "leave", "leave", "leave", "leave", "change", "add", "remove", "swap", "clear", "refill", "keep",
    "keep_view", "keep_and_change", "change_kept",
)  # fmt: skip
NAMES = ("Accept", "accept", "Cookie", "X-A", "X-B", "x-a", "User-Agent", "X_Under", "Content-Type")
TARGETS = ("/", "/a", "/a?b=c", "/a?", "/caf%C3%A9?%20", "/a/b%2Fc", "*")
VALUES = ("", "a", "b", "a longer value, with commas", "x" * 200)


class Draw:
    """Requests as clients make them: many like the one before, some like none."""

    def __init__(self, seed: int, names: tuple[str, ...] = NAMES) -> None:
        self.random = random.Random(seed)
        self.names = names
        self.method, self.target = "GET", "/"
        self.fields: list[tuple[str, str]] = []

    def next(self) -> tuple[str, str, list[tuple[str, str]], bytes]:
        """Method, target, fields and body of another one."""
        draw = self.random
        if draw.random() < 0.3:
            self.target = draw.choice(TARGETS)
        if draw.random() < 0.2:
            self.method = draw.choice(("GET", "GET", "POST", "OPTIONS", "PURGE", "PAINT"))
        if draw.random() < 0.2:
            names = draw.sample(self.names, draw.randrange(len(self.names)))
            self.fields = [(name, draw.choice(VALUES)) for name in names]
        elif draw.random() < 0.3 and self.fields:
            at = draw.randrange(len(self.fields))
            self.fields[at] = (self.fields[at][0], draw.choice(VALUES))
        doing = [("X-Do", draw.choice(DOINGS))] if draw.random() < 0.5 else []
        target = self.target if self.target != "*" or self.method == "OPTIONS" else "/"
        body = b"body" if self.method == "POST" and draw.random() < 0.5 else b""
        length = [("Content-Length", str(len(body)))] if body else []
        return self.method, target, [("Host", "a"), *self.fields, *doing, *length], body


def expected(
    method: str, target: str, fields: list[tuple[str, str]], body: bytes
) -> dict[str, str]:
    """What an environ has to say of a request, by PEP 3333 alone."""
    path, _, query = target.partition("?")
    said = {
        "REQUEST_METHOD": method,
        "REQUEST_URI": target,
        "RAW_URI": target,
        "PATH_INFO": "" if path == "*" else unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "body": body.decode(),
    }
    for name, value in fields:
        key = name.upper().replace("-", "_")
        if "_" in name:
            continue
        if key not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
            key = "HTTP_" + key
        separator = "; " if key == "HTTP_COOKIE" else ", "
        said[key] = f"{said[key]}{separator}{value}" if key in said else value
    return said


def check(shown: dict, request: tuple[str, str, list[tuple[str, str]], bytes], port: int) -> None:
    """Compare what an application has seen with what it had to see."""
    assert (shown.pop("is new"), shown.pop("kept is as it was")) == (True, True), request
    own = {
        k: v for k, v in shown.items() if k.startswith(("HTTP_", "CONTENT_")) or k in PER_REQUEST
    }
    assert own == expected(*request), request
    assert shown["REMOTE_PORT"] == str(port)
    assert shown["objects"] == [
        "wsgi.errors", "wsgi.file_wrapper", "wsgi.input", "wsgi.input_terminated", "wsgi.multiprocess",
        "wsgi.multithread", "wsgi.run_once", "wsgi.version",
    ]  # fmt: skip


PER_REQUEST = {"REQUEST_METHOD", "REQUEST_URI", "RAW_URI", "PATH_INFO", "QUERY_STRING", "body"}


def test_environs_say_what_their_own_request_says(serve_way) -> None:
    server: Server = serve_way(TREATMENTS)
    draw = Draw(SEED)
    with server.connect() as one, server.connect() as other:
        for turn in range(600):
            peer = other if turn % 5 == 0 else one
            method, target, fields, body = request = draw.next()
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
            peer.send(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body)
            shown = json.loads(peer.reply(method).body)
            assert shown["SERVER_PROTOCOL"] == "HTTP/1.1"
            check(shown, request, peer.socket.getsockname()[1])


def test_environs_over_http2(serve_way) -> None:
    server: Server = serve_way(TREATMENTS)
    # Names are lower-case there, and an empty crumb of a cookie is none.
    draw = Draw(SEED, ("accept", "x-a", "x-b", "user-agent", "x_under", "content-type"))
    with connect(server) as peer, server.connect() as other:
        for turn in range(300):
            method, target, fields, body = request = draw.next()
            own = [(name.lower(), value) for name, value in fields if name != "Host"]
            peer.request(2 * turn + 1, method, target, body or None, own)
            shown = json.loads(peer.answer(2 * turn + 1).body)
            assert (shown["SERVER_PROTOCOL"], shown["HTTP_HOST"]) == ("HTTP/2", "test")
            shown["HTTP_HOST"] = "a"
            check(shown, request, peer.peer.socket.getsockname()[1])
            if turn % 7 == 0:
                reply = other.request("GET", "/other", x_a="1")
                assert json.loads(reply.body)["SERVER_PROTOCOL"] == "HTTP/1.1"


def test_an_environ_that_was_not_touched_is_as_new(serve_wsgi) -> None:
    # More requests than are served by copies once one environ was kept, then as many again.
    server = serve_wsgi("""
kept = []
def application(environ, start_response):
    if environ["PATH_INFO"] == "/keep":
        kept.append(environ)
    ours = sum(environ is old for old in kept)
    return answer(start_response, f"{environ['QUERY_STRING']} {len(environ)} {ours}".encode())
""")
    with server.connect() as peer:
        size = peer.request("GET", "/?a").body.split()[1]
        for batch in range(24):
            peer.send(b"".join(
                b"GET /%s?%d HTTP/1.1\r\nHost: test\r\n\r\n" % (b"keep" if n == 50 else b"", n)
                for n in range(100)
            ))  # fmt: skip
            for n in range(100):
                number, length, ours = peer.reply().body.split()
                assert (int(number), length) == (n, size)
                assert ours == (b"1" if n == 50 else b"0"), batch


def test_what_a_proxy_says_of_one_request_is_said_of_no_other(serve_way) -> None:
    server = serve_way("""
def application(environ, start_response):
    names = ("REMOTE_ADDR", "wsgi.url_scheme", "HTTP_X_FORWARDED_FOR")
    return answer(start_response, json.dumps([environ.get(name) for name in names]).encode())
""")
    told = {"x_forwarded_for": "10.0.0.1", "x_forwarded_proto": "https"}
    with server.connect() as peer:
        for headers, said in [
            (told, ["10.0.0.1", "https", "10.0.0.1"]),
            ({**told, "x_forwarded_for": "10.0.0.2"}, ["10.0.0.2", "https", "10.0.0.2"]),
            ({**told, "x_forwarded_proto": "http"}, ["10.0.0.1", "http", "10.0.0.1"]),
            ({}, ["127.0.0.1", "http", None]),
        ] * 2:
            assert json.loads(peer.request("GET", "/", **headers).body) == said


def test_names_without_end_leave_environs_right(serve_wsgi) -> None:
    server = serve_wsgi(TREATMENTS)
    draw = random.Random(SEED)
    with server.connect() as peer:
        for _ in range(300):
            names = {
                "".join(draw.choices(string.ascii_letters, k=3)) for _ in range(draw.randrange(70))
            }
            fields = [("Host", "a"), *((f"X-{name}", "v" * draw.randrange(90)) for name in names)]
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
            peer.send(f"GET / HTTP/1.1\r\n{lines}\r\n".encode())
            shown = json.loads(peer.reply().body)
            check(shown, ("GET", "/", fields, b""), peer.socket.getsockname()[1])


# An application that announces what it is told to, in objects of every kind.
ANNOUNCED = application("wsgi_start_response_app")


def test_heads_are_those_that_were_announced(serve_way) -> None:
    server: Server = serve_way(ANNOUNCED)
    draw = random.Random(SEED)
    pool = [
        ["Content-Type", "text/plain"], ["Content-Type", "text/html"], ["Content-Length", "6"],
        ["content-length", " 6 "], ["X-A", "1"], ["X-A", "2"], ["x-a", "1"], ["Set-Cookie", "a=b"],
        ["Set-Cookie", "caf\xe9"], ["Date", "now"], ["X-Long", "v" * 2000],
    ]  # fmt: skip
    kinds = ("new tuples", "same tuples", "same list", "subclasses", "iterator")
    # One type and one length each: what becomes of a second one is not the subject.
    sets = []
    while len(sets) < 8:
        drawn = draw.sample(pool, draw.randrange(len(pool)))
        names = [name.lower() for name, _ in drawn]
        if max(names.count("content-type"), names.count("content-length")) <= 1:
            sets.append(drawn)
    with server.connect() as peer:
        for _ in range(500):
            headers = draw.choice(sets)
            if draw.random() < 0.2:
                headers = [*headers, ["X-Only", str(draw.random())]]
            status = draw.choice(("200 OK", "200 Fine", "404 Not Found"))
            body = json.dumps([draw.choice(kinds), status, headers]).encode()
            reply = peer.request("POST", "/", body)
            assert (reply.status, reply.body) == (int(status[:3]), b"a body")
            lines = reply.raw_head.decode("latin-1").split("\r\n")[1:-2]
            own = [line.partition(":") for line in lines]
            got = sorted((name.lower(), value.strip()) for name, _, value in own)
            said = {(n.lower(), v.strip()) for n, v in headers if n.lower() != "content-length"}
            wanted = [(n.lower(), v) for n, v in headers if n.lower() != "content-length"]
            added = [field for field in got if field not in said]
            assert sorted([*wanted, *added]) == got, headers
            assert ("content-length", "6") in added
            assert {name for name, _ in added} <= {"content-length", "date", "server"}
            assert sum(name == "date" for name, _ in got) == 1


def test_lengths_are_held_against_each_body(serve_way) -> None:
    server: Server = serve_way(ANNOUNCED)

    def ask(peer, *lengths: str) -> int:
        headers = [["Content-Type", "text/plain"], *(["Content-Length", n] for n in lengths)]
        return peer.request("POST", "/", json.dumps(["new", "200 OK", headers]).encode()).status

    with server.connect() as peer:
        asked = [
            ("6",),
            ("9",),
            ("6",),
            ("x",),
            ("6", "6"),
            ("6", "9"),
            (),
            ("+6",),
            ("6",),
            ("6", "6"),
        ]
        answers = [ask(peer, *lengths) for lengths in asked]
        assert answers == [200, 500, 200, 500, 200, 500, 200, 500, 200, 200]
    server.wait_for_log("content-length says 9, but the body has 6 bytes")


# Finds the environs of other requests, and does to them what code that goes through all objects may do.
HUNTER = application("wsgi_found_objects_app")
ACTS = ("read", "keep", "keep_view", "change", "change_back", "clear")


def test_an_environ_that_was_found_between_two_requests_says_nothing_of_another(serve_way) -> None:
    server: Server = serve_way(HUNTER)
    found = 0
    with server.connect() as peer:
        for number in range(60):
            own = {"x_a": f"value {number}", "x_b": "b"}
            shown = json.loads(peer.request("GET", f"/a/{number}?{number}", **own).body)
            assert (shown["PATH_INFO"], shown["QUERY_STRING"]) == (f"/a/{number}", str(number))
            assert (shown["HTTP_X_A"], shown["HTTP_X_B"]) == (f"value {number}", "b")
            assert shown["REQUEST_METHOD"] == "GET"
            assert "HTTP_X_LATE" not in shown
            assert (shown["is hunted"], shown["found is as it was"]) == (False, True)
            hunt = peer.request("GET", "/hunt", x_hunt=ACTS[number % len(ACTS)])
            found += json.loads(hunt.body)["found"]
    assert found > 0 or not FAST_PATHS, "there are some to be found"
