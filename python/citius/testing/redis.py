"""Redis for tests: a server of their own for a session, empty for each test.

    from citius.testing.redis import emptied

    @pytest.fixture
    def citius_app(citius_redis: str) -> Iterator[App]:
        with emptied(redis, citius_redis):
            yield app

``citius_redis`` is a fixture of ``plugin.py``: the URL of a Redis that lives as long as the test session.
Within ``emptied`` a client of ``citius.redis`` works there. Tests: ``tests/redis/test_testing.py``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from citius.redis import ConnectionLost, Redis
from citius.redis.urls import parse

if TYPE_CHECKING:
    from collections.abc import Generator

_Client = TypeVar("_Client", bound="Redis[Any]")

VARIABLE = "CITIUS_TEST_REDIS"
"""The environment variable with the URL of a server whose database tests may empty."""

WAIT_S = 30.0


class NoRedis(RuntimeError):
    """There is no server to test with, and none that could be started."""


@contextlib.contextmanager
def database() -> Generator[str]:
    """The URL of a Redis for the block.

    It is the one that the variable ``CITIUS_TEST_REDIS`` names; each process of pytest-xdist has the database
    with a number of its own, from that of the URL on. Without it a server is started, in a temporary
    directory and on a Unix socket.

    Raises:
        NoRedis: Redis is not installed either.
    """
    if url := os.environ.get(VARIABLE):
        number = parse(url).database + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
        base = url.partition("?")[0].rstrip("/")
        yield (
            f"{base}?db={number}" if base.startswith("unix:") else f"{_without_path(base)}/{number}"
        )
        return
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise NoRedis(
            f"tests need a Redis: install it (Debian: redis-server), or say where one is in {VARIABLE}"
        )
    with tempfile.TemporaryDirectory(prefix="redis-") as directory:
        socket = Path(directory) / "redis.sock"
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"],
            cwd=directory, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _wait_for(f"unix://{socket}", process)
            yield f"unix://{socket}"
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def emptied(redis: _Client, url: str) -> Generator[_Client]:
    """Have a client work on an empty database until the end of the block; open it within the block."""
    own = redis.target
    _flush(url)
    redis.target = dataclasses.replace(parse(url), client_name=own.client_name)
    try:
        yield redis
    finally:
        redis.target = own
        _flush(url)


def _without_path(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _flush(url: str) -> None:
    def flush() -> None:
        with Redis(url).sync as redis:
            redis.flushdb()

    # A test may run on an event loop.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(flush).result()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return _flush(url)
        except ConnectionLost:
            if process.poll() is not None or time.monotonic() > until:
                raise
        time.sleep(0.01)
