"""Streams of mounted services whose time is over at once, and whose responses are not sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
from rig import Server, application

TOOLS = Path(__file__).parents[2] / ".tools"
PATH = "/connectrpc.conformance.v1.ConformanceService/ServerStream"
KINDS = {
    "application/connect+json": ("connect-timeout-ms", "0"),
    "application/grpc-web+json": ("grpc-timeout", "0n"),
}

pytestmark = pytest.mark.skipif(
    not (TOOLS / "connect/ready").exists(), reason="`make .tools/connect/ready` installs connectrpc"
)


@pytest.fixture
def server(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(rig, "PYTHON", str(TOOLS / "connect/environment/bin/python"))
    env = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
    return serve(application("rpc_streams_app"), env=env)


def counts(server: Server) -> dict[str, int]:
    return json.loads(server.get("/counts").body)


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_that_is_over_at_once(server: Server, kind: str) -> None:
    """The time ends between the header section and the first message."""
    field, value = KINDS[kind]
    with server.connect() as peer:
        for _ in range(3):
            fields = {"content_type": kind, field: value}
            reply = peer.request("POST", PATH, b"\0\0\0\0\2{}", **fields)
            code = b'"deadline_exceeded"' if "connect" in kind else b"grpc-status: 4"
            assert (reply.status, code in reply.body) == (200, True), reply
    now = counts(server)
    assert now["begun"] == now["ended"]


@pytest.mark.parametrize("what", ["another", "raise"])
def test_a_response_that_is_not_sent(server: Server, what: str) -> None:
    """A middleware drops the body: the generator of the service is closed."""
    with server.connect() as peer:
        fields = {"content_type": "application/connect+json", "x-replace": what}
        reply = peer.request("POST", PATH, b"\0\0\0\0\2{}", **fields)
        assert reply.status == (418 if what == "another" else 500)
    rig.wait_for(lambda: counts(server)["ended"] == 1, "the end of the generator")
    assert counts(server)["begun"] == 1
