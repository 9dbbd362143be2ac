"""Servers of HTTP/3 with a certificate for localhost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from pki import APP, Pki
from rig import Server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate and its key."""
    return Pki(trustme.CA(), tmp_path_factory.mktemp("pki")).issue("localhost", "127.0.0.1")


@pytest.fixture
def serve_h3(serve: Callable[..., Server], certificate: tuple[str, str]) -> Callable[..., Server]:
    """Serve ``APP``, or another application, over HTTP/3 too: ``serve_h3("--option", …)``."""

    def start(*arguments: str, app: str | Path = APP, env: dict[str, str] | None = None) -> Server:
        given = ["--ssl-certfile", certificate[0], "--ssl-keyfile", certificate[1]]
        return serve(app, *given, "--http", "1,2,3", *arguments, env=env)

    return start
