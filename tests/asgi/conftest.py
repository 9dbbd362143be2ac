"""An ASGI application of one's own, served for real."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import Server, application

HEADER = "import asyncio, json, os, sys, time\n" + application("asgi_parts").read_text()


@contextmanager
def serving_asgi(directory: Path) -> Iterator[Callable[..., Server]]:
    """What the fixtures below return; ends all servers that it has started."""
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
            target = f"main{len(servers) or ''}.py"
            (directory / target).write_text(HEADER + textwrap.dedent(source))
        given = [target, "--port", "0", "--lifespan", lifespan, *arguments]
        server = Server(given, env or {}, directory)
        servers.append(server)
        return server.wait_ready() if ready else server

    try:
        yield start
    finally:
        for server in servers:
            server.kill()


@pytest.fixture
def serve_asgi(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serve a module with an ``async def app(scope, receive, send)``, or one that is written of a source."""
    with serving_asgi(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def serve_asgi_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """The same for servers that all tests of a module use."""
    with serving_asgi(tmp_path_factory.mktemp("served")) as start:
        yield start
