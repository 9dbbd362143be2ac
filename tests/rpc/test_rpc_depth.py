"""JSON that is nested deep ends a call of a mounted service, not the worker (`make connect-conformance`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
from rig import Server, application

TOOLS = Path(__file__).parents[2] / ".tools"
PATH = "/connectrpc.conformance.v1.ConformanceService"
DEEP = 100_000

pytestmark = pytest.mark.skipif(
    not (TOOLS / "connect/ready").exists(), reason="`make .tools/connect/ready` installs connectrpc"
)


@pytest.fixture
def server(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(rig, "PYTHON", str(TOOLS / "connect/environment/bin/python"))
    env = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
    return serve(application("rpc_services_app"), env=env)


def with_details(value: bytes) -> bytes:
    """A request in which ``value`` stands for a message of any type."""
    detail = b'{"@type": "type.googleapis.com/google.protobuf.Value", "value": ' + value + b"}"
    return b'{"responseDefinition": {"error": {"details": [' + detail + b"]}}}"


def test_the_worker_goes_on(server: Server) -> None:
    bodies = {
        "in a message": with_details(b"[" * DEEP + b"]" * DEEP),
        "in place of it": b"[" * DEEP + b"]" * DEEP,
        "objects": with_details(b'{"a":' * DEEP + b"1" + b"}" * DEEP),
        "behind an escape": with_details(b'["\\"",' + b"[" * DEEP + b"]" * DEEP + b"]"),
    }
    for name, body in bodies.items():
        with server.connect() as peer:
            reply = peer.request("POST", f"{PATH}/Unary", body, content_type="application/json")
            assert (reply.status, json.loads(reply.body)["code"]) == (400, "invalid_argument"), name
            # The same process, over the same connection; brackets in texts are none.
            body = with_details(b'"' + b"[{" * DEEP + b'"')
            reply = peer.request("POST", f"{PATH}/Unary", body, content_type="application/json")
            assert (reply.status, json.loads(reply.body)) == (
                200,
                {"payload": {"data": "aGVsbG8="}},
            )


def test_streams_too(server: Server) -> None:
    body = with_details(b"[" * DEEP + b"]" * DEEP)
    with server.connect() as peer:
        for method in ("ClientStream", "ServerStream"):
            reply = peer.request(
                "POST", f"{PATH}/{method}", b"\0" + len(body).to_bytes(4, "big") + body,
                content_type="application/connect+json",
            )  # fmt: skip
            said = json.loads(reply.body[5:])["error"]
            assert said["code"] in ("invalid_argument", "unimplemented"), (method, said)
        assert peer.request("GET", "/").body == b"native"
