"""Where stored responses are: the interface, and the memory of a worker; ``redisresponses.py`` has Redis.

Tests: ``tests/http/gateway/test_caching.py``.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.http.gateway.entries import Entry, Key, Lines

VARIANTS_MAX: Final = 16
"""Responses for one URL that differ by ``Vary``. Exceeded: the oldest is dropped, in Redis all of the URL."""
CHANGED_MAX: Final = 1000
"""URLs of which it is known when they were invalidated, or that they are to be, while Redis is away.
Exceeded: the oldest is forgotten; in memory no response to a request from before that is kept."""
COLLAPSED_S: Final = 10.0
"""How long a request waits for the same one before it."""


class Found(NamedTuple):
    """What was found for a request.

    Attributes:
        entry: The stored response.
        mark: What ``keep`` needs to know of the time before the request; ``None``: nothing can be kept.
    """

    entry: Entry | None
    mark: Mark | None


class Mark(NamedTuple):
    """What a store knew of a URL when it was asked."""

    changed: bytes = b""
    names: tuple[tuple[str, ...], ...] = ()


class Store(Protocol):
    """Responses by their keys."""

    async def find(self, key: Key, fields: Lines) -> Found:
        """The latest response whose ``Vary`` this request meets."""
        ...

    def keep(self, key: Key, entry: Entry, mark: Mark, over: Callable[[], None]) -> None:
        """Keep a response in place of others for the same requests; ``over`` is called afterwards."""

    async def invalidate(self, keys: list[Key]) -> None:
        """Drop the responses for URLs."""

    async def claim(self, key: Key) -> bytes | None:
        """Try to be the one that asks for a URL; ``None``: another process is."""
        ...

    def release(self, key: Key, token: bytes) -> None:
        """End one's own claim."""

    async def wait(self, key: Key) -> None:
        """Wait until the process that has claimed a URL is done."""


class MemoryResponses:
    """Responses in the memory of a worker.

    Args:
        bytes_max: Bytes of all responses.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[Key, list[Entry]] = OrderedDict()
        self._changed: OrderedDict[Key, float] = OrderedDict()
        """When URLs were invalidated: a response to a request before is out of date when it comes."""
        self._changed_some = -math.inf
        """When one was invalidated of which that is forgotten: it may be any."""
        self._bytes = 0

    def stats(self) -> dict[str, int]:
        """Responses that are kept, and their bytes."""
        return {
            "entries": sum(len(each) for each in self._entries.values()),
            "bytes": self._bytes,
        }

    def clear(self) -> None:
        """Drop all responses."""
        self._entries.clear()
        self._bytes = 0
        self._changed_some = time.monotonic()

    async def find(self, key: Key, fields: Lines) -> Found:
        """The latest response whose ``Vary`` this request meets."""
        variants = self._entries.get(key)
        if variants is None:
            return Found(None, Mark())
        self._entries.move_to_end(key)
        entry = next((one for one in reversed(variants) if one.is_for(fields)), None)
        return Found(entry, Mark())

    def keep(self, key: Key, entry: Entry, mark: Mark, over: Callable[[], None]) -> None:
        """Keep a response in place of others for the same requests."""
        if max(self._changed.get(key, -math.inf), self._changed_some) < entry.begun:
            self._keep(key, entry)
        over()

    def _keep(self, key: Key, entry: Entry) -> None:
        variants = self._entries.setdefault(key, [])
        for one in [one for one in variants if one.varies == entry.varies]:
            self._drop(key, variants, one)
        variants.append(entry)
        self._bytes += key.bytes + entry.bytes
        self._entries.move_to_end(key)
        if len(variants) > VARIANTS_MAX:
            self._drop(key, variants, variants[0])
        while self._bytes > self._bytes_max:
            first, oldest = next(iter(self._entries.items()))
            self._drop(first, oldest, oldest[0])
            if not oldest:
                self._entries.popitem(last=False)

    async def invalidate(self, keys: list[Key]) -> None:
        """Drop the responses for URLs."""
        for key in keys:
            for one in self._entries.pop(key, []):
                self._bytes -= key.bytes + one.bytes
            self._changed[key] = time.monotonic()
            self._changed.move_to_end(key)
            if len(self._changed) > CHANGED_MAX:
                self._changed_some = max(self._changed_some, self._changed.popitem(last=False)[1])

    def _drop(self, key: Key, variants: list[Entry], one: Entry) -> None:
        variants.remove(one)
        self._bytes -= key.bytes + one.bytes

    async def claim(self, key: Key) -> bytes | None:
        """There is no other process."""
        return b""

    def release(self, key: Key, token: bytes) -> None:
        """There is no other process."""

    async def wait(self, key: Key) -> None:
        """There is no other process."""
