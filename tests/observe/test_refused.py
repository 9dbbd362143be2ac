"""A request whose header section is refused is named in the log, as far as it was read."""

from __future__ import annotations

import json
import re

import pytest
from h2peer import H2Peer
from rig import Server, wait_for

APP = """
@app.post("/")
def echo(request): return request.body()
"""
LIMITS = ("--target-bytes-max", "64", "--head-bytes-max", "4096", "--fields-max", "8")
LONG = "/" + "x" * 100
MANY = {f"x-{n}": "a" for n in range(12)}
CASES = [
    (f"PUT {LONG}?a=b", {}, 414, "target_too_long",
     "64 bytes of request target; the limit is set by --target-bytes-max"),
    ("GET /many", MANY, 431, "too_many_fields", "8 field lines; the limit is set by --fields-max"),
    ("GET /long", {"x-a": "y" * 5000}, 431, "head_too_long",
     "4096 bytes of header section; the limit is set by --head-bytes-max"),
]  # fmt: skip


def last_line(server: Server) -> dict[str, object]:
    wait_for(lambda: server.out.endswith("\n"), "a line of the access log")
    line = json.loads(server.out.splitlines()[-1])
    server.out = ""
    return line


@pytest.mark.parametrize(("line", "fields", "status", "fault", "told"), CASES)
def test_over_http1(serve, line: str, fields, status: int, fault: str, told: str) -> None:
    server = serve(APP, "--access-log-format", "json", *LIMITS)
    more = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with server.connect() as peer:
        peer.send(f"{line} HTTP/1.1\r\nhost: a\r\n{more}\r\n".encode())
        reply = peer.reply()
    assert reply.status == status
    logged = last_line(server)
    method, target = line.split(" ")
    assert (logged["method"], logged["target"], logged["protocol"]) == (method, target, "HTTP/1.1")
    assert (logged["status"], logged["fault"]) == (status, fault)
    assert logged["bytes"] == len(reply.body) > 0
    server.wait_for_log(re.escape(f"{line}: refused with {status}, for it has more than {told}"))


@pytest.mark.parametrize(("line", "fields", "status", "fault", "told"), CASES)
def test_over_http2(serve, line: str, fields, status: int, fault: str, told: str) -> None:
    server = serve(APP, "--access-log-format", "json", *LIMITS)
    method, target = line.split(" ")
    with H2Peer(server.connect()) as peer:
        peer.send(peer.head(1, method, target, list(fields.items())))
        answer = peer.answer(1)
    assert answer.status == status
    logged = last_line(server)
    assert (logged["method"], logged["target"], logged["protocol"]) == (method, target, "HTTP/2")
    assert (logged["status"], logged["fault"]) == (status, fault)
    assert logged["bytes"] == len(answer.body) > 0
    server.wait_for_log(re.escape(f"{line}: refused with {status}, for it has more than {told}"))


def test_no_client_fills_the_log(serve) -> None:
    """issue 32 E5: ten lines of a kind in a minute; the access log has each request."""
    server = serve(APP, "--access-log-format", "json", "--fields-max", "8")
    n_asked = 15
    for _ in range(n_asked):
        with server.connect() as peer:
            fields = "".join(f"{name}: {value}\r\n" for name, value in MANY.items())
            peer.send(f"GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n".encode())
            assert peer.reply().status == 431
    wait_for(lambda: server.out.count("too_many_fields") == n_asked, "the lines of all requests")
    # A kind of its own.
    with server.connect() as peer:
        peer.send(f"GET /{'x' * 20_000} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert peer.reply().status == 414
    server.wait_for_log("--target-bytes-max")
    assert server.err.count("--fields-max") == 10


def test_what_is_malformed(serve) -> None:
    server = serve(APP, "--access-log-format", "json")
    with server.connect() as peer:
        peer.send(b"GET /caf\xc3\xa9 HTTP/1.1\r\nhost: a\r\n bad\r\n\r\n")
        assert peer.reply().status == 400
    logged = last_line(server)
    assert (logged["method"], logged["target"]) == ("GET", "/caf\xe9")
    with server.connect() as peer:
        peer.send(b"\x16\x03\x01\x02\x00\x01")
        peer.read_to_end()
    assert "method" not in last_line(server)


def test_a_malformed_head_of_http2(serve) -> None:
    server = serve(APP, "--access-log-format", "json")
    with H2Peer(server.connect()) as peer:
        peer.send(peer.head(1, "DELETE", "/a", [("Upper", "x")]))
        wait_for(lambda: server.out.endswith("\n"), "a line of the access log")
    logged = last_line(server)
    assert (logged["method"], logged["target"], logged["bytes"]) == ("DELETE", "/a", 0)
    assert logged["fault"] == "field_name_syntax"


def test_the_bytes_of_a_refused_body_over_http2(serve) -> None:
    server = serve(APP, "--access-log-format", "json", "--body-bytes-max", "10")
    with H2Peer(server.connect()) as peer:
        peer.request(1, "POST", "/", b"x" * 20)
        announced = peer.answer(1)
    logged = last_line(server)
    assert (logged["status"], logged["bytes"]) == (413, len(announced.body))
    assert announced.body
