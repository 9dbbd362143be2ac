"""Where cached values are: in this process, in memory of all workers of a machine, in Redis."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from citius.cluster.redisclient import Script, command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.cluster.redisclient import Argument, RedisClient
    from citius.process.sharedtable import SharedTable

MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes that the cache of a process may have. Exceeded: what was not used longest is forgotten."""
TAG_S: Final = 7 * 24 * 3600.0
"""How long a tag's version is kept. A tag without one gets a new one: then its values are made again."""

_VERSION_BYTES: Final = 8


class MemoryCache:
    """Values of one process."""

    def __init__(
        self,
        bytes_max: int = MEMORY_BYTES_MAX,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bytes_max = bytes_max
        self._clock = clock
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._tags: dict[str, bytes] = {}
        self._claims: dict[str, tuple[float, bytes]] = {}

    async def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, dict[str, bytes]]:
        """An entry, and the versions of tags."""
        versions = {tag: self._tags.setdefault(tag, _version()) for tag in tags}
        expires_at, data = self._kept.get(key, (0.0, b""))
        if expires_at <= self._clock():
            await self.delete(key)
            return None, versions
        self._kept.move_to_end(key)
        return data, versions

    async def write(self, key: str, data: bytes, ttl_s: float) -> None:
        """Keep an entry."""
        await self.delete(key)
        self._kept[key] = self._clock() + ttl_s, data
        self._bytes += len(data)
        while self._bytes > self._bytes_max:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._bytes -= len(oldest)

    async def delete(self, key: str) -> None:
        """Forget an entry."""
        _, data = self._kept.pop(key, (0.0, b""))
        self._bytes -= len(data)

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        self._tags.update((tag, _version()) for tag in tags)

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        until, _ = self._claims.get(key, (0.0, b""))
        if until > self._clock():
            return False
        self._claims[key] = self._clock() + ttl_s, token
        return True

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""
        if self._claims.get(key, (0.0, b""))[1] == token:
            del self._claims[key]


class SharedCache:
    """Values of all workers of one machine."""

    def __init__(self, table: SharedTable, prefix: str) -> None:
        self._table = table
        self._prefix = prefix

    async def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, dict[str, bytes]]:
        """An entry, and the versions of tags."""
        versions: dict[str, bytes] = {}
        for tag in tags:
            version = self._table.update(
                self._key("tag", tag), lambda old: old or _version(), TAG_S
            )
            versions[tag] = version or b""
        return self._table.get(self._key("value", key)), versions

    async def write(self, key: str, data: bytes, ttl_s: float) -> None:
        """Keep an entry; one that is too long for the table is not kept."""
        self._table.set(self._key("value", key), data, ttl_s)

    async def delete(self, key: str) -> None:
        """Forget an entry."""
        self._table.delete(self._key("value", key))

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        for tag in tags:
            self._table.set(self._key("tag", tag), _version(), TAG_S)

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        return self._table.update(self._key("claim", key), lambda old: old or token, ttl_s) == token

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""
        name = self._key("claim", key)
        self._table.update(name, lambda old: None if old == token else old, 1.0)

    def _key(self, kind: str, name: str) -> bytes:
        return f"{self._prefix}:{kind}:{name}".encode()


_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


class RedisCache:
    """Values of all machines."""

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._release = Script(_RELEASE)

    async def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, dict[str, bytes]]:
        """An entry, and the versions of tags, in one round trip."""
        calls: list[list[Argument]] = [["GET", self._key("value", key)]]
        for tag in tags:
            name = self._key("tag", tag)
            calls.append(["SET", name, _version(), "NX", "EX", round(TAG_S)])
            calls.append(["GET", name])
        replies = await self._client.pipeline(calls)
        versions = dict(zip(tags, map(_bytes, replies[2::2]), strict=True))
        data = replies[0]
        return data if isinstance(data, bytes) else None, versions

    async def write(self, key: str, data: bytes, ttl_s: float) -> None:
        """Keep an entry."""
        ttl_ms = max(1, round(1000 * ttl_s))
        await command(self._client, "SET", self._key("value", key), data, "PX", ttl_ms)

    async def delete(self, key: str) -> None:
        """Forget an entry."""
        await command(self._client, "DEL", self._key("value", key))

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        for tag in tags:
            await command(
                self._client, "SET", self._key("tag", tag), _version(), "EX", round(TAG_S)
            )

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        name, ttl_ms = self._key("claim", key), max(1, round(1000 * ttl_s))
        return await command(self._client, "SET", name, token, "NX", "PX", ttl_ms) is not None

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""
        call = self._release.call([self._key("claim", key)], [token])
        await self._release.replies(self._client, [call])

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}:{kind}:{name}"


def _version() -> bytes:
    return secrets.token_bytes(_VERSION_BYTES)


def _bytes(reply: object) -> bytes:
    return reply if isinstance(reply, bytes) else b""
