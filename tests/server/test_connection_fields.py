"""What the log says of fields that are the server's; more in tests/gateway/test_connection_fields.py."""

from __future__ import annotations

from collections.abc import Callable

from rig import Server


def test_the_log_names_the_handler_and_the_fields(serve: Callable[..., Server]) -> None:
    server = serve(
        """
        from citius import Response

        @app.get("/")
        def coded() -> Response:
            return Response("x", headers={"transfer-encoding": "chunked"})
        """
    )
    with server.connect() as peer:
        for _ in range(2):
            reply = peer.request("GET", "/")
            assert reply.status == 500
            assert "transfer-encoding" not in reply.headers
    server.wait_for_log(
        r"ERROR GET /: application sends transfer-encoding.* \(RFC 9110 §7\.6\.1\) .*coded"
    )
