"""Servers whose certificates Pebble issues."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from acme_rig import TOOLS, Pebble
from rig import Server, application, free_port

APP = application("tls_app")


@pytest.fixture
def unused_port() -> int:
    return free_port()


@pytest.fixture
def directory() -> Generator[Path]:
    """A directory that all users may enter, as /var/lib is."""
    made = Path(tempfile.mkdtemp(prefix="citius-acme-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def authority(directory: Path) -> Generator[Callable[..., Pebble]]:
    """Start the authority: ``authority(validity_s=90)``."""
    if sys.platform != "linux" or not (TOOLS / "pebble").exists() or find_spec("acme") is None:
        pytest.skip("`make .tools/pebble` builds Pebble, and citius[acme] has what asks it")
    made: list[Pebble] = []

    def start(**options: Any) -> Pebble:
        made.append(Pebble(directory, **options))
        return made[0]

    yield start
    for one in made:
        one.stop()


@pytest.fixture
def pebble(authority: Callable[..., Pebble]) -> Pebble:
    return authority()


@pytest.fixture
def fetching(serve: Callable[..., Server]) -> Callable[..., Server]:
    """Serve with certificates of an authority: ``fetching(pebble, "--acme", "a.example")``."""

    def start(pebble: Pebble, *arguments: str) -> Server:
        return serve(APP, *pebble.options, "--no-access-log", *arguments)

    return start
