"""The clients of databases in this process: what measures them, while metrics or spans are wanted.

A reactor's ``Watch`` enters here what counts; a client that is opened afterwards asks for its counters. Where
nothing counts it gets none, and its operations cost nothing more. Tests: ``tests/pg/test_observed.py``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from citius.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import ClientMetrics, Observer

    Connections = Callable[[], tuple[int, int, int]]


@record(frozen=True, slots=True)
class Client:
    """A client whose operations are measured: a pool, a client of ``citius.redis``."""

    kind: str
    """``pg``, ``redis`` or ``sqlite``."""
    label: str
    namespace: str
    host: str
    """Empty for one of no server."""
    port: int


class Clients:
    """Those of one reactor."""

    def __init__(
        self, observer: Observer, parent: Callable[[], tuple[int, int] | None] | None
    ) -> None:
        self._observer, self._parent = observer, parent
        self.by_number: dict[int, Client] = {}
        self._connections: dict[int, tuple[ClientMetrics, Connections]] = {}

    def add(self, client: Client, connections: Connections) -> ClientMetrics | None:
        """The counters of a client; ``None`` for one too many."""
        found = self._observer.client(client.kind, client.label, self._parent)
        if found is None:
            return None
        number, metrics = found
        self.by_number[number] = client
        self._connections[number] = metrics, connections
        return metrics

    def heartbeat(self) -> None:
        """Set the gauges of all."""
        for metrics, connections in self._connections.values():
            metrics.set(*connections())


class _Thread(threading.local):
    clients: Clients | None = None


_thread = _Thread()
_clients: Clients | None = None


def enter(clients: Clients | None, *, is_first: bool = True) -> None:
    """Have clients that are opened on this thread from now on measured; ``None``: no more.

    Args:
        clients: What measures them.
        is_first: On all other threads that have not called this too.
    """
    global _clients  # one worker per process
    _thread.clients = clients
    if is_first:
        _clients = clients


def measured(client: Client, connections: Connections) -> ClientMetrics | None:
    """What measures a client that is being opened, if anything does.

    Args:
        client: What it is.
        connections: Called about once a second: connections in use, idle ones, and what waits for one.
    """
    clients = _thread.clients or _clients
    return None if clients is None else clients.add(client, connections)
