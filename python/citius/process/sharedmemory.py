"""Memory that all workers of a server share, for what has to be counted over all of them.

The supervisor makes it before it forks the first worker; a process without a supervisor has its own. Pages
that nothing writes to are never allocated. Tests: tests/middleware/test_ratelimit.py,
tests/unit/test_sharedtable.py.
"""

from __future__ import annotations

import mmap
import os
from typing import NamedTuple

BYTES = 16 * 1024 * 1024
"""Its size. Origin: 16 rate limits of 131 000 clients each."""

TABLES = ("sessions", "cache", "presence", "mcp", "runs")
"""Tables of values, so that one kind does not displace another (sharedtable.py)."""
TABLE_BYTES = 64 * 1024 * 1024
"""The size of each. Origin: 30 000 sessions of 2 KiB. Exceeded: the oldest values are given up."""

SECRET_BYTES = 16
SECRET_AT = 32
"""Where a table has the secret of its hash."""


class TableMemory(NamedTuple):
    """The memory of the tables, and a file whose locks are theirs."""

    memories: tuple[mmap.mmap, ...]
    lock_fd: int


def shared_memory() -> mmap.mmap:
    """The memory; a secret of 16 bytes is at its beginning."""
    global _memory
    if _memory is None:
        _memory = mmap.mmap(-1, BYTES)
        _memory[:SECRET_BYTES] = os.urandom(SECRET_BYTES)
    return _memory


def put_secret(memory: mmap.mmap) -> None:
    """Give the memory of a table the secret of its hash, before others can see it."""
    memory[SECRET_AT : SECRET_AT + SECRET_BYTES] = os.urandom(SECRET_BYTES)


def displaced() -> dict[str, int]:
    """Values of each table that newer ones have displaced, for metrics."""
    if _tables is None:
        return {}
    counts = (int.from_bytes(memory[8:16], "little") for memory in _tables.memories)
    return dict(zip(TABLES, counts, strict=True))


def table_memory() -> TableMemory:
    """The memory of the tables."""
    global _tables
    if _tables is None:
        memories = tuple(mmap.mmap(-1, TABLE_BYTES) for _ in TABLES)
        for memory in memories:
            put_secret(memory)
        _tables = TableMemory(memories, os.memfd_create("citius-tables", os.MFD_CLOEXEC))
    return _tables


_memory: mmap.mmap | None = None
_tables: TableMemory | None = None
