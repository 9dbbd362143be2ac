"""A client that leaves during its upload is no error of the application's."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import PLAIN, Server, application

APP = application("left_uploads_app")
PATHS = ["/async", "/goes-on", "/blocking", "/wrapped", "/echo", "/echo-blocking", "/asgi/x", "/wsgi/x",
         "/wrapping/x"]  # fmt: skip


def leave(server: Server, path: str, framing: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\n".encode()
    with server.connect() as peer:
        if framing == "length":
            peer.send(head + b"Content-Length: 400000\r\n\r\n" + b"x" * 200_000)
        else:
            peer.send(head + b"Transfer-Encoding: chunked\r\n\r\n30d40\r\n" + b"x" * 200_000)
        while "begun" not in server.out:
            assert server.process.poll() is None
    server.stop()  # whatever is to be logged is by then


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    ("name", "path", "options"),
    [
        *(("app", path, []) for path in PATHS),
        ("asgi", "/", []),
        ("wsgi", "/", ["--threads", "1"]),
        ("wrapping", "/", ["--threads", "1"]),
    ],
    ids=str,
)
def test_it_is_no_error(serve, framing: str, name: str, path: str, options: list[str]) -> None:
    server = serve(Path(f"{APP}:{name}"), "--log-level", "debug", *options, env=PLAIN)
    leave(server, path, framing)
    assert "ERROR" not in server.err, server.err
    assert "Traceback" not in server.err, server.err


def test_a_defect_of_the_code_that_handles_it_is_one(serve) -> None:
    server = serve(APP, env=PLAIN)
    leave(server, "/defect", "length")
    assert "KeyError: 'a defect'" in server.err
