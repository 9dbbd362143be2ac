"""Commands for lists. Those that wait have connections of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from citius.redis.commands.base import Caller, Data, counted, listed, milliseconds, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word

_T = TypeVar("_T")
End = Literal["LEFT", "RIGHT"]


class ListCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=list``."""

    def lpush(self, key: Key, *values: Word) -> Call[int]:
        """Put values in front, the last one foremost; the length."""
        return self._call("LPUSH", key, *values)

    def rpush(self, key: Key, *values: Word) -> Call[int]:
        """Append values; the length."""
        return self._call("RPUSH", key, *values)

    def lpushx(self, key: Key, *values: Word) -> Call[int]:
        """Put values in front of a list that exists; the length, or 0."""
        return self._call("LPUSHX", key, *values)

    def rpushx(self, key: Key, *values: Word) -> Call[int]:
        """Append values to a list that exists; the length, or 0."""
        return self._call("RPUSHX", key, *values)

    @overload
    def lpop(self, key: Key) -> Call[Data | None]: ...
    @overload
    def lpop(self, key: Key, *, as_: type[_T]) -> Call[_T | None]: ...
    @overload
    def lpop(self, key: Key, count: int) -> Call[list[Data] | None]: ...
    def lpop(self, key: Key, count: int | None = None, *, as_: Any = None) -> Call[Any]:
        """Take the first value; with ``count`` a list of so many."""
        return self._call("LPOP", key, *(() if count is None else (count,)), as_=as_)

    @overload
    def rpop(self, key: Key) -> Call[Data | None]: ...
    @overload
    def rpop(self, key: Key, *, as_: type[_T]) -> Call[_T | None]: ...
    @overload
    def rpop(self, key: Key, count: int) -> Call[list[Data] | None]: ...
    def rpop(self, key: Key, count: int | None = None, *, as_: Any = None) -> Call[Any]:
        """Take the last value; with ``count`` a list of so many."""
        return self._call("RPOP", key, *(() if count is None else (count,)), as_=as_)

    @overload
    def lrange(self, key: Key, start: int, end: int) -> Call[list[Data]]: ...
    @overload
    def lrange(self, key: Key, start: int, end: int, as_: type[_T]) -> Call[list[_T]]: ...
    def lrange(self, key: Key, start: int, end: int, as_: Any = None) -> Call[Any]:
        """Values from place ``start`` to place ``end``; negative ones are counted from the end."""
        return self._call("LRANGE", key, start, end, as_=as_)

    def llen(self, key: Key) -> Call[int]:
        """The length of a list."""
        return self._call("LLEN", key)

    def lindex(self, key: Key, index: int) -> Call[Data | None]:
        """The value at a place."""
        return self._call("LINDEX", key, index)

    def lset(self, key: Key, index: int, value: Word) -> Call[str]:
        """Replace the value at a place."""
        return self._call("LSET", key, index, value)

    def linsert(
        self, key: Key, where: Literal["BEFORE", "AFTER"], pivot: Word, value: Word
    ) -> Call[int]:
        """Insert a value beside another one; the length, or -1 if that is not there."""
        return self._call("LINSERT", key, where, pivot, value)

    def lrem(self, key: Key, count: int, value: Word) -> Call[int]:
        """Remove a value ``count`` times, 0 everywhere, negative from the end; how often it was removed."""
        return self._call("LREM", key, count, value)

    def ltrim(self, key: Key, start: int, end: int) -> Call[str]:
        """Keep the values from place ``start`` to place ``end`` only."""
        return self._call("LTRIM", key, start, end)

    def lpos(self, key: Key, value: Word, *, rank: int | None = None) -> Call[int | None]:
        """The place of a value."""
        return self._call("LPOS", key, value, *options(("RANK", rank)))

    def lmove(
        self, source: Key, destination: Key, src: End = "LEFT", dest: End = "RIGHT"
    ) -> Call[Data | None]:
        """Move a value from one end of a list to one of another; the value."""
        return self._call("LMOVE", source, destination, src, dest)

    def lmpop(
        self, keys: Sequence[Key], where: End = "LEFT", *, count: int | None = None
    ) -> Call[tuple[Data, list[Data]] | None]:
        """Take values from the first list that has some; its key, and the values."""
        words = (*counted(keys), where, *options(("COUNT", count)))
        return self._call("LMPOP", *words, then=_pair)

    def blpop(
        self, keys: Key | Sequence[Key], timeout: float = 0
    ) -> Call[tuple[Data, Data] | None]:
        """Take the first value of the first list that has one; waits for it. Its key, and the value.

        Args:
            keys: A key, or several.
            timeout: Seconds after which the result is ``None``; 0 means without an end.
        """
        words = (*listed(keys), timeout)
        return self._call("BLPOP", *words, then=_pair, blocks_ms=milliseconds(timeout))

    def brpop(
        self, keys: Key | Sequence[Key], timeout: float = 0
    ) -> Call[tuple[Data, Data] | None]:
        """Take the last value of the first list that has one; waits for it. Its key, and the value."""
        words = (*listed(keys), timeout)
        return self._call("BRPOP", *words, then=_pair, blocks_ms=milliseconds(timeout))

    def blmove(
        self,
        source: Key,
        destination: Key,
        timeout: float = 0,
        src: End = "LEFT",
        dest: End = "RIGHT",
    ) -> Call[Data | None]:
        """As ``lmove``; waits for a value."""
        words = (source, destination, src, dest, timeout)
        return self._call("BLMOVE", *words, blocks_ms=milliseconds(timeout))

    def blmpop(
        self,
        keys: Sequence[Key],
        timeout: float = 0,
        where: End = "LEFT",
        *,
        count: int | None = None,
    ) -> Call[tuple[Data, list[Data]] | None]:
        """As ``lmpop``; waits for a value."""
        words = (timeout, *counted(keys), where, *options(("COUNT", count)))
        return self._call("BLMPOP", *words, then=_pair, blocks_ms=milliseconds(timeout))


def _pair(found: list[Any] | None) -> tuple[Any, ...] | None:
    return None if found is None else tuple(found)
