"""A PostgreSQL server for the tests of this folder; without one installed they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pg_rig import Server, find_binaries


@pytest.fixture(scope="session")
def binaries():
    found = find_binaries()
    if found is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return found


def started(binaries: Path) -> Iterator[Server]:
    made = Server(binaries)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def server(binaries) -> Iterator[Server]:
    """A server that the tests of one module share; none of them stops it."""
    yield from started(binaries)


@pytest.fixture
def own_server(binaries) -> Iterator[Server]:
    """A server of one test, which may kill it."""
    yield from started(binaries)
