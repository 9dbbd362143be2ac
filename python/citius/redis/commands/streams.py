"""Commands for streams and their consumer groups. Those that wait have connections of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from citius.redis.commands.base import Caller, Data, check_flag, flags, options, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.calls import Call
    from citius.redis.commands.base import Ids, Key, Word, Words


@dataclass(frozen=True, slots=True)
class Entry(Generic[Data]):
    """An entry of a stream."""

    id: str
    fields: dict[Data, Data]
    """Empty for an entry of a group that has been deleted from its stream."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An entry that a consumer has got and not acknowledged."""

    id: str
    consumer: str
    idle_ms: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """What is pending in a group."""

    count: int
    first: str | None
    last: str | None
    consumers: dict[str, int]


class StreamCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=stream``."""

    def xadd(
        self,
        key: Key,
        fields: Words,
        *,
        id: str = "*",
        maxlen: int | None = None,
        approximate: bool = True,
        minid: str | None = None,
        nomkstream: bool = False,
    ) -> Call[str | None]:
        """Append an entry; its id.

        Args:
            key: The stream.
            fields: What the entry says.
            id: ``*``: the server makes one.
            maxlen: Older entries than so many are removed.
            approximate: About so many, which costs less.
            minid: Entries with lesser ids are removed.
            nomkstream: Only if the stream exists; else the result is ``None``.
        """
        words = flags(("NOMKSTREAM", nomkstream))
        words += _trim(maxlen, minid, approximate, None)
        return self._call("XADD", key, *words, id, *pairs(fields), as_=str)

    def xlen(self, key: Key) -> Call[int]:
        """The number of entries."""
        return self._call("XLEN", key)

    def xrange(
        self, key: Key, start: str = "-", end: str = "+", *, count: int | None = None
    ) -> Call[list[Entry[Data]]]:
        """Entries from one id to another; ``"(1-0"`` means after 1-0."""
        return self._call("XRANGE", key, start, end, *options(("COUNT", count)), then=_entries)

    def xrevrange(
        self, key: Key, end: str = "+", start: str = "-", *, count: int | None = None
    ) -> Call[list[Entry[Data]]]:
        """Entries from one id back to another, the last one first."""
        return self._call("XREVRANGE", key, end, start, *options(("COUNT", count)), then=_entries)

    def xread(
        self, streams: Ids, *, count: int | None = None, block_ms: int | None = None
    ) -> Call[dict[Data, list[Entry[Data]]]]:
        """Entries of streams behind those with these ids, by stream.

        Args:
            streams: The last id that is known of each stream; ``$``: what is there now.
            count: How many of each at most.
            block_ms: Wait so long for one, if there is none; 0 means without an end.
        """
        words = options(("COUNT", count), ("BLOCK", block_ms))
        return self._call(
            "XREAD",
            *words,
            "STREAMS",
            *streams,
            *streams.values(),
            then=_streams,
            blocks_ms=block_ms or None,
        )

    def xreadgroup(
        self,
        group: str,
        consumer: str,
        streams: Ids,
        *,
        count: int | None = None,
        block_ms: int | None = None,
        noack: bool = False,
    ) -> Call[dict[Data, list[Entry[Data]]]]:
        """Entries of streams for a consumer of a group, by stream.

        Args:
            group: The group.
            consumer: The consumer, which the server makes.
            streams: For each stream ``>``: entries that no consumer has got; or an id: those that this one
                has got since and not acknowledged.
            count: How many of each at most.
            block_ms: Wait so long for one, if there is none; 0 means without an end.
            noack: They need not be acknowledged.
        """
        words = [*options(("COUNT", count), ("BLOCK", block_ms)), *flags(("NOACK", noack))]
        named = (*words, "STREAMS", *streams, *streams.values())
        return self._call(
            "XREADGROUP",
            "GROUP",
            group,
            consumer,
            *named,
            then=_streams,
            blocks_ms=block_ms or None,
        )

    def xack(self, key: Key, group: str, *ids: str) -> Call[int]:
        """Acknowledge entries; how many were pending."""
        return self._call("XACK", key, group, *ids)

    def xdel(self, key: Key, *ids: str) -> Call[int]:
        """Delete entries; how many there were."""
        return self._call("XDEL", key, *ids)

    def xtrim(
        self,
        key: Key,
        *,
        maxlen: int | None = None,
        minid: str | None = None,
        approximate: bool = True,
        limit: int | None = None,
    ) -> Call[int]:
        """Remove the oldest entries; how many."""
        return self._call("XTRIM", key, *_trim(maxlen, minid, approximate, limit))

    def xgroup_create(
        self, key: Key, group: str, id: str = "$", *, mkstream: bool = False
    ) -> Call[str]:
        """Make a group that gets entries behind the one with this id; ``0``: all.

        Raises:
            GroupExists: There is one of this name.
        """
        return self._call("XGROUP", "CREATE", key, group, id, *flags(("MKSTREAM", mkstream)))

    def xgroup_destroy(self, key: Key, group: str) -> Call[bool]:
        """Delete a group; whether there was one."""
        return self._call("XGROUP", "DESTROY", key, group, then=bool)

    def xgroup_setid(self, key: Key, group: str, id: str) -> Call[str]:
        """Have a group get entries behind the one with this id next."""
        return self._call("XGROUP", "SETID", key, group, id)

    def xgroup_createconsumer(self, key: Key, group: str, consumer: str) -> Call[bool]:
        """Make a consumer; whether it is new."""
        return self._call("XGROUP", "CREATECONSUMER", key, group, consumer, then=bool)

    def xgroup_delconsumer(self, key: Key, group: str, consumer: str) -> Call[int]:
        """Delete a consumer; how many entries it had not acknowledged."""
        return self._call("XGROUP", "DELCONSUMER", key, group, consumer)

    def xpending(self, key: Key, group: str) -> Call[PendingSummary]:
        """How many entries of a group are pending, and whose."""
        return self._call("XPENDING", key, group, as_=str, then=_summary)

    def xpending_range(
        self,
        key: Key,
        group: str,
        start: str = "-",
        end: str = "+",
        count: int = 100,
        *,
        consumer: str | None = None,
        idle_ms: int | None = None,
    ) -> Call[list[Pending]]:
        """The entries of a group that are pending."""
        named = () if consumer is None else (consumer,)
        words = (*options(("IDLE", idle_ms)), start, end, count, *named)
        return self._call("XPENDING", key, group, *words, as_=str, then=_pending)

    def xclaim(
        self, key: Key, group: str, consumer: str, min_idle_ms: int, ids: Sequence[str]
    ) -> Call[list[Entry[Data]]]:
        """Have a consumer take over entries that others have had for too long."""
        return self._call("XCLAIM", key, group, consumer, min_idle_ms, *ids, then=_entries)

    def xautoclaim(
        self,
        key: Key,
        group: str,
        consumer: str,
        min_idle_ms: int,
        start: str = "0-0",
        *,
        count: int | None = None,
    ) -> Call[tuple[str, list[Entry[Data]]]]:
        """Take over entries kept too long; the id to go on with (``0-0``: none left), and the entries."""
        words = (key, group, consumer, min_idle_ms, start, *options(("COUNT", count)))
        return self._call("XAUTOCLAIM", *words, then=_claimed)

    def xinfo_stream(self, key: Key) -> Call[dict[str, Any]]:
        """What the server knows of a stream."""
        return self._call("XINFO", "STREAM", key, then=_named)

    def xinfo_groups(self, key: Key) -> Call[list[dict[str, Any]]]:
        """What the server knows of the groups of a stream."""
        return self._call("XINFO", "GROUPS", key, as_=str)

    def xinfo_consumers(self, key: Key, group: str) -> Call[list[dict[str, Any]]]:
        """What the server knows of the consumers of a group."""
        return self._call("XINFO", "CONSUMERS", key, group, as_=str)


def _trim(
    maxlen: int | None, minid: str | None, approximate: bool, limit: int | None
) -> list[Word]:
    check_flag("approximate", approximate)
    words: list[Word] = []
    for name, value in (("MAXLEN", maxlen), ("MINID", minid)):
        if value is not None:
            words += [name, "~" if approximate else "=", value]
    return words + options(("LIMIT", limit))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _entry(found: list[Any]) -> Entry[Any]:
    id, fields = found
    turns: list[Any] = fields or []
    return Entry(_text(id), dict(zip(turns[::2], turns[1::2], strict=True)))


def _entries(found: list[Any]) -> list[Entry[Any]]:
    # Before Redis 7 a claimed entry that has been deleted is null.
    return [_entry(one) for one in found if one is not None]


def _streams(found: dict[Any, Any] | None) -> dict[Any, list[Entry[Any]]]:
    return {key: _entries(entries) for key, entries in (found or {}).items()}


def _claimed(found: list[Any]) -> tuple[str, list[Entry[Any]]]:
    return _text(found[0]), _entries(found[1])


def _summary(found: list[Any]) -> PendingSummary:
    count, first, last, consumers = found
    named: list[Any] = consumers or []
    return PendingSummary(count, first, last, {name: int(n) for name, n in named})


def _pending(found: list[Any]) -> list[Pending]:
    return [Pending(*one) for one in found]


def _named(found: dict[Any, Any]) -> dict[str, Any]:
    named = {_text(name): value for name, value in found.items()}
    for name in ("first-entry", "last-entry"):
        if named.get(name) is not None:
            named[name] = _entry(named[name])
    return named
