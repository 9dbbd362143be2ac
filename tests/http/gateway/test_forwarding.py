"""Requests and responses that are passed on: heads, content both ways, back-pressure, hooks, faults."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import rig
from http_peer import OK, Talk
from rig import wait_for

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def test_a_request_and_its_response(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        reply = peer.request("GET", "/v1/a/b?c=d&e", None, cookie="x=y", host="shop.example")
        assert reply.status == 200
        assert reply.headers["x-of-upstream"] == "1"
        assert reply.headers["via"] == "1.1 citius"
        lines = reply.body.decode().splitlines()
        assert lines[0] == "GET /v1/a/b?c=d&e HTTP/1.1"
        assert f"host: 127.0.0.1:{before.peer.port}" in lines
        assert "cookie: x=y" in lines
        assert "x-forwarded-for: 127.0.0.1" in lines
        assert "x-forwarded-proto: http" in lines
        assert "x-forwarded-host: shop.example" in lines
        assert "via: 1.1 citius" in lines
        # The connection goes on, and so does the one behind.
        assert peer.request("GET", "/v1/second").body.startswith(b"GET /v1/second ")
        assert before.peer.accepted == 1


def test_content_of_each_kind(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        for size in (0, 1, 1000, 300_000):
            body = b"x" * size
            assert peer.request("POST", "/v1/post", body).body.endswith(b"\n\n" + body)
        peer.send(b"PUT /v1/chunks HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.send(b"3\r\nabc\r\n")
        peer.send(b"4\r\ndefg\r\n0\r\n\r\n")
        reply = peer.reply("PUT")
        assert reply.body.endswith(b"\n\nabcdefg")
        assert b"transfer-encoding: chunked" in reply.body


def test_events_pass_as_they_come(gateway) -> None:
    step = threading.Semaphore(0)

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(CHUNKED)
        for number in range(5):
            talk.say(b"9\r\ndata: %d\n\n\r\n" % number)
            step.acquire(timeout=10)
        talk.say(b"0\r\n\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n")
        for number in range(5):
            peer.read_until(b"data: %d\n\n" % number)
            step.release()
        peer.read_until(b"0\r\n\r\n")
        assert peer.request("GET", "/stats").status == 200


def test_a_client_that_reads_slowly_slows_the_server_behind(gateway) -> None:
    sent = [0]

    def act(talk: Talk) -> None:
        talk.request()
        size = 64 * 1024 * 1024
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while sent[0] < size:
            talk.say(bytes(65536))
            sent[0] += 65536

    before = gateway(act)
    with before.server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(b"GET /v1/much HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        seen = -1
        while seen != sent[0]:
            seen = sent[0]
            time.sleep(0.3)  # until nothing more is taken
        assert 0 < seen < 32 * 1024 * 1024
        assert len(peer.read(64 * 1024 * 1024 - 65536)) > 0


def test_large_responses_side_by_side_are_each_their_own(gateway) -> None:
    """Reads that fill the buffer, and one less or more; clients of different speeds."""
    sizes = [65_536 * n_reads + more for n_reads in (1, 7, 40) for more in (-1, 0, 1, 30_000)]
    bodies = {str(size): random.Random(size).randbytes(size) for size in sizes}

    def act(talk: Talk) -> None:
        while got := talk.request():
            body = bodies[got[0].split()[1].rpartition("/")[2]]
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
            talk.say(body)

    before = gateway(act)

    def ask(first: int) -> list[int]:
        """Return the sizes whose content is wrong."""
        with before.server.connect(receive_buffer_bytes=8192 << first % 4) as peer:
            return [
                size
                for size in sizes[first:] + sizes[:first]
                if peer.request("GET", f"/v1/{size}").body != bodies[str(size)]
            ]

    with ThreadPoolExecutor(len(sizes)) as executor:
        assert list(executor.map(ask, range(len(sizes)))) == [[]] * len(sizes)


def test_a_server_that_reads_slowly_slows_the_client(gateway) -> None:
    go = threading.Event()

    def act(talk: Talk) -> None:
        talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        go.wait(20)
        got = talk.request()
        assert got is not None
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n%08d" % len(got[1]))

    before = gateway(act)
    size = 40_000_000
    with socket.create_connection(("127.0.0.1", before.server.port)) as made:
        made.sendall(b"POST /v1/much HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size)
        made.settimeout(1)
        sent = 0
        try:
            while sent < size:
                sent += made.send(bytes(min(65536, size - sent)))
        except TimeoutError:
            pass
        assert sent < 30_000_000
        go.set()
        made.settimeout(30)
        made.sendall(bytes(size - sent))
        reply = b""
        while not reply.endswith(b"%08d" % size):
            data = made.recv(65536)
            assert data
            reply += data


def test_head_range_and_empty_responses(gateway) -> None:
    def act(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            line = got[0]
            if line.startswith("HEAD"):
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\netag: x\r\n\r\n")
            elif b"range" in talk.fields:
                assert talk.fields[b"range"] == b"bytes=1-2"
                talk.say(
                    b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 1-2/9\r\n"
                    b"content-length: 2\r\n\r\nbc"
                )
            elif "none" in line:
                talk.say(b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n")
            else:
                talk.say(b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"HEAD /v1/x HTTP/1.1\r\nhost: a\r\n\r\n")
        head = peer.read_until(b"\r\n\r\n").lower()
        assert b"content-length: 1234" in head
        reply = peer.request("GET", "/v1/x", None, Range="bytes=1-2")
        assert (reply.status, reply.body, reply.headers["content-range"]) == (
            206,
            b"bc",
            "bytes 1-2/9",
        )
        assert peer.request("GET", "/v1/none").status == 204
        assert peer.request("GET", "/v1/x", None, **{"If-None-Match": "x"}).status == 304
        assert peer.request("GET", "/v1/none").status == 204


def test_informational_responses_and_trailers(gateway) -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n")
        talk.say(CHUNKED + b"2\r\nok\r\n")
        talk.say(b"0\r\nx-sum: 7\r\n\r\n")

    before = gateway(act)
    with before.server.connect() as peer:
        peer.send(b"GET /v1/x HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n")
        got = peer.read_until(b"x-sum: 7\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 103 ")
        assert b"link: </a.css>; rel=preload" in got
        assert b"HTTP/1.1 200 OK" in got


def test_expect_is_the_servers_to_answer(gateway) -> None:
    refused = threading.Event()

    def act(talk: Talk) -> None:
        got = b""
        while b"\r\n\r\n" not in got:
            got += talk.socket.recv(65536)
        assert b"expect: 100-continue" in got.lower()
        if b"/refused" in got:
            refused.set()
            talk.say(b"HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\n\r\n")
            return
        talk.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert talk.socket.recv(65536) == b"hello"
        # A POST is not repeated on another connection, so the next one may not go out on this one.
        talk.say(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    before = gateway(act)
    head = b"POST /v1/%s HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n"
    with before.server.connect() as peer:
        peer.send(head % b"taken")
        assert peer.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        peer.send(b"hello")
        assert peer.reply("POST").body == b"ok"
    with before.server.connect() as peer:
        peer.send(head % b"refused")
        assert peer.reply("POST").status == 417
        assert refused.is_set()


def test_where_a_request_goes_and_what_it_says(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        assert peer.request("GET", "/moved/a%20b?q=1").body.startswith(b"GET /inner/a%20b?q=1 ")
        text = peer.request("GET", "/host/x", None, host="shop.example:81").body
        assert b"host: shop.example:81" in text
        assert b'forwarded: for=127.0.0.1;proto=http;host="shop.example:81"' in text
        reply = peer.request("GET", "/hooked/x")
        assert b"x-added: by the gateway" in reply.body
        assert b"x-fixed: 1" in reply.body
        assert reply.headers["x-marked"] == "yes"
        early = peer.request("GET", "/hooked/x", None, **{"X-Answer": "early"})
        assert (early.status, early.body) == (418, b"early")


def test_fields_that_a_client_has_several_times_are_all_set(gateway) -> None:
    heads: list[bytes] = []

    def act(talk: Talk) -> None:
        while data := talk.read():
            heads.append(data)
            talk.say(OK)

    with gateway(act).server.connect() as peer:
        assert peer.request("GET", "/lists/x", None, **{"x-of": "3"}).status == 200
    assert [line for line in heads[0].split(b"\r\n") if line.startswith(b"x-of")] == [
        b"x-of: 1",
        b"x-of: 2",
    ]


def test_what_protects_other_routes_protects_these(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        for path in ("/guarded/x", "/router/x"):
            assert peer.request("GET", path).status == 403
            assert before.peer.accepted == 0 or path == "/router/x"
            assert peer.request("GET", path, None, **{"X-Key": "right"}).status == 200


def test_from_handlers(gateway) -> None:
    before = gateway()
    with before.server.connect() as peer:
        assert peer.request("POST", "/called?a=b", b"12345").body.startswith(
            b"POST /from-handler?a=b "
        )
        held = peer.request("POST", "/held", b"12345").body
        assert held.endswith(b"\n\n12345")
        assert b"x-held: 1" in held
        assert peer.request("GET", "/value").body.startswith(b"GET /from-value ")
        assert peer.request("GET", "/value-of-def").body.startswith(b"GET /from-def ")


def test_why_there_is_no_response(gateway) -> None:
    def act(talk: Talk) -> None:
        got = talk.request()
        if got is not None and "/slow" in got[0]:
            time.sleep(2)  # longer than the gateway waits

    before = gateway(act)
    with before.server.connect() as peer:
        assert peer.request("POST", "/v1/closed", b"x").status == 502
        before.server.wait_for_log(r"502, for ReadError")
        assert peer.request("GET", "/short/slow").status == 504
        before.server.wait_for_log(r"504, for ReadTimeout")
        assert peer.request("POST", "/short/long", bytes(1001)).status == 413


def test_requests_at_a_time(gateway) -> None:
    go = threading.Event()

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            go.wait(10)
            talk.say(OK)

    before = gateway(act)
    with before.server.connect() as first, before.server.connect() as second:
        first.send(b"GET /limited HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: before.peer.accepted == 1, "the first request")
        reply = second.request("GET", "/limited")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        go.set()
        assert first.reply().body == b"ok"
        assert second.request("GET", "/limited").status == 200


def test_a_client_that_leaves_ends_the_call(gateway) -> None:
    """Before the head of the response, and within its content: in 0.3 s nothing is left of the call."""
    came = threading.Semaphore(0)
    ended: list[float] = []

    def act(talk: Talk) -> None:
        got = talk.request()
        if got is None:
            return
        if "/streams" in got[0]:
            talk.say(CHUNKED + b"2\r\nok\r\n")
        came.release()
        while talk.socket.recv(100):
            pass
        ended.append(time.monotonic())

    before = gateway(act)
    for number, path in enumerate((b"/v1/hangs", b"/v1/streams", b"/limited", b"/limited")):
        peer = before.server.connect()
        peer.send(b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % path)
        assert came.acquire(timeout=10)
        if b"streams" in path:
            peer.read_until(b"ok")
        left_at = time.monotonic()
        peer.close()
        wait_for(lambda: len(ended) > number, "the end of the call")
        assert ended[-1] - left_at < 0.3
    stats = json.loads(rig.get(before.server.port, "/stats")[1])
    assert (stats["open"], stats["waiting"]) == (0, 0)


def test_a_request_counts_while_its_hook_waits(gateway) -> None:
    before = gateway()
    with before.server.connect() as first, before.server.connect() as second:
        first.send(b"GET /paused HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: before.server.get("/calls-of-pause").body == b"1", "the hook")
        assert second.request("GET", "/paused").status == 503
        assert before.server.get("/calls-of-pause?goes_on=true").body == b"1"
        assert first.reply().status == 200
        assert second.request("GET", "/paused").status == 200
