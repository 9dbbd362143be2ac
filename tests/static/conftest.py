"""A directory of files, and a server in front of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, application
from static_site import LARGE

APP = application("shadowed_app")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """``public/`` with a few files, beside a secret."""
    root = tmp_path / "public"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "style.css").write_text("a { color: red }")
    (root / "large.bin").write_bytes(LARGE)
    (root / "empty.txt").write_bytes(b"")
    (root / "docs" / "index.html").write_text("<h1>docs</h1>")
    (root / "with space.txt").write_text("space")
    (root / ".env").write_text("secret")
    os.utime(root / "style.css", (784111777, 784111777))
    return root


@pytest.fixture
def files(serve: Callable[..., Server], site: Path) -> Server:
    """``site`` at ``/assets``, in front of an application that wants it too."""
    return serve(APP, "--static", f"/assets={site}")
