"""An authority of our own, and servers that show its certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from pki import APP, Pki
from rig import Server


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    (tmp_path / "pki").mkdir()
    return Pki(trustme.CA(), tmp_path / "pki")


@pytest.fixture
def secured(serve: Callable[..., Server], pki: Pki) -> Callable[..., Server]:
    """Serve ``APP`` with a certificate for localhost: ``secured("--option", …)``."""

    def start(*arguments: str, app: str = APP, env: dict[str, str] | None = None) -> Server:
        certificate, key = pki.issue("localhost", "127.0.0.1")
        given = ["--ssl-certfile", certificate, "--ssl-keyfile", key, "--no-access-log", *arguments]
        return serve(app, *given, env=env)

    return start
