"""What is passed on without Python is what Python passes on: the same requests, the same responses (I30)."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from citius._core import FAST_PATHS
from gateway_rig import Before
from http_peer import Peer, answering
from rig import application, client_samples, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from http_peer import Talk

APP = application("direct_gateway_app")
CASES = int(os.environ.get("DIRECT_CASES", "250"))
STATUSES = (200, 200, 200, 200, 201, 204, 206, 304, 301, 404, 418, 500, 503, 599)
SIZES = (0, 0, 1, 9, 100, 5_000, 70_000, 300_000)
VALUES = (
    "",
    "a",
    "a, b",
    "caf\xe9",
    "x" * 300,
    '"q"',
    "close",
    "keep-alive, x-hop",
    "trailers",
    "1",
)
OF_REQUESTS = (
    "accept", "x-replaced", "X-Hop", "connection", "TE", "via", "Via", "x-forwarded-for", "X_Forwarded_Host",
    "forwarded", "expect", "max-forwards", "cookie", "traceparent", "keep-alive", "proxy-authorization",
    "range", "if-none-match", "upgrade", "user-agent", "x-real-ip",
)  # fmt: skip
OF_RESPONSES = (
    "content-type", "X-Hop", "connection", "via", "alt-svc", "set-cookie", "Set-Cookie", "server", "date",
    "keep-alive", "proxy-authenticate", "etag", "vary", "trailer", "last-modified", "upgrade",
)  # fmt: skip


def fields(dice: random.Random, names: tuple[str, ...]) -> bytes:
    chosen = [(name, dice.choice(VALUES)) for name in dice.choices(names, k=dice.randrange(7))]
    return "".join(f"{name}: {value}\r\n" for name, value in chosen).encode("latin-1")


def chunked(dice: random.Random, content: bytes) -> bytes:
    out, at = b"", 0
    while at < len(content):
        size = dice.randrange(1, len(content) - at + 1)
        out += b"%x\r\n%s\r\n" % (size, content[at : at + size])
        at += size
    return out + b"0\r\n" + dice.choice((b"", b"x-sum: 1\r\n", b"content-length: 3\r\n")) + b"\r\n"


def response(number: int, method: str) -> tuple[list[bytes], bool, bool]:
    """The pieces of a response, whether the connection is closed behind it, and whether it is cut."""
    dice = random.Random(f"response {number}")
    status, content = dice.choice(STATUSES), dice.randbytes(dice.choice(SIZES))
    head = fields(dice, OF_RESPONSES)
    closes = dice.random() < 0.2
    if closes:
        # Without it a request that follows may meet the end of the connection, and whether it does is chance.
        head += b"connection: close\r\n"
    if method == "HEAD" or status in (204, 304):
        length = b"content-length: %d\r\n" % len(content) if status != 204 else b""
        whole = length + head + b"\r\n"
    elif (framing := dice.randrange(4)) == 0:
        whole = b"transfer-encoding: chunked\r\n" + head + b"\r\n" + chunked(dice, content)
    elif framing == 1:
        closes = True
        whole = head + b"\r\n" + content
    else:
        whole = b"content-length: %d\r\n" % len(content) + head + b"\r\n" + content
    whole = b"HTTP/1.%d %d %s\r\n" % (dice.random() < 0.9, status, b"A word") + whole
    if dice.random() < 0.15:
        whole = b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n" + whole
    is_refused = whole.endswith(b"content-length: 3\r\n\r\n")
    if is_cut := dice.random() < 0.15:
        # After the first byte, so that the request is not repeated.
        whole, closes = whole[: dice.randrange(1, len(whole))], True
    if dice.random() < 0.1:
        whole, closes = b"HTTP/1.1 2" + dice.randbytes(9) + whole, True
    cuts = sorted(dice.choices(range(1, len(whole)), k=dice.randrange(4))) if len(whole) > 1 else []
    edges = [0, *cuts, len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(edges)], closes, is_cut or is_refused


def request(number: int, name: str) -> tuple[str, bytes]:
    dice = random.Random(f"request {number}")
    method = dice.choice(
        ("GET", "GET", "GET", "HEAD", "DELETE", "POST", "OPTIONS", "PATCH", "TRACE")
    )
    version = dice.choice((b"1.1", b"1.1", b"1.0"))
    rest = dice.choice(("", "/a%2Fb", "/~%7e", "//x"))
    target = f"/{name}/{dice.choice(('as', 'as', 'both'))}/{number}{rest}"
    target += dice.choice(("", "?", "?a=%20&b", "?q=/../"))
    host = dice.choice((b"test", b"test:80", b"TEST.example"))
    head = b"%s %s HTTP/%s\r\nhost: %s\r\n" % (method.encode(), target.encode(), version, host)
    head += fields(dice, OF_REQUESTS) + b"connection: close\r\n"
    content = dice.randbytes(dice.choice(SIZES[:-1]))
    if method not in ("POST", "PATCH", "DELETE") or dice.random() < 0.3:
        return method, head + b"\r\n"
    if version == b"1.1" and dice.random() < 0.5:
        # One that is refused for its trailers may be refused before or after its head was passed on.
        content = chunked(dice, content).removesuffix(b"content-length: 3\r\n\r\n") + b"\r\n"
        return method, head + b"transfer-encoding: chunked\r\n\r\n" + content
    return method, head + b"content-length: %d\r\n\r\n" % len(content) + content


class Upstream:
    """Answers by number, and keeps the heads of what was asked."""

    def __init__(self) -> None:
        self.heads: dict[str, list[bytes]] = {}
        self.contents: dict[str, list[object]] = {}

    def __call__(self, talk: Talk) -> None:
        talk.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        got = b""
        while True:
            while b"\r\n\r\n" not in got:
                if not (data := talk.socket.recv(65536)):
                    return
                got += data
            head, _, got = got.partition(b"\r\n\r\n")
            method, target = head.split(b" ")[:2]
            number = target.split(b"/")[2].split(b"?")[0].decode()
            self.heads.setdefault(number, []).append(head)
            lowered = head.lower() + b"\r\n"
            content: object = b""
            if b"\r\ntransfer-encoding: chunked\r\n" in lowered:
                content, got = self.unchunked(talk, got)
            elif length := re.search(rb"\r\ncontent-length: (\d+)\r\n", lowered):
                while len(got) < int(length[1]):
                    if not (data := talk.socket.recv(65536)):
                        return
                    got += data
                content, got = got[: int(length[1])], got[int(length[1]) :]
            self.contents.setdefault(number, []).append(content)
            pieces, closes, _ = response(int(number), method.decode())
            for piece in pieces:
                talk.say(piece)
            if closes:
                return

    def unchunked(self, talk: Talk, got: bytes) -> tuple[object, bytes]:
        """Content and trailers, and what has come behind."""
        parts: list[bytes] = []

        def line() -> bytes:
            nonlocal got
            while b"\r\n" not in got:
                if not (data := talk.socket.recv(65536)):
                    return b"0"
                got += data
            found, _, got = got.partition(b"\r\n")
            return found

        while size := int(line(), 16):
            while len(got) < size + 2:
                if not (data := talk.socket.recv(65536)):
                    return "cut", b""
                got += data
            parts.append(got[:size])
            got = got[size + 2 :]
        trailers: list[bytes] = []
        while found := line():
            if found == b"0":
                return "cut", b""
            trailers.append(found)
        return (b"".join(parts), trailers), got


def without_dates(raw: bytes) -> bytes:
    return re.sub(rb"\r\ndate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", b"", raw)


def content_of(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Heads, content and trailers. How it is framed depends on what of it has come when it is sent."""
    head, mark, last = without_dates(raw).rpartition(b"HTTP/1.1 ")
    last, _, content = last.partition(b"\r\n\r\n")
    trailers = b""
    if b"\r\ntransfer-encoding: chunked" in last:
        last = last.replace(b"\r\ntransfer-encoding: chunked", b"")
        parts: list[bytes] = []
        trailers = b"cut"
        while content:
            size, _, content = content.partition(b"\r\n")
            if not (count := int(size, 16)):
                trailers, content = content.removesuffix(b"\r\n"), b""
            else:
                parts.append(content[:count])
                content = content[count + 2 :]
        content = b"".join(parts)
    else:
        last = last.replace(b"\r\ncontent-length: %d" % len(content), b"")
    return head + mark + last, content, trailers


@pytest.fixture
def before(serve) -> Iterator[tuple[Before, Upstream]]:
    upstream = Upstream()
    with Peer(upstream) as peer:
        server = serve(APP, "--workers", "1", env={"UPSTREAMS": f"http://127.0.0.1:{peer.port}"})
        yield Before(server, [peer]), upstream


def counts(server) -> dict[str, int]:
    return json.loads(server.get("/counts").body)


def test_the_same_with_and_without_python(before: tuple[Before, Upstream]) -> None:
    rig, upstream = before
    for number in range(CASES):
        came: list[bytes] = []
        for name in ("direct", "python"):
            with rig.server.connect() as client:
                client.send(request(number, name)[1])
                came.append(client.read_to_end())
        direct, python = map(content_of, came)
        if response(number, request(number, "x")[0])[2]:
            # A reset takes along what the client has not read.
            shorter, longer = sorted((direct, python), key=lambda one: len(b"".join(one[:2])))
            assert shorter[0] in (b"", longer[0]), number
            assert longer[1].startswith(shorter[1]), number
        else:
            assert direct == python, number
        heads = [
            head.replace(b"/direct/", b"/python/") for head in upstream.heads.get(str(number), [])
        ]
        assert len(heads) in (0, 2), number
        assert not heads or heads[0] == heads[1], number
        contents = upstream.contents.get(str(number), [])
        assert len(contents) in (0, 2), number
        assert not contents or contents[0] == contents[1], number
    found = counts(rig.server)
    assert found["python"] > CASES / 2
    if FAST_PATHS:
        # Python sees those whose methods are none that are passed on without it, and what it refuses.
        assert found.get("direct", 0) < found["python"] / 2
    stats = json.loads(rig.server.get("/stats").body)
    assert stats["client"]["open"] == stats["client"]["idle"], stats


def test_one_connection_for_many_requests(before: tuple[Before, Upstream]) -> None:
    """Requests of a connection that is kept, several at once."""
    rig, _ = before
    came: list[list[bytes]] = []
    numbers = [number for number in range(120) if request(number, "x")[0] == "GET"]
    for name in ("direct", "python"):
        with ExitStack() as stack:
            client = stack.enter_context(rig.server.connect())
            asked = [
                b"GET /%s/as/%d HTTP/1.1\r\nhost: a\r\n\r\n" % (name.encode(), n) for n in numbers
            ]
            replies: list[bytes] = []
            for at in range(0, len(asked), 5):
                client.send(b"".join(asked[at : at + 5]))
                try:
                    for _ in asked[at : at + 5]:
                        reply = client.reply()
                        while reply.status == 103:
                            reply = client.reply()
                        head = re.sub(
                            rb"\r\n(transfer-encoding|content-length):[^\r]*", b"", reply.raw_head
                        )
                        replies.append(without_dates(head) + reply.body)
                except (EOFError, ValueError, ConnectionResetError):
                    # A response was cut, and the connection with it.
                    client = stack.enter_context(rig.server.connect())
                    replies.append(b"cut")
            came.append(replies)
    assert came[0] == came[1]


def test_a_server_that_goes_and_comes(serve) -> None:
    """A failure is Python's: another server gets the request, and a dead one is left alone."""
    ok = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na")
    with Peer(ok) as one, Peer(ok) as other:
        urls = f"http://127.0.0.1:{one.port} http://127.0.0.1:{other.port}"
        server = serve(APP, "--workers", "1", env={"UPSTREAMS": urls})
        with server.connect() as client:
            for _ in range(4):
                assert client.request("GET", "/direct/several/x").status == 200
            before = counts(server).get("direct", 0)
            other.__exit__()
            for method in ("GET", "POST", "DELETE", "HEAD"):
                for _ in range(3):
                    assert client.request(method, "/direct/several/x").status == 200
            # Content that has not left goes to the other server.
            for _ in range(3):
                client.send(
                    b"POST /direct/several/x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
                )
                assert client.reply("POST").status == 200
            server.wait_for_log("has not answered 1 requests in a row")
            assert counts(server).get("direct", 0) > before
            one.__exit__()
            assert client.request("GET", "/direct/several/x").status == 502
            server.wait_for_log("502, for ConnectError")
            found = json.loads(server.get("/stats").body)["servers"]
            assert [each["requests"] for each in found.values()] == [0, 0]


def test_content_comes_slowly_and_goes_on_as_it_comes(serve) -> None:
    """Each piece leaves before the next has come; a client that leaves within it ends the call."""
    seen: list[bytes] = []

    def collecting(talk: Talk) -> None:
        while data := talk.socket.recv(65536):
            seen.append(data)
            if b"".join(seen).endswith(b"0\r\n\r\n"):
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        seen.append(b"closed")

    with Peer(collecting) as peer:
        server = serve(APP, "--workers", "1", env={"UPSTREAMS": f"http://127.0.0.1:{peer.port}"})
        head = b"POST /direct/several/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        with server.connect() as client:
            client.send(head)
            for piece in (b"first", b"second"):
                client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                wait_for(lambda piece=piece: piece in b"".join(seen), "a piece")
            client.send(b"0\r\n\r\n")
            reply = client.reply("POST")
            assert (reply.status, reply.body) == (200, b"ok")
            assert counts(server).get("direct", 0) == 0 or not FAST_PATHS
        seen.clear()
        with server.connect() as client:
            client.send(head + b"4\r\nhalf\r\n")
            wait_for(lambda: b"half" in b"".join(seen), "the piece")
        wait_for(lambda: seen[-1] == b"closed", "the end of the call")
        found = json.loads(server.get("/stats").body)["servers"]
        assert [each["requests"] for each in found.values()] == [0]


def test_content_is_held_to_its_limit(serve) -> None:
    swallowed: list[bytes] = []

    def swallowing(talk: Talk) -> None:
        while data := talk.socket.recv(65536):
            swallowed.append(data)

    with Peer(swallowing) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}"}
        server = serve(APP, "--workers", "1", "--body-bytes-max", "1000", env=env)
        with server.connect() as client:
            client.send(
                b"POST /direct/several/x HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n"
            )
            assert client.reply("POST").status == 413
        with server.connect() as client:
            client.send(
                b"POST /direct/several/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            client.send(b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
            assert client.reply("POST").status == 413
        server.wait_for_log("/direct/several/{rest:path}")
        assert not any(data.endswith(b"0\r\n\r\n") for data in swallowed)


def test_what_is_counted_and_logged(serve) -> None:
    """Metrics of the client are those of Python's way; the log has the time of the other server."""

    def act(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            status = b"404 No" if "missing" in got[0] else b"200 OK"
            talk.say(b"HTTP/1.1 %s\r\ncontent-length: 1\r\n\r\na" % status)

    with Peer(act) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}"}
        options = ("--management", "127.0.0.1:0", "--access-log-format", "json")
        server = serve(APP, "--workers", "1", *options, env=env)
        counted: list[dict[str, float]] = []
        for name in ("direct", "python"):
            before = client_samples(server.management(), f"127.0.0.1:{peer.port}")
            with server.connect() as client:
                for path in ("as/1", "as/2", "as/missing"):
                    assert client.request("GET", f"/{name}/{path}").status in (200, 404)
            after = client_samples(server.management(), f"127.0.0.1:{peer.port}")
            counted.append({key: after[key] - before.get(key, 0) for key in after if "_sum" not in key
                            and "_bucket" not in key and "connections" not in key})  # fmt: skip
        assert counted[0] == counted[1]
        assert counted[0]["citius_http_client_requests_total ok"] == 2
        assert counted[0]["citius_http_client_requests_total error"] == 1
        if FAST_PATHS:
            assert counts(server).get("direct", 0) == 0
        wait_for(lambda: server.out.count("\n") >= 6, "six lines")
        lines = [json.loads(line) for line in server.out.splitlines()]
        passed = [line for line in lines if line["target"].startswith(("/direct", "/python"))]
        assert len(passed) == 6
        assert all(0 <= line["upstream_ms"] <= line["duration_ms"] for line in passed)
        assert all("upstream_ms" not in line for line in lines if line not in passed)


def test_clients_that_leave_and_servers_that_are_slow(serve) -> None:
    """No request is left under way, and no connection is kept for one that was given up."""

    def slow(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            if "begun" in got[0]:
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nfirst")
            talk.socket.settimeout(20)

    with Peer(slow) as peer:
        server = serve(APP, "--workers", "1", env={"UPSTREAMS": f"http://127.0.0.1:{peer.port}"})
        assert server.get("/direct/short/silent").status == 504
        # The time is 0.2 s, which connecting can take where the machine is busy.
        server.wait_for_log("504, for (Read|Connect)Timeout")
        for path in ("/direct/several/silent", "/direct/several/begun", "/direct/as/begun"):
            with server.connect() as client:
                client.send(b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % path.encode())
                if "begun" in path:
                    assert b"first" in client.read_until(b"first")
                else:
                    wait_for(
                        lambda: '"requests":1' in server.get("/stats").body.decode(), "a request"
                    )

        def is_quiet() -> bool:
            found = json.loads(server.get("/stats").body)
            each = found["servers"].values()
            # One that was made for a request that was given up meanwhile is kept.
            clients = (found["client"], found["of_several"])
            is_idle = all(one["open"] == one["idle"] and not one["waiting"] for one in clients)
            return is_idle and all(one["requests"] == 0 for one in each)

        wait_for(is_quiet, "the end of all calls")
