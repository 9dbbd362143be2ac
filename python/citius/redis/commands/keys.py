"""Commands for keys of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.redis.commands.base import Caller, Data, flags, options

if TYPE_CHECKING:
    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word
    from citius.redis.commands.scanning import Scan


class KeyCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=generic``."""

    def delete(self, *keys: Key) -> Call[int]:
        """Delete keys; how many there were."""
        return self._call("DEL", *keys)

    def unlink(self, *keys: Key) -> Call[int]:
        """Delete keys, and have the server free their memory later; how many there were."""
        return self._call("UNLINK", *keys)

    def exists(self, *keys: Key) -> Call[int]:
        """How many of the keys exist; a key that is given twice counts twice."""
        return self._call("EXISTS", *keys)

    def touch(self, *keys: Key) -> Call[int]:
        """Note that keys are used; how many exist."""
        return self._call("TOUCH", *keys)

    def expire(
        self,
        key: Key,
        seconds: int,
        *,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Call[bool]:
        """Have a key expire; whether it will.

        Args:
            key: The key.
            seconds: From now on.
            nx: Only if it does not expire yet.
            xx: Only if it does.
            gt: Only if this is later.
            lt: Only if this is earlier.
        """
        return self._call("EXPIRE", key, seconds, *_when(nx, xx, gt, lt), then=bool)

    def pexpire(
        self,
        key: Key,
        ms: int,
        *,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Call[bool]:
        """Have a key expire after milliseconds; whether it will."""
        return self._call("PEXPIRE", key, ms, *_when(nx, xx, gt, lt), then=bool)

    def expireat(
        self,
        key: Key,
        timestamp: int,
        *,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Call[bool]:
        """Have a key expire at a time, in seconds since 1970."""
        return self._call("EXPIREAT", key, timestamp, *_when(nx, xx, gt, lt), then=bool)

    def pexpireat(
        self,
        key: Key,
        timestamp_ms: int,
        *,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Call[bool]:
        """Have a key expire at a time, in milliseconds since 1970."""
        return self._call("PEXPIREAT", key, timestamp_ms, *_when(nx, xx, gt, lt), then=bool)

    def persist(self, key: Key) -> Call[bool]:
        """Have a key not expire any more; whether it would have."""
        return self._call("PERSIST", key, then=bool)

    def ttl(self, key: Key) -> Call[int]:
        """Seconds until a key expires; -1 if it does not, -2 if there is none."""
        return self._call("TTL", key)

    def pttl(self, key: Key) -> Call[int]:
        """Milliseconds until a key expires; -1 if it does not, -2 if there is none."""
        return self._call("PTTL", key)

    def expiretime(self, key: Key) -> Call[int]:
        """When a key expires, in seconds since 1970; -1 if it does not, -2 if there is none."""
        return self._call("EXPIRETIME", key)

    def type(self, key: Key) -> Call[str]:
        """The type of a value: ``string``, ``hash``, ``list``, ``set``, ``zset``, ``stream``; ``none``."""
        return self._call("TYPE", key)

    def rename(self, key: Key, new: Key) -> Call[str]:
        """Give a key another name, in place of what has it.

        Raises:
            ServerError: There is no such key.
        """
        return self._call("RENAME", key, new)

    def renamenx(self, key: Key, new: Key) -> Call[bool]:
        """Give a key another name unless a key has it; whether it was given."""
        return self._call("RENAMENX", key, new, then=bool)

    def copy(self, source: Key, destination: Key, *, replace: bool = False) -> Call[bool]:
        """Copy a value to another key; whether it was copied."""
        return self._call("COPY", source, destination, *flags(("REPLACE", replace)), then=bool)

    def keys(self, pattern: str | bytes = "*") -> Call[list[Data]]:
        """All keys that match a pattern. The server does nothing else meanwhile: ``scan`` is better."""
        return self._call("KEYS", pattern)

    def randomkey(self) -> Call[Data | None]:
        """Any key; ``None`` if there is none."""
        return self._call("RANDOMKEY")

    def dump(self, key: Key) -> Call[bytes | None]:
        """A value as ``restore`` takes it."""
        return self._call("DUMP", key, as_=bytes)

    def restore(self, key: Key, ttl_ms: int, value: bytes, *, replace: bool = False) -> Call[str]:
        """Store what ``dump`` has returned; a ``ttl_ms`` of 0 means that it does not expire."""
        return self._call("RESTORE", key, ttl_ms, value, *flags(("REPLACE", replace)))

    def object_encoding(self, key: Key) -> Call[str | None]:
        """How the server stores a value."""
        return self._call("OBJECT", "ENCODING", key, as_=str)

    def memory_usage(self, key: Key) -> Call[int | None]:
        """Bytes that a key and its value take."""
        return self._call("MEMORY", "USAGE", key)

    def scan(
        self, *, match: str | bytes | None = None, count: int | None = None, type: str | None = None
    ) -> Scan[Data]:
        """Keys, a portion at a time: ``async for key in redis.scan(match="user:*")``.

        A key that is there all the time comes at least once. In a cluster all masters are asked, one after
        the other; a key whose slot moves meanwhile may not come.

        Args:
            match: A pattern.
            count: About how many keys the server looks at for each portion.
            type: Only keys with values of this type.
        """
        words = options(("MATCH", match), ("COUNT", count), ("TYPE", type))

        def portion(cursor: bytes, node: int | None) -> Call[Any]:
            return self._call("SCAN", cursor, *words, node=node)

        return self._scan(portion, list, self._nodes)


def _when(nx: bool, xx: bool, gt: bool, lt: bool) -> list[Word]:
    return flags(("NX", nx), ("XX", xx), ("GT", gt), ("LT", lt))
