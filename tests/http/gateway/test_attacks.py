"""Attacks on gateways (docs/attacks.md): two readings of a message, fields of one hop, servers that lie."""

from __future__ import annotations

import contextlib
import threading
import time
from urllib.parse import quote

import pytest
from http_peer import OK, Talk
from rig import wait_for


def raw(seen: list[bytes]):
    """Keeps the bytes that came; answers each time a head is complete."""

    def act(talk: Talk) -> None:
        got = b""
        while data := talk.socket.recv(65536):
            got += data
            seen.append(data)
            if b"\r\n\r\n" in got:
                got = b""
                talk.say(OK)

    return act


@pytest.mark.parametrize(
    "fields",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked",
        b"content-length: 5\r\ncontent-length: 6",
        b"content-length: +5",
        b"transfer-encoding: xchunked",
        b"transfer-encoding: chunked, identity",
        b"transfer-encoding : chunked",
        b"transfer-encoding: chunked\r\n transfer-encoding: identity",
    ],
)
def test_a_request_with_two_readings_goes_no_further(gateway, fields: bytes) -> None:
    seen: list[bytes] = []
    before = gateway(raw(seen))
    with before.server.connect() as peer:
        peer.send(b"POST /v1/x HTTP/1.1\r\nhost: a\r\n%s\r\n\r\n" % fields)
        peer.send(b"0\r\n\r\nGET /v1/second HTTP/1.1\r\nhost: a\r\n\r\n")
        assert peer.reply("POST").status in (400, 411, 501)
        assert peer.is_closed()
    assert seen == []


def test_content_is_no_request_of_its_own(gateway) -> None:
    """What looks like a request within content of either framing arrives as content."""
    seen: list[bytes] = []
    before = gateway(raw(seen))
    inner = b"GET /admin HTTP/1.1\r\nhost: a\r\n\r\n"
    with before.server.connect() as peer:
        peer.send(b"POST /v1/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner))
        assert peer.reply("POST").status == 200
    sent = b"".join(seen)
    assert sent.count(b"transfer-encoding: chunked") == 1
    assert b"content-length" not in sent
    assert sent.endswith(b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner))


def test_fields_of_a_connection_end_at_the_gateway(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        peer.send(
            b"GET /v1/x HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, x-secret, X-Forwarded-For\r\n"
            b"x-secret: 1\r\n"
            b"keep-alive: timeout=9\r\nproxy-connection: keep-alive\r\nproxy-authorization: Basic x\r\n"
            b"te: gzip\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\nx-kept: yes\r\n\r\n"
        )
        text = peer.reply().body.lower()
    for gone in (b"x-secret", b"keep-alive", b"proxy-", b"te:", b"upgrade", b"http2-settings"):
        assert gone not in text, gone
    assert b"x-kept: yes" in text
    assert b"x-forwarded-for: 127.0.0.1\n" in text


def test_a_client_does_not_say_where_it_comes_from(gateway) -> None:
    before = gateway(options=("--forwarded-allow-ips", "10.9.9.9"))
    with before.server.connect() as peer:
        peer.send(
            b"GET /v1/x HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 6.6.6.6\r\nx_forwarded_for: 6.6.6.6\r\n"
            b"forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nx-forwarded-proto: https\r\n\r\n"
        )
        text = peer.reply().body
    assert b"6.6.6.6" not in text
    assert b"https" not in text
    assert text.count(b"forwarded-for") == 1


@pytest.mark.parametrize(
    "name",
    [
        "X-Forwarded-Ssl", "x-forwarded-user", "X-Forwarded-Client-Cert", "x_forwarded_email", "x-forwarded",
        "Forwarded-For", "x-client-ip", "X-Original-URL", "x_rewrite_url", "x-original-host",
        "Front-End-Https",
    ],
)  # fmt: skip
def test_fields_of_gateways_are_no_clients(gateway, name: str) -> None:
    before = gateway()
    for path in ("/v1/x", "/hooked/x"):
        with before.server.connect() as peer:
            text = peer.request("GET", path, **{name: "forged"}).body
        assert b"forged" not in text


def test_fields_that_the_gateway_sets_are_no_clients(gateway) -> None:
    """A server that takes ``_`` for ``-`` gets one of them; what a hook has set is among them."""
    before = gateway()
    for path in ("/fixed/x", "/hooked/x"):
        with before.server.connect() as peer:
            peer.send(
                b"GET %s HTTP/1.1\r\nhost: a\r\nx-fixed: forged\r\nX_Fixed: forged\r\nx_added: forged\r\n"
                b"x-added: forged\r\nx_other: kept\r\n\r\n" % path.encode()
            )
            text = peer.reply().body
        assert b"x-fixed: 1\n" in text
        assert b"x_other: kept\n" in text
        assert text.count(b"forged") == (2 if path == "/fixed/x" else 0)


def test_trailers_become_no_fields(gateway) -> None:
    """A server that merges trailers gets none that is a gateway's, or that the head has."""
    trailers: list[list[bytes]] = []

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            trailers.append(talk.trailers)
            talk.say(OK)

    before = gateway(act)
    for path in (b"/fixed/x", b"/hooked/x"):
        with before.server.connect() as peer:
            peer.send(
                b"POST %s HTTP/1.1\r\nhost: a\r\nx-own: 1\r\ntransfer-encoding: chunked\r\n\r\n"
                % path
            )
            peer.send(
                b"1\r\na\r\n0\r\nx-fixed: forged\r\nX_Fixed: forged\r\nx-forwarded-user: forged\r\n"
                b"x_real_ip: forged\r\nx_own: forged\r\nx-sum: kept\r\n\r\n"
            )
            assert peer.reply("POST").status == 200
    assert trailers == [[b"x-sum: kept"]] * 2


def test_what_a_trusted_proxy_says_is_written_anew(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        peer.send(
            b"GET /v1/x HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 1.2.3.4, 6.6.6.6\r\n"
            b"x-forwarded-proto: https\r\nx-forwarded-host: evil.example\r\nx-forwarded-server: evil\r\n\r\n"
        )
        text = peer.reply().body
    assert b"x-forwarded-for: 6.6.6.6, 127.0.0.1\n" in text
    assert b"x-forwarded-proto: https\n" in text
    assert b"x-forwarded-host: a\n" in text, "a field that the proxy is not known to write"
    assert b"evil" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../stats", "/v1/%2e%2e/stats", "/moved/..%2fadmin", "/moved/a/..;x/b", "/moved/.%2E",
        "/v1/..%5cx", "/v1/..%3b/x", "/v1/..%00/x",
    ],
)  # fmt: skip
def test_a_path_does_not_leave_its_route(gateway, path: str) -> None:
    before = gateway()
    with before.server.connect() as peer:
        assert peer.request("GET", path).status in (400, 404)
    assert before.peer.accepted == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("../stats", 400), ("a/%2e%2e/b", 400), ("a/..;x/b", 400), ("a?b=c", 500), ("a#b", 500),
        ("a b", 500), ("a\r\nx: y", 500), ("\xe9", 500), ("a/..b", 200),
    ],
)  # fmt: skip
def test_a_path_that_a_handler_makes_does_not_leave_its_place(
    gateway, path: str, status: int
) -> None:
    seen: list[bytes] = []
    before = gateway(raw(seen))
    with before.server.connect() as peer:
        assert peer.request("GET", f"/made?path={quote(path)}").status == status
    assert bool(seen) == (status == 200)


def test_a_request_that_goes_round_ends(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        assert peer.request("GET", "/v1/x", None, Via=", ".join(["1.1 citius"] * 7)).status == 200
        assert peer.request("GET", "/v1/x", None, Via=", ".join(["1.1 citius"] * 8)).status == 508


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx : a\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 20 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_a_response_with_two_readings_is_a_502(gateway, response: bytes) -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(response)
        talk.socket.recv(1)

    before = gateway(act)
    with before.server.connect() as peer:
        assert peer.request("POST", "/v1/x", b"a").status == 502
        assert peer.request("GET", "/stats").status == 200
    wait_for(lambda: before.peer.open == 0, "the end of the connection")


def test_a_second_response_is_nobodys(gateway) -> None:
    """What follows a response is not taken for the next one."""

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst")
            if talk.number == 1:
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond")

    before = gateway(act)
    with before.server.connect() as peer:
        for _ in range(5):
            assert peer.request("GET", "/v1/x").body == b"first"
            time.sleep(0.02)  # the second response comes behind the first


@pytest.mark.parametrize("framing", [b"content-length: 100", b"transfer-encoding: chunked"])
def test_content_that_ends_early_is_cut(gateway, framing: bytes) -> None:
    """The client can tell that something is missing, and the log says why."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % framing)
        time.sleep(0.05)  # the head leaves before the content
        talk.say(b"5\r\nabcde\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"GET /v1/x HTTP/1.1\r\nhost: a\r\n\r\n")
        try:
            got = peer.read_to_end()
        except ConnectionError:
            got = b""
        assert not got.endswith(b"0\r\n\r\n")
        assert len(got.partition(b"\r\n\r\n")[2]) < 100
    before.server.wait_for_log(r"was cut: .*ended the connection")


def test_a_flood_of_informational_responses_ends(gateway) -> None:
    def act(talk: Talk) -> None:
        talk.request()
        for _ in range(10_000):
            talk.say(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"GET /v1/x HTTP/1.1\r\nhost: a\r\n\r\n")
        got = peer.read_until(b"HTTP/1.1 502 ")
        assert got.count(b" 103 ") < 100


def test_a_response_before_the_request_is_complete(gateway) -> None:
    """It is passed on, and the rest of the request is taken for nothing else."""

    def act(talk: Talk) -> None:
        got = b""
        while b"\r\n\r\n" not in got:
            got += talk.socket.recv(100)
        talk.say(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
        threading.Event().wait(0.2)

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
        reply = peer.reply("POST")
        assert (reply.status, reply.body) == (403, b"no")
        with contextlib.suppress(OSError):
            peer.send(b"GET /stats HTTP/1.1\r\nhost: a\r\n\r\n".ljust(1_000_000, b"x"))
    wait_for(lambda: before.peer.open == 0, "the end of the connection")


def test_a_target_that_is_no_url_is_no_failure_of_the_server(gateway) -> None:
    """A server that answers it has answered: else three such requests take it from all clients."""
    before = gateway(options=("--management", "127.0.0.1:0"))
    with before.server.connect() as client:
        for at in range(4):
            reply = client.request("GET", f"/hooked/a\\{at}")
            assert (reply.status, reply.body.partition(b"\n")[0]) == (
                200,
                b"GET /hooked/a\\%d HTTP/1.1" % at,
            )
