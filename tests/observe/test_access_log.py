"""Access lines of a real server: their content, their file, and a log that is not read."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from rig import application, wait_for
from wspeer import RawSocket

APP = application("access_log_app")
INTERFACES = """
async def asgi(scope, receive, send):
    seen = dict(scope["headers"])[b"x-request-id"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": seen})
def wsgi(environ, start_response):
    start_response("200 OK", [])
    return [environ["HTTP_X_REQUEST_ID"].encode()]
"""


def lines(server, count: int) -> list[str]:
    wait_for(lambda: server.out.count("\n") >= count, f"{count} lines in {server.out!r}")
    return server.out.splitlines()


def test_json(serve) -> None:
    server = serve(APP, "--access-log-format", "json", "--request-id", "X-Request-ID", "--trace")
    server.get("/items/3?a=%22", user_agent='a "spy"\t é', referer="http://a/")
    server.get("/stream")
    with server.connect() as peer:
        peer.send(b"NONSENSE\r\n\r\n")
        told = peer.reply().body
    item, stream, refused = (json.loads(line) for line in lines(server, 3))
    assert (item["method"], item["target"], item["route"]) == (
        "GET",
        "/items/3?a=%22",
        "/items/{id:int}",
    )
    assert (item["status"], item["bytes"], item["protocol"]) == (200, 8, "HTTP/1.1")
    assert item["user_agent"] == 'a "spy"\t é'
    assert item["referer"] == "http://a/"
    assert re.fullmatch("[0-9a-f]{32}", item["request_id"])
    assert re.fullmatch("[0-9a-f]{32}", item["trace_id"])
    assert item["client"].startswith("127.0.0.1:")
    assert (stream["status"], stream["bytes"]) == (200, 15)
    assert stream["duration_ms"] >= 20
    assert (refused["status"], refused["fault"]) == (400, "request_line_syntax")
    assert refused["bytes"] == len(told) > 0


def test_the_bytes_of_a_refused_body_are_those_of_its_answer(serve) -> None:
    source = "@app.post('/')\ndef echo(request): return request.body()"
    server = serve(source, "--access-log-format", "json", "--body-bytes-max", "10")
    with server.connect() as peer:
        peer.send(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.send(b"20\r\n" + b"x" * 32 + b"\r\n")
        reply = peer.reply()
    (line,) = (json.loads(line) for line in lines(server, 1))
    assert (line["status"], line["bytes"]) == (reply.status, len(reply.body))
    assert reply.body


def test_lines_of_atoms_and_names(serve) -> None:
    server = serve(APP, "--access-log-format", '%(h)s "%(r)s" %(s)s %({x-who}i)s %(route)s')
    server.get("/items/3", x_who="me")
    assert lines(server, 1) == ['127.0.0.1 "GET /items/3 HTTP/1.1" 200 me /items/{id:int}']


def test_a_bad_format_ends_the_start(serve) -> None:
    server = serve(APP, "--access-log-format", "%(zz)s", ready=False)
    assert server.wait() == 3
    assert "no atom is called zz" in server.err


def test_a_sample_has_all_errors(serve) -> None:
    server = serve(APP, "--access-log-format", "common", "--access-log-sample", "0")
    for path in ("/", "/nowhere", "/"):
        server.get(path)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert ['"GET /nowhere HTTP/1.1" 404 ' in line for line in server.out.splitlines()] == [True]


def test_ids_come_from_trusted_proxies_and_go_back(serve) -> None:
    server = serve(APP, "--request-id", "x-request-id", "--trace", "--no-access-log")
    given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reply = server.get("/id", x_request_id="from-the-proxy", traceparent=given)
    request_id, _, parent = reply.body.decode().partition(" ")
    assert request_id == reply.headers["x-request-id"] == "from-the-proxy"
    assert parent == reply.headers["traceresponse"]
    assert parent[:36] == given[:36]
    assert parent[36:52] != given[36:52]
    fresh = server.get("/id", traceparent=given.upper())
    assert fresh.headers["x-request-id"] != "from-the-proxy"
    assert given[3:35] not in fresh.body.decode()


def test_handlers_have_the_id_of_the_log(serve) -> None:
    server = serve(APP, "--access-log-format", "json", "--request-id", "X-Request-Id")
    reply = server.get("/same", x_request_id="of-a-proxy")
    assert json.loads(reply.body) == {"id": "of-a-proxy", "field": "of-a-proxy"}
    made = json.loads(server.get("/same").body)["id"]
    assert re.fullmatch("[0-9a-f]{32}", made)
    socket = RawSocket(server, "/socket", x_request_id="of-a-socket").accepted()
    assert socket.message() == "of-a-socket"
    socket.peer.close()
    told = [json.loads(line)["request_id"] for line in lines(server, 3)]
    assert told == ["of-a-proxy", made, "of-a-socket"]


def test_without_ids_handlers_have_none(serve) -> None:
    reply = serve(APP).get("/same", x_request_id="of-anybody")
    assert json.loads(reply.body) == {"id": None, "field": "of-anybody"}


@pytest.mark.parametrize("attribute", ["asgi", "wsgi"])
def test_other_interfaces_have_the_id_of_the_answer(serve, attribute: str) -> None:
    source = INTERFACES + f"app = {attribute}\n"
    server = serve(source, "--request-id", "x-request-id", "--interface", attribute)
    reply = server.get("/")
    assert reply.body.decode() == reply.headers["x-request-id"]


def test_a_rotated_file_is_opened_anew(serve, tmp_path) -> None:
    log = tmp_path / "access.log"
    server = serve(APP, "--access-log-file", str(log), "--access-log-format", "common", "-w", "2")
    server.get("/")
    wait_for(lambda: log.read_text().count("\n") == 1, "a line")
    log.rename(tmp_path / "old.log")
    server.signal(signal.SIGUSR1)
    wait_for(log.exists, "a new file")

    def is_written() -> bool:
        server.get("/")
        return log.read_text() != ""

    wait_for(is_written, "a line in the new file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_log_that_nobody_reads_costs_lines_and_no_request(serve, tmp_path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        server = serve(
            APP, "--access-log-file", str(fifo), "--access-log-format", "combined",
            "--management", "127.0.0.1:0",
        )  # fmt: skip
        request = b"GET /?" + b"x" * 900 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        with server.connect() as peer:
            # More than the queue, what the writer has taken from it, and the pipe hold together.
            for _ in range(80):
                peer.send(request * 50)
                for _ in range(50):
                    assert peer.reply().status == 200
        server.wait_for_log(r"\d+ access log lines were dropped")
        kept = b""
        while True:
            try:
                piece = os.read(reader, 65536)
            except BlockingIOError:
                break
            kept += piece
        assert kept.endswith(b"\n")
        assert all(line.startswith(b"127.0.0.1 - - [") for line in kept.splitlines())
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        os.close(reader)
