"""Services of connectrpc in a native application, called by grpcurl and curl (`make connect-conformance`)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rig
from citius import App, ConfigError
from rig import Server, application

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools"
GRPCURL = TOOLS / "grpcurl"
PROBE = TOOLS / "grpc-health-probe"
HEALTH = "grpc.health.v1.Health"
SERVICE = "connectrpc.conformance.v1.ConformanceService"

needs_tools = pytest.mark.skipif(
    not ((TOOLS / "connect/ready").exists() and GRPCURL.exists()),
    reason="`make .tools/connect/ready .tools/grpcurl` installs connectrpc and grpcurl",
)
Serve = Callable[..., Server]


@pytest.fixture
def serve_rpc(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setattr(rig, "PYTHON", str(TOOLS / "connect/environment/bin/python"))

    def start(*arguments: str, **env: str) -> Server:
        return serve(
            application("rpc_services_app"), *arguments,
            env={"PYTHONDEVMODE": "", "PYTHONWARNINGS": "", **env},
        )  # fmt: skip

    return start


def grpcurl(server: Server, *arguments: str) -> str:
    command = [GRPCURL, "-plaintext", *arguments[:-1], f"127.0.0.1:{server.port}"]
    done = subprocess.run(
        [*command, *arguments[-1].split(" ")], capture_output=True, text=True, timeout=30
    )
    return done.stdout + done.stderr


@needs_tools
def test_grpcurl_finds_and_calls_services(serve_rpc: Callable[..., Server]) -> None:
    server = serve_rpc("--workers", "2")
    assert grpcurl(server, "list").split() == [SERVICE, HEALTH]
    assert "rpc Unary (" in grpcurl(server, f"describe {SERVICE}")
    assert "message UnaryRequest" in grpcurl(
        server, "describe connectrpc.conformance.v1.UnaryRequest"
    )
    assert "not found" in grpcurl(server, "describe no.such.Thing").lower()
    said = json.loads(grpcurl(server, f"{SERVICE}/Unary"))
    assert said == {"payload": {"data": "aGVsbG8="}}
    assert "returns ( stream .grpc.health.v1.HealthCheckResponse )" in grpcurl(
        server, f"describe {HEALTH}"
    )
    assert "NOT_SERVING = 2" in grpcurl(server, "describe grpc.health.v1.HealthCheckResponse")
    assert json.loads(grpcurl(server, f"{HEALTH}/Check")) == {"status": "SERVING"}
    said = grpcurl(server, f"{SERVICE}/ServerStream")
    assert "Unimplemented" in said or "Unknown" in said or "Internal" in said
    with server.connect() as peer:
        reply = peer.request("POST", f"/{SERVICE}/Unary", b"{}", content_type="application/json")
        assert json.loads(reply.body) == {"payload": {"data": "aGVsbG8="}}
        assert peer.request("GET", "/").body == b"native"


@needs_tools
def test_health(serve_rpc: Callable[..., Server]) -> None:
    server = serve_rpc("--drain-s", "10", GUARDED="1")
    with server.connect() as peer:
        path = "/grpc.health.v1.Health/Check"
        json_fields = {"content_type": "application/json"}
        assert json.loads(peer.request("POST", path, b"{}", **json_fields).body) == {
            "status": "SERVING"
        }
        named = json.dumps({"service": SERVICE}).encode()
        assert json.loads(peer.request("POST", path, named, **json_fields).body) == {
            "status": "SERVING"
        }
        other = peer.request("POST", path, b'{"service": "none"}', **json_fields)
        assert (other.status, json.loads(other.body)["code"]) == (404, "not_found")


@needs_tools
@pytest.mark.skipif(not PROBE.exists(), reason="`make .tools/grpc-health-probe` builds the probe")
def test_kubernetes_probe(serve_rpc: Callable[..., Server]) -> None:
    """grpc_health_probe, which sees the server as Kubernetes does: without a token."""
    server = serve_rpc("--drain-s", "10", GUARDED="1")

    def probe(*options: str) -> tuple[int, str]:
        done = subprocess.run(
            [PROBE, f"-addr=127.0.0.1:{server.port}", "-connect-timeout=10s", "-rpc-timeout=10s", *options],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    for options in ((), (f"-service={SERVICE}",)):
        code, said = probe(*options)
        assert (code, "SERVING" in said) == (0, True), said
    code, said = probe("-service=no.such.Service")
    assert code != 0, said


@needs_tools
def test_those_that_watch_hear_of_a_stop(serve_rpc: Callable[..., Server]) -> None:
    server = serve_rpc("--drain-s", "10")
    peer = server.connect()
    body = b"\0\0\0\0\2{}"
    peer.send(
        f"POST /grpc.health.v1.Health/Watch HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    peer.read_until(b'{"status": "SERVING"}')
    server.signal(signal.SIGTERM)
    peer.read_until(b'{"status": "NOT_SERVING"}')
    assert server.wait() == 0


@needs_tools
def test_dependencies_hold(serve_rpc: Callable[..., Server]) -> None:
    server = serve_rpc(GUARDED="1")
    assert "Unauthenticated" in grpcurl(server, "list")
    right = ("-H", "authorization: Bearer right")
    assert grpcurl(server, *right, "list").split() == [SERVICE, HEALTH]
    assert "payload" in grpcurl(server, *right, f"{SERVICE}/Unary")
    with server.connect() as peer:
        fields = {"content_type": "application/json"}
        for path in (f"/{SERVICE}/Unary", f"/{SERVICE}/None"):
            assert peer.request("POST", path, b"{}", **fields).status == 401


@needs_tools
def test_metrics_and_log_name_methods(serve_rpc: Callable[..., Server]) -> None:
    server = serve_rpc("--management", "127.0.0.1:0", "--access-log")
    grpcurl(server, f"{SERVICE}/Unary")
    grpcurl(server, f"{SERVICE}/Unimplemented")
    for method, code in (("Unary", "ok"), ("Unimplemented", "unimplemented")):
        line = re.compile(rf"POST /{re.escape(SERVICE)}/{method} HTTP/2[^\"]*\" 200 {code} ")
        rig.wait_for(lambda line=line: line.search(server.out), "the line of the access log")
    port = server.management()
    import urllib.request

    def metrics() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            return reply.read().decode()

    rig.wait_for(lambda: f'route="/{SERVICE}/Unary"' in metrics(), "the counter of the method")
    assert f'citius_rpc_calls_total{{route="/{SERVICE}/Unary",code="ok"}} 1' in metrics()
    told = f'citius_rpc_calls_total{{route="/{SERVICE}/Unimplemented",code="unimplemented"}} 1'
    assert told in metrics()
    # Connect's unary error has a status of its own, and its code in the body.
    with server.connect() as peer:
        for _ in range(2):
            path = f"/{SERVICE}/Unimplemented"
            reply = peer.request("POST", path, b"{}", content_type="application/json")
            assert reply.status == 501, reply
    again = told[:-1] + "3"
    rig.wait_for(lambda: again in metrics(), "the counter of the code")


def test_what_is_no_service_is_refused() -> None:
    app = App()

    async def other(scope: object, receive: object, send: object) -> None: ...

    with pytest.raises(ConfigError, match="protoc-gen-connectrpc"):
        app.mount_rpc(other)  # pyright: ignore
    with pytest.raises(ConfigError, match="expected a service"):
        app.mount_rpc()
