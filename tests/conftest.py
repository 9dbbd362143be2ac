"""Fixtures that several folders share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import Server

HEADER = """\
import asyncio, contextvars, json, os, sys, threading, time
from citius import *
app = App()
"""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Write an application and serve it: ``serve(source, "--option", …)``.

    The source begins after ``app = App()``. ``ready=False`` does not wait for it to listen.
    """
    servers: list[Server] = []

    def start(
        source: str, *arguments: str, env: dict[str, str] | None = None, ready: bool = True
    ) -> Server:
        (tmp_path / "main.py").write_text(HEADER + textwrap.dedent(source))
        server = Server(["main.py", "--port", "0", *arguments], env or {}, tmp_path)
        servers.append(server)
        return server.wait_ready() if ready else server

    yield start
    for server in servers:
        server.kill()
