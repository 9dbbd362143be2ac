"""A directory of files, and a server in front of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, application
from static_site import LARGE

APP = application("shadowed_app")


def made_site(directory: Path) -> Path:
    """``public/`` with a few files, beside a secret."""
    root = directory / "public"
    (root / "docs").mkdir(parents=True)
    (directory / "secret").write_text("secret")
    (root / "style.css").write_text("a { color: red }")
    (root / "large.bin").write_bytes(LARGE)
    (root / "empty.txt").write_bytes(b"")
    (root / "docs" / "index.html").write_text("<h1>docs</h1>")
    (root / "with space.txt").write_text("space")
    (root / ".env").write_text("secret")
    os.utime(root / "style.css", (784111777, 784111777))
    return root


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of one test, which may change it."""
    return made_site(tmp_path)


@pytest.fixture
def files(serve: Callable[..., Server], site: Path) -> Server:
    """``site`` at ``/assets``, in front of an application that wants it too."""
    return serve(APP, "--static", f"/assets={site}")


@pytest.fixture(scope="module")
def files_module(
    serve_module: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """The same for the tests of a module that only read."""
    return serve_module(APP, "--static", f"/assets={made_site(tmp_path_factory.mktemp('site'))}")
