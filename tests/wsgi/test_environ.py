"""What an environ says: PEP 3333, "environ Variables" and "URL Reconstruction"."""

from __future__ import annotations

import json
import resource
import signal
from itertools import count
from pathlib import Path

from rig import Server

SHOW = """
def application(environ, start_response):
    shown = {k: v for k, v in environ.items() if isinstance(v, (str, bool, tuple))}
    shown["is dict"] = type(environ) is dict
    shown["errors"] = environ["wsgi.errors"] is sys.stderr
    return answer(start_response, json.dumps(shown).encode())
"""


def environ_of(server: Server, raw: bytes) -> dict:
    """The environ that a request made of bytes leads to."""
    with server.connect() as peer:
        peer.send(raw)
        return json.loads(peer.reply().body)


SOCKET = """
def application(environ, start_response):
    names = [name for name in environ if name.endswith(("socket", "websocket"))]
    return answer(start_response, json.dumps(names).encode())
"""


def test_a_request_for_a_websocket_is_explained_once(serve_way) -> None:
    server = serve_way(SOCKET)
    asked = {
        "connection": "upgrade", "upgrade": "websocket", "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    for path in ("/first", "/second"):
        assert server.get(path, **asked).body == b"[]"
    server.wait_for_log("WARN  GET /first asks for a WebSocket, and the environ .* has no socket")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.err.count("asks for a WebSocket") == 1


def test_a_plain_get(serve_way_once) -> None:
    server = serve_way_once(SHOW)
    environ = environ_of(server, b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")
    assert environ["REQUEST_METHOD"] == "GET"
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"], environ["QUERY_STRING"]) == ("", "/", "")
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("127.0.0.1", str(server.port))
    assert environ["SERVER_PROTOCOL"] == "HTTP/1.1"
    assert environ["HTTP_HOST"] == "shop.test"
    assert environ["REMOTE_ADDR"] == "127.0.0.1"
    assert 0 < int(environ["REMOTE_PORT"]) < 65536
    assert environ["wsgi.version"] == [1, 0]
    assert environ["wsgi.url_scheme"] == "http"
    assert environ["wsgi.input_terminated"] is True
    assert (environ["wsgi.run_once"], environ["wsgi.multiprocess"]) == (False, False)
    assert environ["is dict"]
    assert environ["errors"]
    assert "CONTENT_LENGTH" not in environ
    assert "CONTENT_TYPE" not in environ


def test_threads_are_told_of_only_where_there_are_several(serve_wsgi) -> None:
    get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    told = {
        threads: environ_of(serve_wsgi(SHOW, "--threads", threads), get)["wsgi.multithread"]
        for threads in ("0", "1", "2")
    }
    assert told == {"0": False, "1": False, "2": True}


def test_several_workers_are_told_of(serve_wsgi) -> None:
    server = serve_wsgi(SHOW, "--workers", "2")
    assert environ_of(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")["wsgi.multiprocess"] is True


def test_paths_are_decoded_to_latin_1_and_kept_raw(serve_wsgi_once) -> None:
    server = serve_wsgi_once(SHOW)
    environ = environ_of(server, b"GET /caf%C3%A9/a%2Fb%ff?q=%20x&y HTTP/1.1\r\nHost: a\r\n\r\n")
    assert environ["PATH_INFO"] == "/caf\u00c3\u00a9/a/b\u00ff"
    assert environ["QUERY_STRING"] == "q=%20x&y"
    assert environ["REQUEST_URI"] == environ["RAW_URI"] == "/caf%C3%A9/a%2Fb%ff?q=%20x&y"


def test_a_second_request_is_not_mistaken_for_the_first(serve_wsgi_once) -> None:
    server = serve_wsgi_once(SHOW)
    with server.connect() as peer:
        peer.send(
            b"POST /x?y HTTP/1.0\r\nConnection: keep-alive\r\nX-A: 1\r\nContent-Length: 1\r\n\r\nb"
        )
        first = json.loads(peer.reply().body)
        peer.send(b"GET / HTTP/1.1\r\nHost: b\r\nX-A: 2\r\n\r\n")
        second = json.loads(peer.reply().body)
    assert (first["SERVER_PROTOCOL"], first["REQUEST_METHOD"]) == ("HTTP/1.0", "POST")
    assert "HTTP_HOST" not in first
    assert (second["SERVER_PROTOCOL"], second["REQUEST_METHOD"]) == ("HTTP/1.1", "GET")
    assert (second["PATH_INFO"], second["QUERY_STRING"], second["HTTP_X_A"]) == ("/", "", "2")
    assert "CONTENT_LENGTH" not in second


def test_header_names_and_repetitions(serve_wsgi_once) -> None:
    environ = environ_of(
        serve_wsgi_once(SHOW),
        b"POST / HTTP/1.1\r\nHost: a\r\nX-Tag: one\r\nx-tag: two\r\nCookie: a=1\r\ncookie: b=2\r\n"
        b"Content-Type: text/plain\r\nContent-Length: 0\r\nX-Name: caf\xe9\r\n\r\n",
    )
    assert environ["HTTP_X_TAG"] == "one, two"
    assert environ["HTTP_COOKIE"] == "a=1; b=2"
    assert (environ["CONTENT_TYPE"], environ["CONTENT_LENGTH"]) == ("text/plain", "0")
    assert "HTTP_CONTENT_TYPE" not in environ
    assert "HTTP_CONTENT_LENGTH" not in environ
    assert environ["HTTP_X_NAME"] == "caf\u00e9"


def test_repetitions_are_found_among_any_number_of_names(serve_wsgi_once) -> None:
    server = serve_wsgi_once(SHOW)
    for start in range(0, 300, 60):  # more names than are kept
        lines = b"".join(b"X-%d: a\r\nx-%d: b\r\n" % (n, n) for n in range(start, start + 45))
        environ = environ_of(server, b"GET / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n")
        assert {environ[f"HTTP_X_{n}"] for n in range(start, start + 45)} == {"a, b"}


def test_names_that_clients_make_up_are_forgotten(serve_way) -> None:
    server = serve_way("""
def application(environ, start_response):
    return answer(start_response, b"")
""")

    def resident_kb() -> int:
        pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize() // 1024

    def ask(n_requests: int) -> None:
        for _ in range(n_requests):
            lines = "".join(f"x-made-up-{next(numbers)}: a\r\n" for _ in range(60))
            peer.send(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
            assert peer.reply().status == 200

    numbers = count()
    with server.connect() as peer:
        ask(200)
        before_kb = resident_kb()
        ask(2000)  # 120 000 names, of which each would take a hundred bytes
        assert resident_kb() - before_kb < 6 * 1024


def test_underscores_never_pass_for_hyphens(serve_wsgi_once) -> None:
    environ = environ_of(
        serve_wsgi_once(SHOW),
        b"GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: evil\r\nX-Forwarded-For: 10.0.0.1\r\n"
        b"X-Forwarded_For: evil\r\nContent_Length: 7\r\nProxy: evil\r\n\r\n",
    )
    assert environ["HTTP_X_FORWARDED_FOR"] == "10.0.0.1"
    assert "evil" not in environ.values()
    assert "CONTENT_LENGTH" not in environ


def test_odd_targets(serve_wsgi_once) -> None:
    server = serve_wsgi_once(SHOW)
    star = environ_of(server, b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (star["PATH_INFO"], star["REQUEST_URI"]) == ("", "*")
    absolute = environ_of(server, b"GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (absolute["PATH_INFO"], absolute["QUERY_STRING"]) == ("/x", "y")
    assert absolute["REQUEST_URI"] == "http://a/x?y"


def test_a_mounted_application(serve_wsgi) -> None:
    server = serve_wsgi(SHOW, "--root-path", "/shop/")
    for target, path in {
        "/shop/cart": "/cart", "/cart": "/cart", "/shop": "", "/shopping": "/shopping", "/": "/",
    }.items():  # fmt: skip
        environ = environ_of(server, f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("/shop", path)


def test_a_unix_socket(serve_wsgi, tmp_path) -> None:
    server = serve_wsgi(SHOW, "--uds", str(tmp_path / "socket"))
    environ = environ_of(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (environ["REMOTE_ADDR"], environ["SERVER_NAME"]) == ("", "localhost")
