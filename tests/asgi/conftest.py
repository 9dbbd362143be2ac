"""An ASGI application of one's own, served for real."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import Server, application

HEADER = "import asyncio, json, os, sys, time\n" + application("asgi_parts").read_text()


@pytest.fixture
def serve_asgi(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serve a module with an ``async def app(scope, receive, send)``, or one that is written of a source."""
    servers: list[Server] = []

    def start(
        source: str | Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        ready: bool = True,
        lifespan: str = "off",
    ) -> Server:
        target = str(source)
        if not isinstance(source, Path):
            target = "main.py"
            (tmp_path / target).write_text(HEADER + textwrap.dedent(source))
        given = [target, "--port", "0", "--lifespan", lifespan, *arguments]
        server = Server(given, env or {}, tmp_path)
        servers.append(server)
        return server.wait_ready() if ready else server

    yield start
    for server in servers:
        server.kill()
