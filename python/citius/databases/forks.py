"""What a forked child does with the connections of its parent: it closes its copies and sends nothing.

A child has the same sockets. What it said on them would be between the parent's requests, and what it read
would be missing there. Its calls are refused by the extension, which knows in which process a client was
opened; a client that is opened again in the child begins anew. Tests: ``tests/pg/test_forks.py``,
``tests/redis/test_forks.py``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    import asyncio

OPENED_BEFORE = "the pool was opened before a fork: open it in the process that uses it"


class Connection(Protocol):
    """One that a child has a copy of."""

    def leave(self) -> None:
        """Close the socket, say nothing, and ask nothing of the event loop, which is the parent's."""
        ...


def is_lost(process: int, loop: asyncio.AbstractEventLoop | None) -> bool:
    """Whether a pool that was opened in ``process`` on ``loop`` cannot be used here, nor closed.

    It is another process', or the loop has ended without closing it.
    """
    return process != os.getpid() or (loop is not None and loop.is_closed())


_connections: WeakSet[Connection] = WeakSet()


def hold(connection: Connection) -> None:
    """Have ``connection`` left to this process in children that are forked from it."""
    _connections.add(connection)


def _leave_all() -> None:
    for connection in list(_connections):
        connection.leave()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
