"""One request, one answer, over a real socket: methods, framing, keep-alive, pipelining."""

from __future__ import annotations

import json
import subprocess

import pytest
from rig import Server, application

APP = application("exchange_app")


@pytest.fixture(scope="module")
def server(serve_module) -> Server:
    return serve_module(APP)


def test_a_plain_answer(server: Server) -> None:
    reply = server.get("/")
    assert (reply.status, reply.body) == (200, b"Hello")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["content-length"] == "5"
    assert reply.headers["server"] == "citius"
    assert "GMT" in reply.headers["date"]


def test_curl_agrees(server: Server) -> None:
    done = subprocess.run(
        ["curl", "-sS", "-i", "-d", "body", f"http://127.0.0.1:{server.port}/echo"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith(b"HTTP/1.1 200 OK\r\n")
    assert done.stdout.endswith(b"\r\n\r\nbody")


def test_everything_a_request_says(server: Server) -> None:
    reply = server.get("/seen?a=1&b=x%20y", cookie="k=v", x_one="1")
    seen = json.loads(reply.body)
    assert seen["method"] == "GET"
    assert (seen["path"], seen["raw_path"]) == ("/seen", "/seen")
    assert seen["target"] == "/seen?a=1&b=x%20y"
    assert seen["query"] == {"a": "1", "b": "x y"}
    assert seen["headers"] == [["host", "test"], ["cookie", "k=v"], ["x-one", "1"]]
    assert seen["cookies"] == {"k": "v"}
    assert seen["client"][0] == "127.0.0.1"
    assert (seen["version"], seen["scheme"]) == ("1.1", "http")


def test_204_has_no_body_and_no_length(server: Server) -> None:
    reply = server.get("/nothing")
    assert reply.status == 204
    assert "content-length" not in reply.headers
    assert "transfer-encoding" not in reply.headers


def test_head_is_get_without_a_body(server: Server) -> None:
    with server.connect() as peer:
        head = peer.request("HEAD", "/")
        assert (head.status, head.headers["content-length"]) == (200, "5")
        assert peer.request("GET", "/").body == b"Hello"  # the connection is in step


def test_no_route_and_no_method(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/nope").status == 404
        wrong = peer.request("DELETE", "/seen")
        assert wrong.status == 405
        assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}
        assert peer.request("GET", "/items/x").status == 404
        assert peer.request("GET", "/items/7").body == b'{"id":7}'
        assert peer.request("GET", "/files/a/b%2Fc").body == b"a/b/c"


def test_options_asterisk_and_absolute_form(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("OPTIONS", "*").status in (200, 204)
        assert peer.request("GET", "http://test/").body == b"Hello"


def test_http_1_0_closes_unless_asked_to_keep(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert peer.reply().headers["connection"].lower() == "keep-alive"
        peer.send(b"GET / HTTP/1.0\r\n\r\n")
        assert peer.reply().body == b"Hello"
        assert peer.is_closed()


@pytest.mark.parametrize("path", ["/echo", "/echo-async"])
class TestBodies:
    def test_by_length(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            for size in (0, 1, 1000, 200_000):
                assert peer.request("POST", path, b"x" * size).body == b"x" * size

    def test_chunked_with_extension_and_trailer(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            peer.send(
                f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
                + b"4;a=b\r\nabcd\r\n1\r\ne\r\n0\r\nX-Sum: 1\r\n\r\n"
            )
            assert peer.reply().body == b"abcde"
            assert peer.request("GET", "/").status == 200

    def test_byte_by_byte(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            for byte in f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".encode():
                peer.send(bytes([byte]))
            assert peer.reply().body == b"abc"

    def test_expect_100_continue(self, server: Server, path: str) -> None:
        with server.connect() as peer:
            peer.send(
                f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                "Expect: 100-continue\r\n\r\n".encode()
            )
            assert peer.reply().status == 100
            peer.send(b"abc")
            assert peer.reply().body == b"abc"


def test_pipelined_answers_leave_in_order_and_run_at_once(server: Server) -> None:
    with server.connect() as peer:
        pauses = [400, 1, 300, 0, 350, 200, 100, 380]
        requests = "".join(f"GET /slow/{ms} HTTP/1.1\r\nHost: a\r\n\r\n" for ms in pauses)
        peer.send(requests.encode())
        assert [int(peer.reply().body) for _ in pauses] == pauses
        assert int(server.get("/slow-at-once").body) >= 6, "they ran one after the other"


def test_many_pipelined_requests(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        assert all(peer.reply().body == b"Hello" for _ in range(1000))


def test_connection_close_in_the_middle_of_a_pipeline_ends_it(server: Server) -> None:
    with server.connect() as peer:
        peer.send(
            b"GET /slow/50 HTTP/1.1\r\nHost: a\r\n\r\n"
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        assert peer.reply().body == b"50"
        last = peer.reply()
        assert (last.body, last.headers["connection"]) == (b"Hello", "close")
        assert peer.is_closed()


def test_a_framing_error_ends_the_connection(server: Server) -> None:
    with server.connect() as peer:
        peer.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n"
            b"\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        assert peer.reply().status == 400
        assert peer.is_closed()


def test_headers_can_be_switched_off(serve) -> None:
    server = serve(APP, "--no-server-header", "--no-date-header")
    reply = server.get("/")
    assert "server" not in reply.headers
    assert "date" not in reply.headers


def test_a_unix_socket(serve, tmp_path) -> None:
    path = tmp_path / "s"
    server = serve(APP, "--uds", str(path))
    assert server.get("/").body == b"Hello"
    assert json.loads(server.get("/seen").body)["client"] is None
    server.process.terminate()
    assert server.wait() == 0
    assert not path.exists()
