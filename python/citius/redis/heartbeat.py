"""Finds connections that are dead without an end: a peer that acknowledges everything and passes nothing on.

Where nothing has come for a while, ``PING`` asks for a sign of life. Without one the server is asked by
another connection (``Connections.doubt``), and what is kept of its replies is forgotten, because changes
may not be told. Where one of several servers is the master, it says whether it is that still. Tests:
``tests/redis/test_failover.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from citius._core import RedisClient
    from citius.redis.connections import Connections
    from citius.redis.homes import Home

# After how long without a sign of life one is asked for, with and without a cache; how long it may take.
CACHE_IDLE_S, IDLE_S, DEAD_S = 1.0, 5.0, 2.0


class Heartbeat:
    """That of one client. On the thread of its home only."""

    def __init__(
        self, home: Home, core: RedisClient, connections: Connections, *, has_cache: bool
    ) -> None:
        self._home, self._core, self._connections = home, core, connections
        self._has_cache, self._idle_s = has_cache, CACHE_IDLE_S if has_cache else IDLE_S
        self._is_over = False
        self._beat_later()

    def end(self) -> None:
        """Beat no more."""
        self._is_over = True
        self._cancel()

    def _beat_later(self) -> None:
        self._cancel = self._home.later(self._idle_s / 2, self._beat)

    def _beat(self) -> None:
        if self._is_over:
            return
        are_alive = self._connections.beat(self._idle_s, self._idle_s + DEAD_S)
        if self._has_cache and not are_alive:
            self._core.forget()
        self._connections.ask_roles()
        self._beat_later()
