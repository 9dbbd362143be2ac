"""PostgreSQL with the tables of `lab/workloads/db.sql`, for programs of this folder."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from citius.testing.postgres import Server, find_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {"jit": "off", "autovacuum": "off"}
TABLES = Path(__file__).resolve().parents[2] / "lab/workloads/db.sql"


@contextmanager
def lab_database() -> Iterator[tuple[str, Path]]:
    """A server without JIT and autovacuum: its URL, and the folder of its programs."""
    binaries = find_binaries()
    assert binaries is not None, "PostgreSQL is installed"
    server = Server(binaries)
    try:
        server.start(**SETTINGS)
        psql = [str(binaries / "psql"), "-X", "-q", "-d", server.url]
        subprocess.run(psql, input=TABLES.read_text(), text=True, check=True)
        yield server.url, binaries
    finally:
        server.remove()
