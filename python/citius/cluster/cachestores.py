"""Where cached values are: in this process, in memory of all workers of a machine, in Redis."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from citius.cluster.engines import encoded
from citius.cluster.redisclient import Script, checked, command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.cluster.redisclient import Argument, RedisClient
    from citius.process.sharedtable import SharedTable

MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes that the cache of a process may have. Exceeded: what was not used longest is forgotten."""
TAG_S: Final = 7 * 24 * 3600.0
"""How long a tag's version is kept. A tag without one gets a new one: then its values are made again."""

KEY_S: Final = 3600.0
"""How long the version of a key is kept, at least, and as long as its value. Origin: longer than a making."""
KEYS_MAX: Final = 100_000
"""Versions of keys, and of tags, that the cache of a process keeps. Exceeded: the oldest are forgotten, and
their values are made again."""

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
        self._tags: OrderedDict[str, bytes] = OrderedDict()
        self._keys: OrderedDict[str, bytes] = OrderedDict()
        self._claims: dict[str, tuple[float, bytes]] = {}

    async def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, dict[str, bytes]]:
        """An entry, and the versions of tags."""
        versions = {tag: self._tags.get(tag) or self._renew(self._tags, tag) for tag in tags}
        versions[""] = self._keys.get(key, b"")
        expires_at, data = self._kept.get(key, (0.0, b""))
        if expires_at <= self._clock():
            self._forget(key)
            return None, versions
        self._kept.move_to_end(key)
        return data, versions

    async def version(self, key: str) -> bytes:
        """The version of a key; none stands for one that was not changed, for nothing is lost here."""
        return self._keys.get(key, b"")

    async def write(self, key: str, data: bytes, ttl_s: float, version: bytes = b"") -> None:
        """Keep an entry."""
        self._forget(key)
        if version:
            self._renew(self._keys, key, version)
        self._kept[key] = self._clock() + ttl_s, data
        self._bytes += len(data)
        while self._bytes > self._bytes_max:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._bytes -= len(oldest)

    async def delete(self, key: str) -> None:
        """Forget an entry, and give its key another version."""
        self._forget(key)
        self._renew(self._keys, key)

    def _forget(self, key: str) -> None:
        _, data = self._kept.pop(key, (0.0, b""))
        self._bytes -= len(data)

    def _renew(
        self, versions: OrderedDict[str, bytes], name: str, version: bytes | None = None
    ) -> bytes:
        made = versions[name] = version or new_version()
        versions.move_to_end(name)
        if len(versions) > KEYS_MAX:
            versions.popitem(last=False)
        return made

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        for tag in tags:
            self._renew(self._tags, tag)

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
        # The entry first: it is not of later versions than those that are read after it.
        data = self._table.get(self._key("value", key))
        versions = {"": self._table.get(self._key("version", key)) or b""}
        for tag in tags:
            name = self._key("tag", tag)
            version = self._table.get(name) or self._table.update(
                name, lambda old: old or new_version(), TAG_S
            )
            versions[tag] = version or b""
        return data, versions

    async def version(self, key: str) -> bytes:
        """The version of a key, which gets one: one that is displaced comes back as another."""
        name = self._key("version", key)
        try:
            found = self._table.update(name, lambda old: old or new_version(), KEY_S)
        except ValueError:  # too long a key: its value is not kept
            found = None
        return found or new_version()

    async def write(self, key: str, data: bytes, ttl_s: float, version: bytes = b"") -> None:
        """Keep an entry; one that is too long for the table is not kept."""
        if version:
            self._table.set(self._key("version", key), version, max(KEY_S, ttl_s))
        elif ttl_s > KEY_S:
            self._table.update(self._key("version", key), lambda old: old, ttl_s)
        if not self._table.set(self._key("value", key), data, ttl_s):
            self._table.delete(self._key("value", key))

    async def delete(self, key: str) -> None:
        """Forget an entry, and give its key another version."""
        self._table.set(self._key("version", key), new_version(), KEY_S)
        self._table.delete(self._key("value", key))

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        for tag in tags:
            self._table.set(self._key("tag", tag), new_version(), TAG_S)

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        # One that waits does not make the claim of another last longer.
        return self._table.set_if_absent(self._key("claim", key), token, ttl_s) == token

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""
        self._table.discard(self._key("claim", key), token)

    def _key(self, kind: str, name: str) -> bytes:
        return encoded(f"{self._prefix}:{kind}:{name}")


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
        calls: list[list[Argument]] = [
            ["GET", self._key("value", key)],
            ["GET", self._key("version", key)],
        ]
        for tag in tags:
            name = self._key("tag", tag)
            calls.append(["SET", name, new_version(), "NX", "EX", round(TAG_S)])
            calls.append(["GET", name])
        replies = await self._client.pipeline(calls)
        versions = dict(zip(tags, map(_bytes, replies[3::2]), strict=True))
        versions[""] = _bytes(replies[1])
        data = replies[0]
        return data if isinstance(data, bytes) else None, versions

    async def version(self, key: str) -> bytes:
        """The version of a key, which gets one: one that Redis has lost comes back as another."""
        name = self._key("version", key)
        calls: list[list[Argument]] = [
            ["SET", name, new_version(), "NX", "EX", round(KEY_S)],
            ["GET", name],
        ]
        return _bytes((await self._all(calls))[1]) or new_version()

    async def write(self, key: str, data: bytes, ttl_s: float, version: bytes = b"") -> None:
        """Keep an entry."""
        ttl_ms = max(1, round(1000 * ttl_s))
        name, version_ms = self._key("version", key), max(ttl_ms, round(1000 * KEY_S))
        calls: list[list[Argument]] = []
        if version:
            calls.append(["SET", name, version, "PX", version_ms])
        else:
            calls.append(["PEXPIRE", name, version_ms])
        calls.append(["SET", self._key("value", key), data, "PX", ttl_ms])
        await self._all(calls)

    async def delete(self, key: str) -> None:
        """Forget an entry, and give its key another version."""
        version: list[Argument] = [self._key("version", key), new_version(), "EX", round(KEY_S)]
        await self._all([["SET", *version], ["DEL", self._key("value", key)]])

    async def _all(self, calls: list[list[Argument]]) -> list[object]:
        return checked(await self._client.pipeline(calls))

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""
        await self._all(
            [["SET", self._key("tag", tag), new_version(), "EX", round(TAG_S)] for tag in tags]
        )

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        name, ttl_ms = self._key("claim", key), max(1, round(1000 * ttl_s))
        return await command(self._client, "SET", name, token, "NX", "PX", ttl_ms) is not None

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""
        call = self._release.call([self._key("claim", key)], [token])
        await self._release.replies(self._client, [call])

    def _key(self, kind: str, name: str) -> bytes:
        return encoded(f"{self._prefix}:{kind}:{name}")


def new_version() -> bytes:
    """One that no tag and no key has had."""
    return secrets.token_bytes(_VERSION_BYTES)


def _bytes(reply: object) -> bytes:
    return reply if isinstance(reply, bytes) else b""
