"""Commands for sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.redis.commands.base import Caller, Data, counted, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word
    from citius.redis.commands.scanning import Scan


class SetCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=set``."""

    def sadd(self, key: Key, *members: Word) -> Call[int]:
        """Add members; how many are new."""
        return self._call("SADD", key, *members)

    def srem(self, key: Key, *members: Word) -> Call[int]:
        """Remove members; how many there were."""
        return self._call("SREM", key, *members)

    def smembers(self, key: Key) -> Call[set[Data]]:
        """All members."""
        return self._call("SMEMBERS", key)

    def sismember(self, key: Key, member: Word) -> Call[bool]:
        """Whether it is a member."""
        return self._call("SISMEMBER", key, member, then=bool)

    def smismember(self, key: Key, *members: Word) -> Call[list[bool]]:
        """Whether each is a member."""
        return self._call("SMISMEMBER", key, *members, then=_booleans)

    def scard(self, key: Key) -> Call[int]:
        """The number of members."""
        return self._call("SCARD", key)

    def spop(self, key: Key) -> Call[Data | None]:
        """Take any member."""
        return self._call("SPOP", key)

    def srandmember(self, key: Key) -> Call[Data | None]:
        """Any member."""
        return self._call("SRANDMEMBER", key)

    def smove(self, source: Key, destination: Key, member: Word) -> Call[bool]:
        """Move a member to another set; whether it was there."""
        return self._call("SMOVE", source, destination, member, then=bool)

    def sinter(self, *keys: Key) -> Call[set[Data]]:
        """Members of all sets."""
        return self._call("SINTER", *keys)

    def sunion(self, *keys: Key) -> Call[set[Data]]:
        """Members of any set."""
        return self._call("SUNION", *keys)

    def sdiff(self, *keys: Key) -> Call[set[Data]]:
        """Members of the first set that are in no other."""
        return self._call("SDIFF", *keys)

    def sinterstore(self, destination: Key, *keys: Key) -> Call[int]:
        """Store the members of all sets; how many."""
        return self._call("SINTERSTORE", destination, *keys)

    def sunionstore(self, destination: Key, *keys: Key) -> Call[int]:
        """Store the members of any set; how many."""
        return self._call("SUNIONSTORE", destination, *keys)

    def sdiffstore(self, destination: Key, *keys: Key) -> Call[int]:
        """Store the members of the first set that are in no other; how many."""
        return self._call("SDIFFSTORE", destination, *keys)

    def sintercard(self, keys: Sequence[Key], *, limit: int | None = None) -> Call[int]:
        """How many members are in all sets; counted up to ``limit``."""
        return self._call("SINTERCARD", *counted(keys), *options(("LIMIT", limit)))

    def sscan(
        self, key: Key, *, match: str | bytes | None = None, count: int | None = None
    ) -> Scan[Data]:
        """Members, a portion at a time: ``async for member in redis.sscan(key)``."""
        words = options(("MATCH", match), ("COUNT", count))

        def portion(cursor: bytes, _node: int | None) -> Call[Any]:
            return self._call("SSCAN", key, cursor, *words)

        return self._scan(portion, list)


def _booleans(found: list[int]) -> list[bool]:
    return [bool(one) for one in found]
