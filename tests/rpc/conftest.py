"""Servers with procedures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import Server
from rpc_rig import serve_procedures


@pytest.fixture
def serve_rpc(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serve the procedures of rpc_rig.py: ``serve_rpc("--option", …, address=…)``."""
    servers: list[Server] = []

    def start(*arguments: str, address: str = "127.0.0.1:0") -> Server:
        servers.append(serve_procedures(tmp_path, *arguments, address=address))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="module")
def procedures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same without options, for all tests of a file."""
    server = serve_procedures(tmp_path_factory.mktemp("procedures"))
    yield server
    server.kill()
