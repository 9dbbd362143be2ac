"""The http scope over real sockets: what comes, what goes, and what is refused."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path

import pytest
from rig import Server, application, wait_for

ECHO = """
    async def app(scope, receive, send):
        await answer(send, await read(receive))
"""

LATE_ECHO = """
    async def app(scope, receive, send):
        await asyncio.sleep(0)
        data = await read(receive)
        await asyncio.sleep(0)
        await answer(send, data)
"""

SCOPE = """
    async def app(scope, receive, send):
        await answer(send, repr(scope).encode())
"""


def scope_of(reply) -> dict:
    return ast.literal_eval(reply.body.decode())


def test_scope(serve_asgi) -> None:
    server = serve_asgi(SCOPE)
    with server.connect() as peer:
        address = peer.socket.getsockname()
        reply = peer.request("GET", "/a%20b/%C3%A9?q=%20&r", X_Some="1")
    scope = scope_of(reply)
    assert scope["type"] == "http"
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.3"}
    assert (scope["http_version"], scope["method"], scope["scheme"]) == ("1.1", "GET", "http")
    assert (scope["path"], scope["raw_path"]) == ("/a b/é", b"/a%20b/%C3%A9")
    assert scope["query_string"] == b"q=%20&r"
    assert scope["headers"] == [(b"host", b"test"), (b"x-some", b"1")]
    assert scope["client"] == address
    assert scope["server"] == ("127.0.0.1", server.port)
    assert (scope["state"], scope["root_path"]) == ({}, "")
    assert set(scope["extensions"]) == {
        "http.response.pathsend",
        "http.response.zerocopysend",
        "http.response.trailers",
        "http.response.early_hint",
    }


def test_root_path_goes_before_the_path(serve_asgi) -> None:
    scope = scope_of(serve_asgi(SCOPE, "--root-path", "/api/").get("/x%20y"))
    assert (scope["root_path"], scope["path"], scope["raw_path"]) == (
        "/api",
        "/api/x y",
        b"/api/x%20y",
    )


def test_scopes_share_nothing_that_changes(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            seen = (len(scope["headers"]), dict(scope["state"]), "mine" in scope)
            scope["headers"].append((b"x", b"y"))
            scope["state"]["a"] = scope["mine"] = 1
            await answer(send, repr(seen).encode())
    """)
    with server.connect() as peer:
        replies = [peer.request("GET", "/").body for _ in range(3)]
    assert replies == [b"(1, {}, False)"] * 3


def test_http_10_and_other_methods(serve_asgi) -> None:
    server = serve_asgi(SCOPE)
    with server.connect() as peer:
        peer.send(b"PROPFIND / HTTP/1.0\r\n\r\n")
        scope = scope_of(peer.reply("PROPFIND"))
    assert (scope["http_version"], scope["method"]) == ("1.0", "PROPFIND")


@pytest.fixture(scope="module", params=[ECHO, LATE_ECHO], ids=["eager", "late"])
def echo(request: pytest.FixtureRequest, serve_asgi_module) -> Server:
    return serve_asgi_module(request.param)


@pytest.mark.parametrize("n_bytes", [0, 1, 10_000, 3_000_000])
def test_bodies_of_all_sizes(echo: Server, n_bytes: int) -> None:
    body = os.urandom(n_bytes)
    with echo.connect() as peer:
        assert peer.request("POST", "/", body).body == body
        assert peer.request("POST", "/", b"again").body == b"again"


def test_a_body_in_pieces_reaches_the_application_as_it_comes(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            await start(send)
            more = True
            while more:
                message = await receive()
                more = message["more_body"]
                await body(send, message["body"], more)
    """)
    with server.connect() as peer:
        peer.send(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.send(b"3\r\none\r\n")
        assert b"3\r\none\r\n" in peer.read_until(b"one\r\n")
        peer.send(b"3\r\ntwo\r\n")
        assert b"3\r\ntwo\r\n" in peer.read_until(b"two\r\n")
        peer.send(b"0\r\n\r\n")
        assert peer.read_until(b"0\r\n\r\n")


def test_100_continue_is_sent_when_the_body_is_asked_for(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            if scope["path"] == "/refuse":
                await start(send, 403, (b"content-length", b"0"))
                return await body(send)
            await answer(send, await read(receive))
    """)
    head = b"POST %s HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
    with server.connect() as peer:
        peer.send(head % b"/")
        assert peer.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        peer.send(b"ab")
        assert peer.reply("POST").body == b"ab"
    with server.connect() as peer:
        peer.send(head % b"/refuse")
        assert peer.reply("POST").status == 403


def test_head_gets_no_body_but_its_length(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            if scope["path"] == "/announced":
                await start(send, 200, (b"content-length", b"5"))
                return await body(send, b"" if scope["method"] == "HEAD" else b"hello")
            await answer(send, b"hello")
    """)
    with server.connect() as peer:
        for path in ("/", "/announced"):
            reply = peer.request("HEAD", path)
            assert (reply.headers["content-length"], reply.body) == ("5", b"")
        assert peer.request("GET", "/").body == b"hello"


MISTAKES = [
    ("pass", "returned without a response"),
    ("await start(send)", "returned before its response was complete"),
    ("raise KeyError('x')", "raised KeyError: 'x'"),
    ("await body(send)", "unexpected ASGI message .*: expected 'http.response.start'"),
    ("await start(send); await start(send)", "expected 'http.response.body'"),
    ("await start(send, 99)", "number from 200 to 599, got 99"),
    ("await start(send, 200, (b'a b', b'c'))", "field name is not a token"),
    ("await start(send, 200, (b'a', b'c\\r\\nd: e'))", "control byte"),
    ("await start(send, 200, ('a', 'b'))", "are bytes, got 'a': 'b'"),
    ("await start(send); await body(send, 'text')", "is bytes, got str"),
    ("await send(1)", "expects a dict, got int"),
    ("await send({})", "has no 'type'"),
    ("await send({'type': 'websocket.accept'})", "expected an ASGI message 'http.response"),
    ("await start(send, 200, (b'content-length', b'1')); await body(send, b'ab')",
     "longer than its content-length: announced 1 bytes, sent 2"),
    ("await start(send, 200, (b'content-length', b'3')); await body(send, b'ab')",
     "shorter than its content-length: announced 3 bytes, sent 2"),
    ("await start(send, 200, (b'content-length', b'x')); await body(send)",
     "does not have the announced length"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mistaken(serve_asgi_module) -> Server:
    """An application that makes the mistake of the path: its number, at once or late."""
    parts = [
        f"""
    async def mistake_{number}(scope, receive, send):
        if scope["path"].endswith("/late"):
            await asyncio.sleep(0)
        {said}
        """
        for number, (said, _) in enumerate(MISTAKES)
    ]
    return serve_asgi_module(
        "".join(parts)
        + """
    async def app(scope, receive, send):
        if scope["path"] == "/fine":
            return await answer(send, b"fine")
        await globals()["mistake_" + scope["path"].split("/")[1]](scope, receive, send)
    """
    )


@pytest.mark.parametrize("when", ["eager", "late"])
@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=lambda n: MISTAKES[n][0])
def test_mistakes_are_answered_with_500_and_explained(
    mistaken: Server, when: str, number: int
) -> None:
    with mistaken.connect() as peer:
        assert peer.request("GET", f"/{number}/{when}").status == 500
        assert peer.request("GET", "/fine").body == b"fine"
    mistaken.wait_for_log(rf"GET /{number}/{when}\b.*{MISTAKES[number][1]}")


@pytest.mark.parametrize(
    "said",
    [
        "return",
        "raise KeyError('x')",
        "await body(send, b'cdefghijkl')",
    ],
)
def test_an_answer_that_has_begun_is_cut(serve_asgi, said: str) -> None:
    server = serve_asgi(f"""
        async def app(scope, receive, send):
            await start(send, 200, (b"content-length", b"10"))
            await body(send, b"ab", True)
            await asyncio.sleep(0.01)
            {said}
    """)
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert peer.read_until(b"\r\n\r\nab")
        with pytest.raises((EOFError, ConnectionResetError)):
            peer.read_until(b"more")


def test_messages_after_the_end_are_refused(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            await answer(send, b"x")
            try:
                await body(send, b"y")
            except RuntimeError as error:
                print(error, file=sys.stderr, flush=True)
    """)
    assert server.get("/").body == b"x"
    server.wait_for_log("the response is complete already")


def test_receive_waits_for_the_disconnect(serve_asgi) -> None:
    server = serve_asgi(application("asgi_disconnect_app"))
    peer = server.connect()
    peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    peer.read_until(b"begun")
    peer.close()
    server.wait_for_log(r"told \{'type': 'http.disconnect'\}")
    # "servers D3": spec_version 2.3 says that nothing happens; but a loop that never asks has to end.
    server.wait_for_log("sent in vain")
    server.wait_for_log("raised ClientDisconnected")


def test_receive_tells_of_the_disconnect_once_the_response_is_complete(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            await read(receive)
            waiting = asyncio.create_task(receive())
            await asyncio.sleep(0)
            await answer(send, b"x")
            print((await waiting)["type"], (await receive())["type"], file=sys.stderr, flush=True)
    """)
    assert server.get("/").body == b"x"
    server.wait_for_log("http.disconnect http.disconnect")


def test_an_application_is_not_cancelled_when_its_client_goes(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            print("working", file=sys.stderr, flush=True)
            await asyncio.sleep(0.1)
            print("done", file=sys.stderr, flush=True)
            await answer(send, b"x")
    """)
    peer = server.connect()
    peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    server.wait_for_log("working")
    peer.reset()
    server.wait_for_log("done")
    assert server.get("/").body == b"x"
    assert "Traceback" not in server.err


def test_work_after_the_response_goes_on_and_delays_the_stop(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            await answer(send, b"x")
            await asyncio.sleep(2)
            print("worked", file=sys.stderr, flush=True)
    """)
    assert server.get("/").body == b"x"
    assert "worked" not in server.err
    import signal

    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "worked" in server.err


def test_a_slow_reader_holds_the_application_back(serve_asgi) -> None:
    server = serve_asgi(application("asgi_slow_reader_app"))
    with server.connect(receive_buffer_bytes=4096) as slow:
        slow.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        slow.read_until(b"\r\n\r\n")
        before = -1

        def stands_still() -> bool:
            nonlocal before
            time.sleep(0.05)  # between two looks
            now = int(server.get("/sent").body)
            before, last = now, before
            return now == last

        wait_for(stands_still, "the application to be held back")
        assert before < 12_000_000
        left = 16_000_000 - len(slow._received)
        while left > 0:
            left -= len(slow.socket.recv(1 << 20))
    wait_for(lambda: int(server.get("/sent").body) == 16_000_000, "the rest")


def test_an_endless_stream_ends_with_its_client(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            await start(send)
            try:
                while True:
                    await body(send, bytes(100_000), True)
            except OSError:
                print("over", file=sys.stderr, flush=True)
                raise
    """)
    peer = server.connect(receive_buffer_bytes=4096)
    peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    peer.read_until(b"\r\n\r\n")
    peer.close()
    server.wait_for_log("over")


def test_a_wait_for_receive_can_be_given_up(serve_asgi) -> None:
    server = serve_asgi(application("asgi_given_up_receive_app"))
    assert server.get("/").body == b"x"


def test_files_early_hints_and_trailers(serve_asgi, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "file").write_bytes(content)
    server = serve_asgi(application("asgi_extensions_app"))
    with server.connect() as peer:
        assert peer.request("GET", "/path").body == content
        assert peer.request("HEAD", "/path").headers["content-length"] == "300000"
        assert peer.request("GET", "/missing").status == 500
        pieces = peer.request("GET", "/pieces").body
        assert pieces == b"abc" + content[100_000:200_000] + content[250_000:]
        # Nothing will ever come out of it, and the loop must not wait for that.
        assert b"regular file" in peer.request("GET", "/pipe").body
        peer.send(b"GET /hint HTTP/1.1\r\nhost: a\r\n\r\n")
        assert peer.read_until(b"\r\n\r\n") == (
            b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"
        )
        assert peer.reply("GET").body == b"x"
        peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        assert peer.read_until(b"\r\n\r\n") == b"1\r\nx\r\n0\r\ndigest: 1\r\nmore: 2\r\n\r\n"
    server.wait_for_log("no/such/file")


def test_every_request_has_a_context_and_a_task_of_its_own(serve_asgi) -> None:
    server = serve_asgi(application("asgi_contexts_app"))
    with server.connect() as peer:
        for path in ("/", "/late", "/", "/late"):
            assert peer.request("GET", path).body == b"0 True"


def test_pipelined_answers_keep_their_order(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            if scope["path"] == "/slow":
                await asyncio.sleep(0.05)
            await answer(send, scope["path"].encode())
    """)
    with server.connect() as peer:
        paths = ["/slow", "/fast", "/slow", "/other"]
        peer.send(b"".join(b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % p.encode() for p in paths))
        assert [peer.reply("GET").body.decode() for _ in paths] == paths


def test_what_the_application_keeps_in_the_scope_is_no_leak(serve_asgi) -> None:
    server = serve_asgi(application("asgi_kept_scopes_app"))
    with server.connect() as peer:
        for path in ("/", "/late", "/raise", "/uncallable") * 3:
            peer.request("POST", path, b"x")
        # The one that asks is alive.
        assert peer.request("GET", "/count").body == b"1"


def test_a_decoded_path_forges_no_line_of_the_log(serve_asgi) -> None:
    server = serve_asgi("""
        async def app(scope, receive, send):
            raise ValueError("no")
    """)
    assert server.get("/a%0d%0aforged%1b[2J").status == 500
    server.wait_for_log(r"GET /a%0d%0aforged%1b\[2J: the ASGI application raised")
    assert "\nforged" not in server.err


def test_a_source_that_waits_is_cancelled_and_what_follows_runs(serve_asgi) -> None:
    """servers D3: as Starlette's StreamingResponse with a background task; forty clients leave."""
    server = serve_asgi(application("asgi_background_app"))
    for _ in range(40):
        with server.connect() as peer:
            peer.send(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
            peer.read_until(b"piece")
    server.wait_for_log("closed", count=40)
    server.wait_for_log("background", count=40)
    assert server.get("/").body == b"here"
