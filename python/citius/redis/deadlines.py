"""Looks for commands that have waited for too long, on the home's thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import RedisClient
    from citius.redis.errors import TimedOut
    from citius.redis.homes import Home

# How often commands are looked for that have waited for too long.
_LOOK_EVERY_S = 0.1
# How long what was due while the loop was busy may take still.
_LATE_S = 0.05


class Deadlines:
    """Those of one client's commands."""

    def __init__(self, home: Home, core: RedisClient, timed_out: Callable[[], TimedOut]) -> None:
        self._home, self._core, self._timed_out = home, core, timed_out
        self._is_looking = self.is_over = False
        self._look_at = 0.0

    def look(self) -> None:
        """Look in a moment."""
        if not self._is_looking:
            self._is_looking = True
            self._look_at = time.monotonic() + _LOOK_EVERY_S
            self._home.later(_LOOK_EVERY_S, self._expire)

    def _expire(self) -> None:
        """Fail what has waited for too long."""
        now = time.monotonic()
        if now - self._look_at > _LOOK_EVERY_S:
            # This thread was busy with other things: what has not left, or has come, is carried first.
            self._home.later(_LATE_S, lambda: self._expire_before(now))
        else:
            self._expire_before(now)

    def _expire_before(self, then: float) -> None:
        self._is_looking = False
        ago_ms = round((time.monotonic() - then) * 1000)
        if not self.is_over and self._core.expire(self._timed_out, ago_ms=ago_ms):
            self.look()
