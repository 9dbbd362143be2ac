"""An ASGI application of one's own, served for real."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import Server

HEADER = """\
import asyncio, json, os, sys, time

async def start(send, status=200, *headers, **more):
    await send({"type": "http.response.start", "status": status, "headers": list(headers), **more})

async def body(send, data=b"", more=False):
    await send({"type": "http.response.body", "body": data, "more_body": more})

async def answer(send, data, *headers):
    await start(send, 200, *headers)
    await body(send, data)

async def read(receive):
    whole = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        whole += message.get("body", b"")
        if not message.get("more_body", False):
            return whole
"""


@pytest.fixture
def serve_asgi(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Write an application ``async def app(scope, receive, send)`` and serve it."""
    servers: list[Server] = []

    def start(source: str, *arguments: str, ready: bool = True, lifespan: str = "off") -> Server:
        (tmp_path / "main.py").write_text(HEADER + textwrap.dedent(source))
        given = ["main.py", "--port", "0", "--lifespan", lifespan, *arguments]
        server = Server(given, {}, tmp_path)
        servers.append(server)
        return server.wait_ready() if ready else server

    yield start
    for server in servers:
        server.kill()
