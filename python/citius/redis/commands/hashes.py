"""Commands for hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from citius.redis.commands.base import Caller, Data, options, pairs
from citius.redis.commands.scanning import in_pairs

if TYPE_CHECKING:
    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word, Words
    from citius.redis.commands.scanning import Scan

_T = TypeVar("_T")


class HashCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=hash``."""

    @overload
    def hget(self, key: Key, field: Word) -> Call[Data | None]: ...
    @overload
    def hget(self, key: Key, field: Word, as_: type[_T]) -> Call[_T | None]: ...
    def hget(self, key: Key, field: Word, as_: Any = None) -> Call[Any]:
        """The value of a field; ``None`` if there is none."""
        return self._call("HGET", key, field, as_=as_)

    def hset(
        self,
        key: Key,
        field: Word | None = None,
        value: Word | None = None,
        *,
        mapping: Words | None = None,
    ) -> Call[int]:
        """Set a field, or all of a mapping; how many are new."""
        words = pairs(mapping or {})
        if field is not None and value is not None:
            words += [field, value]
        return self._call("HSET", key, *words)

    def hsetnx(self, key: Key, field: Word, value: Word) -> Call[bool]:
        """Set a field that is not there; whether it was set."""
        return self._call("HSETNX", key, field, value, then=bool)

    @overload
    def hmget(self, key: Key, *fields: Word) -> Call[list[Data | None]]: ...
    @overload
    def hmget(self, key: Key, *fields: Word, as_: type[_T]) -> Call[list[_T | None]]: ...
    def hmget(self, key: Key, *fields: Word, as_: Any = None) -> Call[Any]:
        """The values of fields, in their order."""
        return self._call("HMGET", key, *fields, as_=as_)

    def hgetall(self, key: Key) -> Call[dict[Data, Data]]:
        """All fields and their values."""
        return self._call("HGETALL", key)

    def hdel(self, key: Key, *fields: Word) -> Call[int]:
        """Delete fields; how many there were."""
        return self._call("HDEL", key, *fields)

    def hexists(self, key: Key, field: Word) -> Call[bool]:
        """Whether there is a field."""
        return self._call("HEXISTS", key, field, then=bool)

    def hincrby(self, key: Key, field: Word, amount: int = 1) -> Call[int]:
        """Add to a number in a field; the sum."""
        return self._call("HINCRBY", key, field, amount)

    def hincrbyfloat(self, key: Key, field: Word, amount: float) -> Call[float]:
        """Add a fraction to a number in a field; the sum."""
        return self._call("HINCRBYFLOAT", key, field, amount, as_=float)

    def hkeys(self, key: Key) -> Call[list[Data]]:
        """All fields."""
        return self._call("HKEYS", key)

    def hvals(self, key: Key) -> Call[list[Data]]:
        """All values."""
        return self._call("HVALS", key)

    def hlen(self, key: Key) -> Call[int]:
        """The number of fields."""
        return self._call("HLEN", key)

    def hstrlen(self, key: Key, field: Word) -> Call[int]:
        """The length of a field's value, in bytes."""
        return self._call("HSTRLEN", key, field)

    def hrandfield(self, key: Key, count: int = 1) -> Call[list[Data]]:
        """Any fields; with a negative ``count`` one may come more than once."""
        return self._call("HRANDFIELD", key, count)

    def hscan(
        self, key: Key, *, match: str | bytes | None = None, count: int | None = None
    ) -> Scan[tuple[Data, Data]]:
        """Fields and values, a portion at a time: ``async for field, value in redis.hscan(key)``."""
        words = options(("MATCH", match), ("COUNT", count))

        def portion(cursor: bytes, _node: int | None) -> Call[Any]:
            return self._call("HSCAN", key, cursor, *words)

        return self._scan(portion, in_pairs)
