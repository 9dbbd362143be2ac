"""What clients and servers of a gateway may speak, and fields that gateways have rules for."""

# pyright: basic

from __future__ import annotations

import asyncio
from pathlib import Path

import trustme
from gateway_rig import opening
from h3peer import h3_client
from http_peer import Peer, answering, server
from pki import Pki
from rig import application

GATEWAY = application("gateway_app")
SPEAKS_BOTH = """
from citius import App, WebSocket
app = App()
@app.websocket("/v1/chat")
async def chat(ws: WebSocket) -> None:
    async for message in ws:
        await ws.send(message.upper())
"""


def test_a_websocket_to_a_server_that_is_asked_over_http_2(serve) -> None:
    """It takes a connection of HTTP/1.1 of its own; it was answered with 500."""
    behind = serve(SPEAKS_BOTH)
    env = {"UPSTREAMS": f"http://127.0.0.1:{behind.port}", "H2": "prior"}
    gateway = serve(GATEWAY, "--workers", "1", env=env)
    with gateway.connect() as peer:
        peer.send(opening(b"/v1/chat"))
        assert peer.read_until(b"\r\n\r\n").lower().startswith(b"http/1.1 101 ")
        peer.send(b"\x81\x82\0\0\0\0hi")
        assert peer.read(4) == b"\x81\x02HI"


def test_a_server_behind_tls_and_one_that_is_another(serve, tmp_path: Path) -> None:
    authority = trustme.CA()
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    right = server(authority.issue_cert("localhost"))
    wrong = server(trustme.CA().issue_cert("localhost"))
    for context, status in ((right, 200), (wrong, 502)):
        with Peer(answering(), tls=context) as peer:
            env = {"UPSTREAMS": f"https://localhost:{peer.port}", "SSL_CERT_FILE": str(bundle)}
            gateway = serve(GATEWAY, "--workers", "1", env=env)
            with gateway.connect() as client:
                for method, body in (("GET", None), ("POST", b"content"), ("GET", None)):
                    assert client.request(method, "/v1/x", body).status == status
            if status == 502:
                gateway.wait_for_log("502, for TlsError")


def test_clients_of_http_3(gateway, tmp_path: Path) -> None:
    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost", "127.0.0.1")
    tls = ("--ssl-certfile", certificate, "--ssl-keyfile", key, "--http", "1,2,3")
    before = gateway(options=tls)

    async def main() -> None:
        async with h3_client(before.server) as client:
            for size in (0, 5, 300_000):
                body = b"x" * size
                response = await client.get("/v1/much", "POST", body)
                assert response.status == 200
                assert response.body.endswith(b"\n\n" + body)
            response = await client.get("/v1/x?a=b")
            assert response.body.startswith(b"GET /v1/x?a=b HTTP/1.1\n")
            assert b"via: 3 citius\n" in response.body
            assert b"x-forwarded-proto: https\n" in response.body

    asyncio.run(main())


def test_max_forwards(gateway) -> None:
    """RFC 9110 §7.6.2: counted down for OPTIONS and TRACE alone, and answered here at 0."""
    before = gateway()
    with before.server.connect() as peer:
        text = peer.request("OPTIONS", "/v1/x", None, max_forwards="3").body
        assert b"\nmax-forwards: 2\n" in text
        assert (
            peer.request("GET", "/v1/x", None, max_forwards="3").body.count(b"forwards: 3\n") == 1
        )
        reply = peer.request("OPTIONS", "/v1/x", None, max_forwards="0")
        assert (reply.status, reply.body) == (204, b"")
        text = peer.request("OPTIONS", "/v1/x", None, max_forwards="a").body
        assert b"\nmax-forwards: 0\n" in text


def test_the_trace_of_a_request_goes_on(gateway) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    before = gateway()
    with before.server.connect() as peer:
        for path in ("/v1/x", "/hooked/x", "/many/x"):
            text = peer.request("GET", path, None, traceparent=parent, tracestate="a=b").body
            assert text.count(b"\ntraceparent: %s\n" % parent.encode()) == 1
            assert b"\ntracestate: a=b\n" in text
