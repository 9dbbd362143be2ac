"""What is passed on without Python (I30) is behind the same protection as all else: hostile 2.

``tests/gateway/test_protection.py`` has the kinds of protection; its declarations are Python's, for their
servers are mocks.
"""

# pyright: basic

from __future__ import annotations

import json

from http_peer import Peer, answering
from rig import application


def test_every_kind_of_protection(serve) -> None:
    with Peer(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nSECRET")) as peer:
        upstream = f"http://127.0.0.1:{peer.port}"
        server = serve(
            application("forward_protection_app"), "--workers", "1", env={"UPSTREAM": upstream}
        )
        names = json.loads(server.get("/names").body)["names"]
        assert len(names) > 11
        with server.connect() as client:
            for _ in range(
                2
            ):  # the second one finds a connection, and would be passed on without Python
                for method in ("GET", "POST", "HEAD"):
                    assert client.request(method, "/free/member").status == 200
            for name in names:
                if "limit" in name:
                    assert client.request("POST", name).status == 200
                for method in ("POST", "PUT", "DELETE"):
                    reply = client.request(method, name, origin="https://elsewhere.example")
                    assert reply.status in (400, 401, 403, 421, 429), (method, name)
                    assert b"SECRET" not in reply.body
                if "csrf" not in name:
                    assert client.request("GET", name).status in (400, 401, 403, 421, 429), name
            assert client.request("POST", "/free/small", b"x" * 10).status == 200
            assert client.request("GET", "/errors/member").body == b"own page"
        with server.connect() as client:
            assert client.request("POST", "/free/small", b"x" * 11).status == 413
