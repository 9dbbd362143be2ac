"""`--header`: fields of every response, of the application or the server, unless the response has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.settings.config import Config
from citius.settings.loading import load
from h2peer import connect
from rig import Server, application, citius
from wspeer import upgrade

APP = application("default_headers_app")
ARGUMENTS = [
    "--header", "X-Frame-Options:DENY", "--header", "vary: accept, cookie", "--header", "X-Empty:",
]  # fmt: skip


def said(head: bytes, name: str) -> list[str]:
    """All values of a field, in their order."""
    found = re.findall(rb"(?mi)^%s:[ \t]*(.*?)\r$" % name.encode(), head)
    return [value.decode() for value in found]


@pytest.fixture
def server(serve: Callable[..., Server], tmp_path: Path) -> Server:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.txt").write_text("a file")
    return serve(APP, *ARGUMENTS, "--static", "/files=files", "--health", "/-")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/empty", 204), ("/stream", 200), ("/nowhere", 404), ("/files/a.txt", 200),
     ("/-/live", 200)],
)  # fmt: skip
def test_every_answer_has_them(server: Server, path: str, status: int) -> None:
    with server.connect() as peer:
        for _ in range(2):  # made anew, and from the template
            reply = peer.request("GET", path)
            assert reply.status == status
            assert said(reply.raw_head, "x-frame-options") == ["DENY"]
            assert said(reply.raw_head, "vary")[0] == "accept, cookie"
            assert said(reply.raw_head, "x-empty") == [""]


def test_heads_and_refusals_have_them(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("HEAD", "/").headers["x-frame-options"] == "DENY"
        peer.send(b"NONSENSE\r\n\r\n")
        reply = peer.reply()
        assert (reply.status, reply.headers["x-frame-options"]) == (400, "DENY")


def test_an_answer_that_says_the_same_is_left_alone_and_lists_add_up(server: Server) -> None:
    reply = server.get("/own")
    assert said(reply.raw_head, "x-frame-options") == ["SAMEORIGIN"]
    assert said(reply.raw_head, "vary") == ["accept, cookie", "origin"]
    assert said(reply.raw_head, "server") == ["mine"]


def test_a_media_type_is_for_answers_without_one(serve: Callable[..., Server]) -> None:
    server = serve(APP, "--header", "content-type: application/x-none")
    assert said(server.get("/").raw_head, "content-type") == ["text/plain; charset=utf-8"]
    assert said(server.get("/type").raw_head, "content-type") == ["text/csv"]
    assert said(server.get("/empty").raw_head, "content-type") == ["application/x-none"]


def test_handshakes_of_websockets_have_them(server: Server) -> None:
    with server.connect() as peer:
        reply, _ = upgrade(peer, "/socket")
        assert reply.status == 101
        assert said(reply.raw_head, "x-frame-options") == ["DENY"]


def test_http2_has_them_again_and_again(server: Server) -> None:
    with connect(server) as client:
        for stream in (1, 3, 5):
            headers = client.get(stream, "/").headers
            assert (headers["x-frame-options"], headers["vary"]) == ("DENY", "accept, cookie")
        assert client.get(7, "/own").headers["x-frame-options"] == "SAMEORIGIN"


def test_other_interfaces_have_them(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "async def asgi(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'a', b'b')]})\n"
        "    await send({'type': 'http.response.body', 'body': b'hello'})\n"
        "def wsgi(environ, start_response):\n"
        "    start_response('200 OK', [('A', 'b')])\n"
        "    return [b'hello']\n"
    )
    for attribute in ("asgi", "wsgi"):
        given = [f"main:{attribute}", "--port", "0", "--lifespan", "off", *ARGUMENTS]
        server = Server(given, {}, tmp_path)
        try:
            reply = server.wait_ready().get("/")
        finally:
            server.kill()
        assert (reply.headers["a"], reply.headers["x-frame-options"]) == ("b", "DENY")


def test_the_server_field_is_replaced(serve: Callable[..., Server]) -> None:
    server = serve(APP, "--header", "Server: nobody", "--no-server-header")
    assert said(server.get("/").raw_head, "server") == ["nobody"]


def test_the_environment_has_one_a_line_and_a_file_a_list(tmp_path: Path) -> None:
    given = load({}, {"CITIUS_HEADER": "x-a: 1, 2:3\nX-B:4"})
    assert given.default_response_headers == [("x-a", "1, 2:3"), ("x-b", "4")]
    (tmp_path / "pyproject.toml").write_text('[tool.citius]\nheader = ["x-a: b", "server: c"]\n')
    config = load({"app_dir": str(tmp_path)}, {})
    assert (config.default_response_headers, config.server_name) == ([("x-a", "b")], "c")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x-a", "expected NAME:VALUE, got 'x-a'"),
        (":b", "expected NAME:VALUE"),
        ("x a: b", "'x a' is no name of a header"),
        ("x-ä: b", "is no name of a header"),
        ("x-a: b\r\nset-cookie: c", "control character"),
        ("Content-Length: 5", "the server itself sets content-length"),
        ("date: x", "the server itself sets date"),
        ("Transfer-Encoding: chunked", "the server itself sets transfer-encoding"),
        ("TE: trailers", "the server itself sets te"),
    ],
)
def test_what_no_header_can_be_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Config(header=(text,))


def test_the_command_line_says_so() -> None:
    done = citius("serve", "x:app", "--header", "connection: close")
    assert done.returncode == 2
    assert "the server itself sets connection" in done.stderr
