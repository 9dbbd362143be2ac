"""requests_open_max: 503 with Retry-After, for every interface; the connection stays."""

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


ASGI = """
async def app(scope, receive, send):
    if scope["path"] == "/wait":
        await asyncio.sleep(30)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""
WSGI = """
def app(environ, start_response):
    if environ["PATH_INFO"] == "/wait":
        for _ in range(300):
            time.sleep(0.1)
    start_response("200 OK", [])
    return [b"ok"]
"""


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (ASGI, ("--interface", "asgi", "--lifespan", "off")),
        (WSGI, ("--interface", "wsgi", "--threads", "2")),
        (WSGI, ("--interface", "wsgi", "--loop", "gevent")),
    ],
    ids=["asgi", "threads", "gevent"],
)
def test_other_interfaces_shed_load_too(serve, source: str, options: tuple[str, ...]) -> None:
    env = {}
    if "gevent" in options:
        pytest.importorskip("gevent")
        env = {"PYTHONWARNINGS": "default"}
    server = serve(source, *options, "--limit-concurrency", "1", "--no-access-log", env=env)
    with server.connect() as busy, server.connect() as other:
        busy.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        while (reply := other.request("GET", "/")).status == 200:
            pass  # until the first one has been taken
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert other.request("POST", "/", b"x" * 100_000).status == 503
        busy.close()
        while (reply := other.request("GET", "/")).status == 503:
            pass  # until it has been noticed that the first one has left
        assert reply.body == b"ok"
