"""Memory that all workers of a server share, for what has to be counted over all of them.

The supervisor makes it before it forks the first worker; a process without a supervisor has its own. Pages
that nothing writes to are never allocated. Tests: tests/middleware/test_ratelimit.py.
"""

from __future__ import annotations

import mmap
import os

BYTES = 16 * 1024 * 1024
"""Its size. Origin: 16 rate limits of 131 000 clients each."""

_SECRET_BYTES = 16


def shared_memory() -> mmap.mmap:
    """The memory; a secret of 16 bytes is at its beginning."""
    global _memory
    if _memory is None:
        _memory = mmap.mmap(-1, BYTES)
        _memory[:_SECRET_BYTES] = os.urandom(_SECRET_BYTES)
    return _memory


_memory: mmap.mmap | None = None
