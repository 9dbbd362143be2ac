"""A Redis server for the tests of this folder; without one installed they are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis_rig import SERVER, Server


def started(*options: str, listens: bool = False) -> Iterator[Server]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = Server(*options, listens=listens)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that the tests of one module share; none of them stops it."""
    yield from started()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of one test, which may kill it."""
    yield from started(listens=True)
