"""An ASGI application of one's own, served for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import Server, application, serving

HEADER = "import asyncio, json, os, sys, time\n" + application("asgi_parts").read_text()


@contextmanager
def serving_asgi(directory: Path) -> Iterator[Callable[..., Server]]:
    """``rig.serving`` with a lifespan that is off unless a test wants it."""
    with serving(directory, HEADER) as serve:

        def start(
            source: str | Path, *arguments: str, lifespan: str = "off", **options: Any
        ) -> Server:
            return serve(source, "--lifespan", lifespan, *arguments, **options)

        yield start


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
