"""A child that the application forks ends; it neither serves on the worker's sockets nor removes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import Server

FORK = """
import sys

def fork(how):
    \"\"\"The exit code of a child that leaves its function; the child comes back from here, too.\"\"\"
    child = os.fork()
    if child == 0:
        if how == "exit":
            sys.exit(7)
        if how == "raise":
            raise ValueError("in the child")
        return "child"
    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
NATIVE = (
    FORK
    + """
@app.get("/def/{how}")
def plain(how):
    return fork(how)

@app.get("/async/{how}")
async def at_once(how):
    return fork(how)

@app.get("/late/{how}")
async def late(how):
    await asyncio.sleep(0)
    return fork(how)

@app.get("/blocking/{how}", blocking=True)
def blocking(how):
    return fork(how)

@app.get("/hello")
def hello():
    return "hello"
"""
)
ASGI = (
    "import asyncio, os\n"
    + FORK
    + """
async def app(scope, receive, send):
    _, where, how = scope["path"].split("/")
    if where == "late":
        await asyncio.sleep(0)
    text = "hello" if where == "hello" else fork(how)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})
"""
)
WSGI = (
    "import os\n"
    + FORK
    + """
def app(environ, start_response):
    _, where, how = environ["PATH_INFO"].split("/")
    text = "hello" if where == "hello" else fork(how)
    start_response("200 OK", [])
    return [text.encode()]
"""
)
CODES = {"exit": b"7", "raise": b"1", "return": b"1"}
# Warnings are errors in a server under test; from Python 3.12 on, a fork beside threads is one.
PLAIN = {"PYTHONWARNINGS": "ignore"}


def check(server: Server, where: str, how: str, hello: str = "/hello") -> None:
    with server.connect() as peer:
        for _ in range(2):
            reply = peer.request("GET", f"/{where}/{how}")
            assert (reply.status, reply.body) == (200, CODES[how]), server.err
            assert peer.request("GET", hello).body == b"hello"
    if how != "exit":
        server.wait_for_log("a forked child ended")
    assert server.get(hello).body == b"hello"
    server.stop()
    assert ("a forked child ended" in server.err) == (how != "exit")


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("where", ["def", "async", "late", "blocking"])
def test_a_child_that_a_handler_forks_never_serves(serve, where: str, how: str) -> None:
    check(serve(NATIVE, env=PLAIN), where, how)


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize(
    ("source", "where", "options"),
    [
        (ASGI, "at-once", []),
        (ASGI, "late", []),
        (WSGI, "inline", ["--threads", "0"]),
        (WSGI, "thread", ["--threads", "2"]),
    ],
    ids=["asgi", "asgi-late", "wsgi", "wsgi-thread"],
)
def test_a_child_that_an_application_forks_never_serves(
    tmp_path: Path, source: str, where: str, options: list[str], how: str
) -> None:
    (tmp_path / "main.py").write_text(source)
    server = Server(["main.py", "--port", "0", *options], PLAIN, tmp_path)
    try:
        check(server.wait_ready(), where, how, "/hello/you")
    finally:
        server.kill()


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("hook", ["@app.on_startup", "@(lambda function: function())"])
def test_a_child_that_is_forked_at_the_start_leaves_the_socket(
    tmp_path: Path, hook: str, how: str
) -> None:
    (tmp_path / "main.py").write_text(
        f"import os\nfrom citius import *\napp = App()\n{FORK}\n"
        f"{hook}\ndef begin():\n    global code\n    code = fork({how!r})\n\n"
        "@app.get('/')\ndef index():\n    return code\n"
    )
    path = tmp_path / "socket"
    server = Server(["main.py", "--bind", f"unix:{path}"], PLAIN, tmp_path)
    try:
        server.wait_ready()
        assert path.exists()
        assert server.get("/").body == CODES[how], server.err
    finally:
        server.kill()
