"""Stores of sessions: the interface, one in the memory of a process, one of all workers of a machine.

``redissessions.py`` has one in Redis. Keys are hexadecimal hashes, values bytes. Tests:
tests/middleware/test_sessions.py.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.process.sharedtable import SharedTable

SESSION_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What ``load`` returns of a session that cannot be read now, in place of an exception.

    Its request finds it empty. It can be ended (``session.clear()``), which calls ``delete``; another change
    raises ``refusal``.
    """

    refusal: Exception


class SessionStore(Protocol):
    """A store that never waits, or waits in a thread of its handlers."""

    def load(self, key: str) -> bytes | None:
        """What was saved, ``None`` if it is not there or has expired."""

    def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds."""

    def replace(self, key: str, data: bytes, max_age_s: int) -> bool | None:
        """Keep ``data`` in place of what was saved; ``False`` if that has been deleted meanwhile."""

    def delete(self, key: str) -> bool | None:
        """Forget it; ``False`` if it was not there, so that no other request brings it back."""


class AsyncSessionStore(Protocol):
    """A session store whose methods are coroutines."""

    async def load(self, key: str) -> bytes | Unreadable | None:
        """What was saved, ``None`` if it is not there or has expired."""

    async def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds."""

    async def replace(self, key: str, data: bytes, max_age_s: int) -> bool | None:
        """Keep ``data`` in place of what was saved; ``False`` if that has been deleted meanwhile."""

    async def delete(self, key: str) -> bool | None:
        """Forget it; ``False`` if it was not there, so that no other request brings it back."""


@known_options
class MemoryStore:
    """Sessions of one process: for tests, and servers with one worker.

    Args:
        sessions_max: How many are kept; the one that was saved longest ago goes first.
        clock: Seconds that never go back.
    """

    def __init__(
        self, sessions_max: int = 100_000, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sessions_max = sessions_max
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._lock = Lock()

    def load(self, key: str) -> bytes | None:
        """What was saved, ``None`` if it is not there or has expired."""
        with self._lock:
            expires_at, data = self._kept.get(key, (0.0, b""))
            if expires_at > self._clock():
                return data
            self._kept.pop(key, None)
            return None

    def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds."""
        with self._lock:
            self._kept[key] = self._clock() + max_age_s, data
            self._kept.move_to_end(key)
            while len(self._kept) > self._sessions_max:
                self._kept.popitem(last=False)

    def replace(self, key: str, data: bytes, max_age_s: int) -> bool:
        """Keep ``data`` in place of what was saved; ``False`` if that has been deleted meanwhile."""
        with self._lock:
            is_there = self._kept.get(key, (0.0, b""))[0] > self._clock()
            if is_there:
                self._kept[key] = self._clock() + max_age_s, data
                self._kept.move_to_end(key)
            return is_there

    def delete(self, key: str) -> bool:
        """Forget it; ``False`` if it was not there."""
        with self._lock:
            expires_at, _ = self._kept.pop(key, (0.0, b""))
            return expires_at > self._clock()

    def __len__(self) -> int:
        return len(self._kept)


@known_options
class SharedStore:
    """Sessions of all workers of one server, in memory that they share; they survive a rolling restart.

    A session that changes stays where it is. When their memory is full, a new one takes the place of one that
    was not used for longest, which ``citius_displaced_total`` counts.

    Args:
        table: Where they are; by default the one that the supervisor has made.
        prefix: What their keys begin with.
        session_bytes_max: Bytes that one session may have, encoded. Origin: a thousand of them, of clients
            that make theirs as long as they can, are what all have room for.
    """

    def __init__(
        self,
        table: SharedTable | None = None,
        prefix: str = "session:",
        *,
        session_bytes_max: int = SESSION_BYTES_MAX,
    ) -> None:
        if table is None:
            from citius.process.sharedtable import shared_table

            table = shared_table("sessions")
        self._table = table
        self._prefix = prefix
        self._session_bytes_max = min(session_bytes_max, table.value_bytes_max // 2)

    def load(self, key: str) -> bytes | None:
        """What was saved, ``None`` if it is not there or has expired."""
        return self._table.get(self._key(key))

    def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds.

        Raises:
            ValueError: It is too long.
        """
        self._table.set(self._key(key), self._checked(data), max_age_s)

    def replace(self, key: str, data: bytes, max_age_s: int) -> bool:
        """Keep ``data`` in place of what was saved; ``False`` if that has been deleted meanwhile.

        Raises:
            ValueError: It is too long; what was saved stays.
        """
        return self._table.replace(self._key(key), self._checked(data), max_age_s)

    def delete(self, key: str) -> bool:
        """Forget it; ``False`` if it was not there."""
        return self._table.delete(self._key(key))

    def _checked(self, data: bytes) -> bytes:
        if len(data) > self._session_bytes_max:
            raise ValueError(
                f"a session has {len(data)} bytes; {self._session_bytes_max} can be kept "
                "(SharedStore(session_bytes_max=…))"
            )
        return data

    def _key(self, key: str) -> bytes:
        return f"{self._prefix}{key}".encode()
