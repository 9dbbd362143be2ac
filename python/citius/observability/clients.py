"""The clients of databases in this process: what measures them, while metrics or spans are wanted.

A worker's ``Watch`` enters here what counts; a client that is opened afterwards asks for its counters. Where
nothing counts it gets none, and its operations cost nothing more. Tests: ``tests/pg/test_observed.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import ClientMetrics, Observer

    Connections = Callable[[], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Client:
    """A client whose operations are measured: a pool of ``citius.pg``, a client of ``citius.redis``."""

    kind: str
    """``pg`` or ``redis``."""
    label: str
    namespace: str
    host: str
    port: int


class Clients:
    """Those of one worker."""

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


_clients: Clients | None = None


def enter(clients: Clients | None) -> None:
    """Have clients that are opened from now on measured; ``None``: no more."""
    global _clients  # one worker per process
    _clients = clients


def measured(client: Client, connections: Connections) -> ClientMetrics | None:
    """What measures a client that is being opened, if anything does.

    Args:
        client: What it is.
        connections: Called about once a second: connections in use, idle ones, and what waits for one.
    """
    return None if _clients is None else _clients.add(client, connections)
