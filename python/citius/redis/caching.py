"""What a client keeps of replies (``CLIENT TRACKING``): how much of it, and how often that helped.

Tests: ``tests/redis/test_cache.py``.
"""

from __future__ import annotations

import dataclasses

from citius.unknown_options import known_options


@known_options
@dataclasses.dataclass(frozen=True, slots=True)
class ClientCache:
    """Replies that are kept in this process until the server says that their keys have changed.

    The server tells of a key whose time to live has passed only when it removes it, so each command whose
    reply is kept asks for the rest of that time (``PTTL``) in the same write, and is kept no longer.

    Args:
        prefixes: Only keys that begin with one of these are kept; the server then need not remember which
            keys this client has read. Without them it does, and all keys may be kept.
        entries_max: Replies that are kept.
        bytes_max: Bytes that they may take.
        age_max_s: How long one is kept at most.
        field_ttls: Fields of hashes may have times to live of their own (``HEXPIRE``; Redis 7.4, Valkey 9).
            Replies about named fields are bounded by them; those about a whole hash are kept only if its
            encoding says that it has no such field (``listpack``: small hashes). ``False``: no code uses
            such fields.
    """

    prefixes: tuple[str, ...] = ()
    entries_max: int = 10_000
    bytes_max: int = 16 * 1024 * 1024
    age_max_s: float = 600.0
    field_ttls: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a ``ClientCache`` has done so far."""

    entries: int
    bytes: int
    hits: int
    misses: int
