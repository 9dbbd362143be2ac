"""HTTP/2 on either side: content both ways, trailers as gRPC has them, WebSockets from HTTP/2 to HTTP/1.1."""

from __future__ import annotations

import h2peer
from gateway_rig import grants
from http_peer import answering
from rig import application

GATEWAY = application("gateway_app")
BEHIND = """
from citius import App, Request, Response
app = App()
@app.post("/v1/{name}", stream=True)
async def handler(request: Request) -> Response:
    body = await request.read()
    fields = {"grpc-status": "0", "x-bytes": str(len(body))}
    return Response(iter([body]), headers={"x-version": request.http_version}, trailers=fields)
"""


def test_trailers_and_content_over_http_2_on_both_sides(serve) -> None:
    behind = serve(BEHIND)
    env = {"UPSTREAMS": f"http://127.0.0.1:{behind.port}", "H2": "prior"}
    server = serve(GATEWAY, "--workers", "1", env=env)
    with h2peer.connect(server) as peer:
        for stream, size in ((1, 0), (3, 5), (5, 50_000)):
            body = b"x" * size
            peer.request(stream, "POST", "/v1/Call", body, [("te", "trailers")])
            found = peer.answer(stream)
            assert found.status == 200
            assert found.headers["x-version"] == "2"
            assert bytes(found.body) == body
            assert found.trailers == {"grpc-status": "0", "x-bytes": str(size)}


def test_what_is_no_websocket_goes_by_http_2_whatever_its_client_says(serve) -> None:
    """A connection of HTTP/1.1 is for WebSockets; a server of HTTP/2 only would answer none by it."""
    behind = serve(BEHIND.replace('app.post("/v1/{name}", stream=True)', 'app.get("/v1/{name}")'))
    env = {"UPSTREAMS": f"http://127.0.0.1:{behind.port}", "H2": "prior"}
    server = serve(GATEWAY, "--workers", "1", env=env)
    for upgrade in ("foo", "websockets"):
        with server.connect() as peer:
            fields = {"connection": "upgrade", "upgrade": upgrade}
            reply = peer.request("GET", "/v1/x", None, **fields)
            assert (reply.status, reply.headers["x-version"]) == (200, "2")


def test_a_websocket_from_http_2_to_http_1(gateway) -> None:
    before = gateway(grants)
    with h2peer.connect(before.server) as peer:
        fields = [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/v1/chat"),
            (":authority", "a"), ("sec-websocket-version", "13"),
        ]  # fmt: skip
        block = peer.block(fields)
        peer.send(h2peer.frame(h2peer.HEADERS, h2peer.END_HEADERS, 1, block))
        peer.send(h2peer.frame(h2peer.DATA, 0, 1, b"hello bye"))
        found = peer.answer(1)
        assert found.status == 200
        assert "sec-websocket-accept" not in found.headers
        assert bytes(found.body) == b"firstHELLO BYE"


def test_a_response_that_is_no_websocket_grants_none(gateway) -> None:
    """RFC 8441 §5: a status of 2xx would tell the client that its WebSocket is there."""
    before = gateway(answering())
    with h2peer.connect(before.server) as peer:
        fields = [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/v1/chat"),
            (":authority", "a"), ("sec-websocket-version", "13"),
        ]  # fmt: skip
        block = peer.block(fields)
        peer.send(h2peer.frame(h2peer.HEADERS, h2peer.END_HEADERS, 1, block))
        assert peer.answer(1).status == 502
