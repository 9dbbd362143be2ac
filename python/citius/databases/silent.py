"""Addresses that have not responded in time: for a while they are tried last.

Without it each new connection with one of several servers waits for the silent one anew. The order changes
only: an address that is silent is still tried when no other one gives what is wanted.
Tests: ``tests/redis/test_failover.py``, ``tests/pg/test_silent_hosts.py``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_T = TypeVar("_T")

LAST_S = 30.0
"""How long an address that was silent is tried last."""
_COUNT_MAX = 1024
_since: dict[Hashable, float] = {}
"""When each address was silent last, the oldest first. Of the process: each connection may learn of it."""


def note(where: Hashable) -> None:
    """An address has not responded in time."""
    _since.pop(where, None)
    _since[where] = time.monotonic()
    while len(_since) > _COUNT_MAX:
        _since.pop(next(iter(_since), None), None)


def forget(where: Hashable) -> None:
    """An address has responded."""
    _since.pop(where, None)


def in_order(places: Iterable[_T], where: Callable[[_T], Hashable]) -> list[_T]:
    """The same places, those last that were silent lately."""
    if not _since:
        return list(places)
    latest = time.monotonic() - LAST_S
    return sorted(places, key=lambda place: _since.get(where(place), latest) > latest)
