"""The codes of calls over HTTP in the access log and the metrics: Connect, gRPC and gRPC-Web."""

from __future__ import annotations

import json
import struct
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from citius.web.interop.connectrpc.status import RpcStatus
from rig import Server, application, wait_for

Serve = Callable[..., Server]
APP = application("connect_status_app")


def start(status: int, media_type: str, **fields: str) -> dict[str, Any]:
    headers = [(b"content-type", media_type.encode())]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def envelope(flags: int, data: bytes) -> bytes:
    return struct.pack(">BI", flags, len(data)) + data


def trailers(**fields: str) -> dict[str, Any]:
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in fields.items()]
    return {"type": "http.response.trailers", "headers": headers}


class Reversing:
    """A compression."""

    def decompress(self, data: bytes) -> bytes:
        return data[::-1]


GRPC, WEB, STREAM = (
    "application/grpc+proto",
    "application/grpc-web+proto",
    "application/connect+json",
)
ERROR = json.dumps({"error": {"code": "data_loss"}}).encode()


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([start(200, GRPC), body(b"x", more=True), trailers(grpc_status="0")], 0),
        ([start(200, GRPC), body(b"x", more=True), trailers(grpc_status="5")], 5),
        ([start(200, GRPC, grpc_status="12"), body(b"")], 12),
        ([start(200, GRPC, grpc_status="99"), body(b"")], 2),
        ([start(200, GRPC), body(b"")], None),
        ([start(200, WEB), body(envelope(0, b"abc") + envelope(0x80, b"grpc-status: 7\r\n"))], 7),
        ([start(200, WEB), body(envelope(0x80, b"Grpc-Status:0\r\nx: y\r\n"))], 0),
        ([start(200, STREAM), body(envelope(0, b"{}" * 100) + envelope(2, ERROR))], 15),
        ([start(200, STREAM), body(envelope(2, b"{}"))], 0),
        ([start(200, STREAM), body(envelope(2, b"{"))], 2),
        ([start(200, STREAM, connect_content_encoding="r"), body(envelope(3, ERROR[::-1]))], 15),
        ([start(200, STREAM, connect_content_encoding="q"), body(envelope(3, ERROR[::-1]))], 2),
        ([start(200, STREAM), body(envelope(2, b" " * 70_000))], 2),
        ([start(404, "application/json"), body(b'{"code":"aborted"}')], 10),
        ([start(404, "application/json"), body(b'{"code":', more=True), body(b'"aborted"}')], 10),
        ([start(404, "application/json"), body(b"[]")], None),
        ([start(404, "text/plain"), body(b"")], None),
        ([start(200, "application/json"), body(b'{"code":"aborted"}')], None),
    ],
)
def test_the_code_of_a_response(messages: list[dict[str, Any]], code: int | None) -> None:
    status = RpcStatus({"r": Reversing()})
    for message in messages:
        status.see(message)
    assert status.code == code
    # Whatever the pieces are that a body comes in.
    status = RpcStatus({"r": Reversing()})
    for message in messages:
        if message["type"] != "http.response.body" or not message["body"]:
            status.see(message)
            continue
        data = message["body"]
        for at in range(len(data)):
            status.see(body(data[at : at + 1], more=message["more_body"] or at + 1 < len(data)))
    assert status.code == code


def test_log_and_metrics(serve: Serve) -> None:
    """Procedures of Connect: unary, in threads, streams, refused calls; other routes have no code."""
    server = serve(
        APP, "--access-log", "--access-log-format", "json", "--management", "127.0.0.1:0"
    )  # fmt: skip
    calls = [
        ("/api/shop/get", "application/json", b'{"id":1}', 200, "ok"),
        ("/api/shop/get", "application/json", b'{"id":"x"}', 400, "invalid_argument"),
        ("/api/shop/get", "application/json", b'{"id":404}', 404, "not_found"),
        ("/api/shop/blocked", "application/json", b"{}", 400, "failed_precondition"),
        ("/api/shop/get", "text/plain", b"{}", 415, "invalid_argument"),
        ("/api/shop/count", STREAM, envelope(0, b'{"to":2}'), 200, "ok"),
        ("/api/shop/count", STREAM, envelope(0, b'{"to":-1}'), 200, "out_of_stock"),
        ("/plain", "application/json", b"{}", 404, None),
    ]
    with server.connect() as peer:
        for path, media_type, data, status, _ in calls:
            reply = peer.request("POST", path, data, content_type=media_type)
            assert reply.status == status, (path, reply)
    wait_for(lambda: "/plain" in server.out, "the lines of the access log")
    lines = [json.loads(line) for line in server.out.splitlines() if line.startswith("{")]
    told = [(one["target"], one["status"], one.get("rpc_code")) for one in lines]
    wanted = [
        (path, status, "failed_precondition" if code == "out_of_stock" else code)
        for path, _, _, status, code in calls
    ]
    assert told[-len(wanted) :] == wanted
    url = f"http://127.0.0.1:{server.management()}/metrics"
    with urllib.request.urlopen(url, timeout=10) as reply:
        metrics = reply.read().decode()
    for route, code, count in (
        ("/api/shop/get", "ok", 1),
        ("/api/shop/get", "invalid_argument", 2),
        ("/api/shop/get", "not_found", 1),
        ("/api/shop/count", "failed_precondition", 1),
    ):
        assert f'citius_rpc_calls_total{{route="{route}",code="{code}"}} {count}' in metrics
    assert 'citius_rpc_calls_total{route="/plain"' not in metrics
