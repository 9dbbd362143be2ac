"""requests_open_max: 503 with Retry-After, whatever serves the requests; the connection stays."""

from __future__ import annotations

import pytest

APP = """
gate = threading.Event()
@app.get("/def")
def plain(): return "ok"
@app.get("/wait")
async def wait(): await asyncio.sleep(30)
@app.get("/block", blocking=True)
def block(): gate.wait(30)
"""


@pytest.mark.parametrize("path", ["/wait", "/block"])
def test_more_are_answered_with_503_and_a_hint(serve, path: str) -> None:
    server = serve(APP, "--limit-concurrency", "1", "--no-access-log")
    with server.connect() as busy, server.connect() as other:
        busy.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        while (reply := other.request("GET", "/def")).status == 200:
            pass  # until the first one has been taken
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        reply = other.request("POST", "/def", b"x" * 1000)
        assert reply.status == 503
        busy.close()
        while (reply := other.request("GET", "/def")).status == 503:
            pass  # until it has been noticed that the first one has left
        assert reply.body == b"ok"
