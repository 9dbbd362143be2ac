"""What one request does to its scope, its callables or its headers, no other request sees.

The server makes as little as it can anew for each request (``gateway/asgi/scope.rs``): here applications do
what would show if it made too little.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from citius._core import FAST_PATHS
from h2peer import connect
from rig import Server, application

Ask = Callable[[], bytes]


@contextmanager
def http1(server: Server) -> Iterator[Ask]:
    with server.connect() as peer:
        yield lambda: peer.request("GET", "/").body


@contextmanager
def http2(server: Server) -> Iterator[Ask]:
    with connect(server) as peer:
        streams = iter(range(1, 1000, 2))
        yield lambda: bytes(peer.get(next(streams), "/").body)


@pytest.fixture(params=[http1, http2])
def asking(request: pytest.FixtureRequest) -> Callable[[Server], object]:
    return request.param


@pytest.mark.parametrize("env", [{}, {"SUSPENDS": "1"}], ids=["at_once", "late"])
def test_changes_of_a_scope_are_its_request_s_alone(
    serve_asgi, asking, env: dict[str, str]
) -> None:
    server = serve_asgi(application("asgi_changed_scopes_app"), env=env)
    with asking(server) as ask:
        first = ask()
        assert set(ast.literal_eval(first.decode())) >= {"headers", "state", "extensions", "asgi"}
        for number in range(1, 50):
            assert ask() == first, number


def test_what_a_request_keeps_is_nobody_else_s(serve_asgi, asking) -> None:
    server = serve_asgi(application("asgi_kept_requests_app"))
    with asking(server) as ask:
        for number in range(1, 45):
            assert ask() == f"0 {number // 2}".encode()


def test_callables_are_known_by_weak_references_too(serve_asgi) -> None:
    server = serve_asgi("""
    import weakref
    known = []

    async def app(scope, receive, send):
        seen = sum(one() in (receive, send) for one in known)
        known.append(weakref.ref(send if len(known) % 2 else receive))
        await answer(send, f"{seen} {len(known)}".encode())
    """)
    with server.connect() as peer:
        for number in range(1, 9):
            assert peer.request("GET", "/").body == f"0 {number}".encode()


def test_a_send_that_was_kept_answers_nobody_else(serve_asgi) -> None:
    server = serve_asgi(application("asgi_kept_send_app"))
    with server.connect() as peer:
        assert peer.request("GET", "/").body == b"nothing"
        for _ in range(3):
            reply = peer.request("GET", "/")
            assert (reply.status, b"complete already" in reply.body) == (200, True)


def test_what_a_request_puts_into_its_scope_goes_with_it(serve_asgi, asking) -> None:
    server = serve_asgi(application("asgi_weak_scopes_app"))
    with asking(server) as ask:
        for _ in range(15):
            assert ask() == b"0"


def test_a_body_that_nobody_reads_is_not_the_next_request_s(serve_asgi) -> None:
    server = serve_asgi("""
    async def app(scope, receive, send):
        if scope["method"] == "PUT":
            return await answer(send, b"unread")
        await answer(send, await read(receive))
    """)
    with server.connect() as peer:
        for _ in range(3):
            assert peer.request("PUT", "/", b"mine").body == b"unread"
            assert peer.request("POST", "/", b"yours").body == b"yours"
            assert peer.request("GET", "/").body == b""


def test_fields_are_told_as_sent_whatever_was_sent_before(serve_asgi) -> None:
    server = serve_asgi("""
    async def app(scope, receive, send):
        await answer(send, repr((scope["path"], scope["query_string"], scope["headers"])).encode())
    """)
    sections: list[list[tuple[str, str]]] = [
        [],
        [("accept", "*/*"), ("cookie", "a=1")],
        [("accept", "*/*"), ("cookie", "a=2")],
        [("cookie", "a=1"), ("accept", "*/*")],
        [("accept", "*/*"), ("Cookie", "a=1")],
        [("x", "y" * 3000)],
        [(f"x-{number}", "y") for number in range(50)],
    ]
    targets = ["/", "/a", "/?q", "/a?q", "/a?", "/" + "b" * 300, "/%61"]
    with server.connect() as peer:
        for number in range(150):
            # Each section some times in a row, and again later.
            section = sections[number // 4 % len(sections)]
            target = targets[number % len(targets)]
            lines = "".join(f"{name}: {value}\r\n" for name, value in section)
            peer.send(f"GET {target} HTTP/1.1\r\nhost: a\r\n{lines}\r\n".encode())
            path, _, query = target.partition("?")
            told = [(b"host", b"a")]
            told += [(name.lower().encode(), value.encode()) for name, value in section]
            expected = (path.replace("%61", "a"), query.encode(), told)
            assert ast.literal_eval(peer.reply("GET").body.decode()) == expected


def test_headers_are_sent_as_said_whatever_was_said_before(serve_asgi) -> None:
    server = serve_asgi(application("asgi_headers_app"))
    text, more = ("content-type", "text/plain"), ("content-length", "1")
    expected: list[list[tuple[str, str]]] = [
        [more],
        [text, more],
        [("content-type", "text/html"), more],
        [text, ("x", "1"), more],
        [text, ("x", "2"), more],
        [text, ("x", "2"), more],
        [("set-cookie", "a=1"), ("set-cookie", "b=2"), more],
        [("x", "3"), more],
        [("x", "4"), more],
    ]
    with server.connect() as peer:
        for number in [n // 3 for n in range(60)] + list(range(60)):
            peer.send(b"GET /?%d HTTP/1.1\r\nhost: a\r\n\r\n" % number)
            head = peer.read_until(b"\r\n\r\n").decode().splitlines()[1:-1]
            assert peer.read(1) == b"x", server.err
            lines = [tuple(line.split(": ", 1)) for line in head]
            lines = [line for line in lines if line[0] not in ("date", "server")]
            assert lines == expected[number % len(expected)], number


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("[(b'x', b'1'), (b'content-length', b'one')]", "content-length"),
        ("[(b'x', b'1'), (b'content-length', b'2')]", "shorter than its content-length"),
        ("[(b'x', b'1\\r\\ny: 2'), (b'content-length', b'1')]", "header"),
        ("[(b'x', '1'), (b'content-length', b'1')]", "are bytes"),
        ("[(b'content-length', b'1'), (b'content-length', b'2')]", "content-length"),
    ],
)
def test_headers_that_are_wrong_are_refused_after_right_ones(serve_asgi, wrong, why) -> None:
    server = serve_asgi(f"""
    RIGHT = [[(b"x", b"1"), (b"content-length", b"1")],
             [(b"content-length", b"1"), (b"content-length", b"1")]]

    async def app(scope, receive, send):
        headers = {wrong} if scope["path"] == "/wrong" else RIGHT[len(scope["path"]) % 2]
        await send({{"type": "http.response.start", "status": 200, "headers": headers}})
        await body(send, b"x")
    """)
    with server.connect() as peer:
        ask = partial(peer.request, "GET")
        assert [ask(path).status for path in ("/", "/", "/a", "/a")] == [200] * 4
        assert ask("/wrong").status == 500
        assert ask("/").status == 200
    server.wait_for_log(why)


def test_callables_that_are_found_between_requests_are_no_request_s(serve_asgi) -> None:
    server = serve_asgi(application("asgi_found_callables_app"))
    with server.connect() as peer:
        assert peer.request("GET", "/").body == b"[false, []]"
        for _ in range(3):
            assert peer.request("GET", "/find").status == 200
            seen = peer.request("GET", "/")
            assert seen.status == 200, server.err
            # Nothing is left to be found where nothing is reused.
            heard = ["OSError", "http.disconnect"] if FAST_PATHS else []
            assert json.loads(seen.body) == [False, heard]
    assert "defect" not in server.err


def test_scopes_that_are_found_between_requests_are_no_request_s(serve_asgi) -> None:
    server = serve_asgi(application("asgi_found_scopes_app"))
    with server.connect() as peer:
        first = peer.request("GET", "/").body
        for _ in range(3):
            assert peer.request("GET", "/find").body == first.replace(b"'/'", b"'/find'")
            assert peer.request("GET", "/").body == first
