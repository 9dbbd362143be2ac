"""Messages between the workers of a server, over the links of its rooms: what one has got for another.

A client's answer to a question, a cancellation, news of a resource or of a run may come to any worker; the
one that waits for it, or holds the client's stream, may be another. Without other workers nothing is sent.
The methods at the end are what relays call of a broadcast (broadcast.py). Tests:
``tests/mcp/test_context.py``, ``tests/runs/``.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from citius.web.declarations.codecs import encode_json
from citius.web.realtime.history import LIVE, SENDER_CHARS, Kept, unpacked

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


class Bus:
    """Hands values to the other workers, and theirs to ``deliver``."""

    def __init__(self, deliver: Callable[[dict[str, Any]], None]) -> None:
        self._deliver_here = deliver
        self._relay: Callable[..., int] | None = None
        self._loop: AbstractEventLoop | None = None
        # Numbers and relay in one order; news may come from any thread.
        self._lock = threading.Lock()
        self._number = 0
        self.sender = os.urandom(SENDER_CHARS // 2).hex()

    def attach(self, loop: AbstractEventLoop) -> None:
        """Deliver on this loop from now on."""
        self._loop = loop

    def send(self, value: dict[str, Any]) -> None:
        """Send to all other workers."""
        relay = self._relay
        if relay is None:
            return
        with self._lock:
            self._number += 1
            relay(False, Kept(self.sender, self._number, None, encode_json(value)).packed(LIVE))

    # --- what relays call ---------------------------------------------------------------------------

    def _set_relay(self, relay: Callable[..., int] | None, is_ordered: bool = False) -> None:
        self._relay = relay

    def _deliver(self, is_text: bool, payload: bytes) -> None:
        kind, kept = unpacked(payload)
        loop = self._loop
        # An ordered relay brings what was sent here, too.
        if kind != LIVE or kept.sender == self.sender or loop is None:
            return
        from msgspec import json

        try:
            loop.call_soon_threadsafe(self._deliver_here, json.decode(kept.body))
        except RuntimeError:  # the loop is closed
            self._loop = None

    def _deliver_old(self, is_text: bool, payload: bytes) -> None: ...

    def _disorder(self) -> None: ...

    def _undelivered_bytes(self) -> int:
        return 0

    def _old_events(self, bytes_max: int) -> list[bytes]:
        return []
