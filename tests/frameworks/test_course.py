"""Every framework over the course of `apps/course.py`, compared with the server it is usually run by."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from asking import HOST, Client, ask
from rig import wait_for
from servers import Pair, Running, connect

WSGI_WAYS = {"inline": (), "threads": ("--threads", "4"), "gevent": ("--loop", "gevent")}
ASGI = {
    "starlette": "starlette_app:app",
    "fastapi": "fastapi_app:app",
    "litestar": "litestar_app:app",
    "quart": "quart_app:app",
    "blacksheep": "blacksheep_app:app",
    "falcon": "falcon_asgi:app",
    "django": "shop.asgi:application",
}
WSGI = {"flask": "flask_app:app", "falcon": "falcon_wsgi:app", "django": "shop.wsgi:application"}
PAIRS = [
    *(
        pytest.param(("asgi", target, (), {"SHOP_ASYNC": "1"}), id=f"{name}-asgi")
        for name, target in ASGI.items()
    ),
    *(
        pytest.param(("wsgi", target, options, {}), id=f"{name}-wsgi-{way}")
        for name, target in WSGI.items()
        for way, options in WSGI_WAYS.items()
    ),
]
# BlackSheep knows no 405, Django asks for a CSRF token first.
STATUSES_OF_THEIR_OWN = ("blacksheep_app:app", "shop.asgi:application", "shop.wsgi:application")
pytestmark = pytest.mark.parametrize("pair", PAIRS, indirect=True, scope="module")

WINDOW_BYTES = 65536
BOUNDARY = "a-boundary"
PICTURE = bytes(range(256)) * 300


@pytest.fixture(scope="module", autouse=True)
def database(django_database) -> None:
    """Django's projects want one."""


def test_an_answer(pair: Pair) -> None:
    answer = pair.same(lambda server: ask(server, "GET", "/hello"))
    assert (answer.status, answer.body) == (200, b"Hello, world")


def test_head(pair: Pair) -> None:
    answer = pair.same(lambda server: ask(server, "HEAD", "/hello"))
    assert answer.body == b""


@pytest.mark.parametrize(
    "path",
    ["/greet/Ada", "/greet/Ada?times=3", "/greet/J%C3%BCrgen%20M", "/greet/a%2Bb", "/greet/a%25b"],
)
def test_paths_and_queries(pair: Pair, path: str) -> None:
    answer = pair.same(lambda server: ask(server, "GET", path))
    assert answer.status == 200
    assert set(json.loads(answer.body)) == {"name", "times"}


def test_what_the_framework_sees(pair: Pair) -> None:
    head = (
        f"GET /show?a=1&b=%20&c HTTP/1.1\r\nHost: {HOST}\r\nX-One: 1\r\nAccept: text/html, */*;q=0.1\r\n"
        "Cookie: a=b; c=d\r\nX-One: \xe9\r\nX_One: forged\r\n\r\n"
    ).encode("latin-1")

    def show(server: Running) -> str:
        with connect(server) as peer:
            peer.send(head)
            # Lines of one name are joined by one server with a comma, by another with a space as well.
            return peer.reply().body.decode().replace("1, ", "1,")

    text = pair.same(show)
    shown = json.loads(text)
    assert (shown["client"], shown["query"]) == ("127.0.0.1", "a=1&b=%20&c")
    assert shown["fields"]["host"] == HOST
    assert "forged" not in text


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
def test_bodies_both_ways(pair: Pair, size: int, is_chunked: bool) -> None:
    body = os.urandom(size)

    def echo(server: Running):
        parts = (body[at : at + 50_000] for at in range(0, size, 50_000))
        headers = {"content-type": "application/octet-stream"}
        content = parts if is_chunked else body
        return ask(server, "POST", "/echo", content=content, headers=headers)

    # Falcon and Django read as much as CONTENT_LENGTH says. Citius says it of a chunked body too, once it
    # has all of it; gunicorn never does.
    by_length = is_chunked and pair.ours.target in ("falcon_wsgi:app", "shop.wsgi:application")
    if by_length and size > WINDOW_BYTES and not pair.ours.is_inline:
        pytest.skip("read while it comes, and a chunked body has no length then")
    answer = echo(pair.ours) if by_length else pair.same(echo)
    assert answer.status == 200
    assert answer.body == body


def test_forms(pair: Pair) -> None:
    data = {"a": "1 & ü", "b": "="}
    answer = pair.same(lambda server: ask(server, "POST", "/form", data=data))
    assert json.loads(answer.body) == data


def test_uploads(pair: Pair) -> None:
    def upload(server: Running):
        files = {"file": ("holiday ü.png", PICTURE, "image/png")}
        headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
        return ask(server, "POST", "/upload", data={"title": "Sea"}, files=files, headers=headers)

    shown = json.loads(pair.same(upload).body)
    assert shown["sha256"] == hashlib.sha256(PICTURE).hexdigest()
    assert (shown["title"], shown["size"], shown["content_type"]) == (
        "Sea", len(PICTURE), "image/png",
    )  # fmt: skip


def test_streamed_pieces_come_as_they_are_made(pair: Pair) -> None:
    def stream(server: Running) -> list[bytes]:
        with connect(server) as peer:
            peer.send(f"GET /stream HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            head = peer.read_until(b"\r\n\r\n").lower()
            assert b"transfer-encoding: chunked" in head
            pieces, times = [], []
            for piece in peer.chunks():
                pieces.append(piece)
                times.append(time.monotonic())
            assert times[-1] - times[0] > 0.25, "they were kept back"
            # The connection is good for another.
            assert peer.request("GET", "/hello", host=HOST).status == 200
            return pieces

    assert pair.same(stream) == [b"one\n", b"two\n", b"three\n"]


def test_a_client_that_leaves_a_stream_ends_it(pair: Pair) -> None:
    def left(server: Running) -> int:
        return int(ask(server, "GET", "/left").body)

    def leave(server: Running) -> int:
        before = left(server)
        with connect(server, receive_buffer_bytes=65536) as peer:
            peer.send(f"GET /endless HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            peer.read(300_000)
        wait_for(lambda: left(server) > before, f"{server.name} to end the stream")
        return left(server) - before

    # uvicorn raises nothing if an application sends to a disconnected client; these two do not check.
    if pair.ours.target not in ("blacksheep_app:app", "falcon_asgi:app"):
        assert leave(pair.theirs) >= 1
    assert leave(pair.ours) == 1


def test_a_client_that_leaves_an_upload_harms_nobody(pair: Pair) -> None:
    def leave(server: Running) -> int:
        with connect(server) as peer:
            head = f"POST /echo HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 200000\r\n\r\n"
            peer.send(head.encode() + b"x" * 100_000)
            peer.reset()
        return ask(server, "GET", "/hello").status

    assert pair.same(leave) == 200


def test_errors(pair: Pair) -> None:
    answer = pair.same(lambda server: ask(server, "GET", "/fail"))
    assert answer.status == 500
    assert b"Mistake" not in answer.body
    if pair.ours.target != "litestar_app:app":  # which keeps it to itself unless told otherwise
        pair.ours.wait_for_log("Mistake: now")


def test_errors_after_the_head(pair: Pair) -> None:
    def fail(server: Running) -> tuple[bytes, bool]:
        taken = b""
        with Client(server) as client, client.stream("GET", "/fail-later") as response:
            assert response.status_code == 200
            try:
                for piece in response.iter_raw():
                    taken += piece
            except (httpx.RemoteProtocolError, httpx.ReadError):
                return taken, True
        return taken, False

    taken, _ = pair.same(fail)
    assert taken == b"begun\n"
    assert ask(pair.ours, "GET", "/hello").status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/missing", 404),
        ("HEAD", "/missing", 404),
        ("GET", "/echo", 405),
        ("DELETE", "/hello", 405),
        ("GET", "/cookies", 200),
        ("GET", "/redirect", None),
        ("GET", "/nothing", 204),
        ("HEAD", "/nothing", 204),
        ("GET", "/", 404),
        ("GET", "/%2e%2e/hello", 404),
    ],
)
def test_other_answers(pair: Pair, method: str, path: str, status: int | None) -> None:
    answer = pair.same(lambda server: ask(server, method, path))
    if pair.ours.target not in STATUSES_OF_THEIR_OWN:
        # Not every framework answers HEAD where GET is declared.
        others = (302, 307) if status is None else (405,) if method == "HEAD" else ()
        assert answer.status == status or answer.status in others


def test_options_and_unknown_methods(pair: Pair) -> None:
    for method in ("OPTIONS", "PROPFIND"):
        pair.same(lambda server, method=method: ask(server, method, "/hello"))


def test_the_connection_outlives_errors(pair: Pair) -> None:
    def outlive(server: Running) -> list[int]:
        with connect(server) as peer:
            asked = (
                ("GET", "/missing"),
                ("DELETE", "/hello"),
                ("GET", "/nothing"),
                ("GET", "/hello"),
            )
            return [peer.request(method, path, host=HOST).status for method, path in asked]

    statuses = pair.same(outlive)
    assert (statuses[0], statuses[2:]) == (404, [204, 200])
    assert 400 <= statuses[1] < 500


def test_files(pair: Pair, folder: Path) -> None:
    answer = pair.same(lambda server: ask(server, "GET", "/file"))
    assert answer.body == (folder / "course.bin").read_bytes()
    pair.same(lambda server: ask(server, "HEAD", "/file"))
    pair.same(lambda server: ask(server, "GET", "/file", headers={"range": "bytes=10-19"}))


@pytest.mark.parametrize(
    "options",
    [
        ["/hello"],
        ["-I", "/hello"],
        ["--http1.0", "/hello"],
        ["-H", "Expect: 100-continue", "--data-binary", "x" * 3000, "/echo"],
        ["-F", "title=Sea", "-F", "file=@course.bin;type=image/png", "/upload"],
        ["-L", "/redirect"],
        ["/hello", "/missing", "/nothing", "/hello"],
    ],
    ids=lambda options: " ".join(word[:24] for word in options),
)
def test_curl(pair: Pair, folder: Path, options: list[str]) -> None:
    def curl(server: Running) -> tuple[int, bytes]:
        words = [server.url + word if word.startswith("/") else word for word in options]
        # %{num_connects}: how many connections the whole took.
        command = ["curl", "-sS", "-m", "20", "-H", f"Host: {HOST}", "-o", "-", "-w"]
        told = "|%{http_code} %{content_type} %{num_redirects}|"
        done = subprocess.run([*command, told, *words], capture_output=True, cwd=folder, timeout=30)
        return done.returncode, done.stdout.rpartition(b"\r\n")[2]

    code, _ = pair.same(curl)
    assert code == 0
