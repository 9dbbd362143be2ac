"""What a forked child does with the connections of its parent: it closes its copies and sends nothing.

A child has the same sockets. What it said on them would be between the parent's requests, and what it read
would be missing there. Its calls are refused by the extension, which knows in which process a client was
opened; a client that is opened again in the child begins anew. Tests: ``tests/pg/test_forks.py``,
``tests/redis/test_forks.py``.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

OPENED_BEFORE = "the pool was opened before a fork: open it in the process that uses it"


class Connection(Protocol):
    """One that a child has a copy of."""

    def leave_to_parent(self) -> None:
        """Close the socket, say nothing, and ask nothing of the event loop, which is the parent's."""
        ...


_connections: WeakSet[Connection] = WeakSet()


def hold(connection: Connection) -> None:
    """Have ``connection`` left to this process in children that are forked from it."""
    _connections.add(connection)


def _leave_all() -> None:
    for connection in list(_connections):
        connection.leave_to_parent()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
