"""Commands for sorted sets: members with scores. Those that wait have connections of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.redis.commands.base import (
    Caller,
    Data,
    check_flag,
    counted,
    flags,
    listed,
    milliseconds,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Scores, Word
    from citius.redis.commands.scanning import Scan


class SortedSetCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=sorted-set``."""

    def zadd(
        self,
        key: Key,
        mapping: Scores,
        *,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
        ch: bool = False,
    ) -> Call[int]:
        """Add members with their scores; how many are new.

        Args:
            key: The key.
            mapping: Scores by members.
            nx: Only those that are not there.
            xx: Only those that are.
            gt: Only if the new score is greater.
            lt: Only if it is less.
            ch: Return how many were added or changed.
        """
        chosen = flags(("NX", nx), ("XX", xx), ("GT", gt), ("LT", lt), ("CH", ch))
        scored = [word for member, score in mapping.items() for word in (score, member)]
        return self._call("ZADD", key, *chosen, *scored)

    def zrem(self, key: Key, *members: Word) -> Call[int]:
        """Remove members; how many there were."""
        return self._call("ZREM", key, *members)

    def zscore(self, key: Key, member: Word) -> Call[float | None]:
        """The score of a member."""
        return self._call("ZSCORE", key, member)

    def zmscore(self, key: Key, *members: Word) -> Call[list[float | None]]:
        """The scores of members."""
        return self._call("ZMSCORE", key, *members)

    def zincrby(self, key: Key, amount: float, member: Word) -> Call[float]:
        """Add to a score; the sum."""
        return self._call("ZINCRBY", key, amount, member)

    def zcard(self, key: Key) -> Call[int]:
        """The number of members."""
        return self._call("ZCARD", key)

    def zcount(self, key: Key, least: Word, most: Word) -> Call[int]:
        """How many scores lie between; ``"-inf"``, ``"+inf"``, ``"(5"`` for more than 5."""
        return self._call("ZCOUNT", key, least, most)

    def zlexcount(self, key: Key, least: Word, most: Word) -> Call[int]:
        """How many members lie between, of equal scores: ``"-"``, ``"+"``, ``"[a"``, ``"(a"``."""
        return self._call("ZLEXCOUNT", key, least, most)

    def zrange(
        self,
        key: Key,
        start: Word,
        end: Word,
        *,
        byscore: bool = False,
        bylex: bool = False,
        desc: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Call[list[Data]]:
        """Members by place, or by score or member.

        Args:
            key: The key.
            start: The first.
            end: The last.
            byscore: These are scores.
            bylex: These are members, of equal scores.
            desc: In descending order.
            offset: How many are skipped, with ``num``.
            num: How many are returned.
        """
        words = _range(byscore, bylex, desc, offset, num)
        return self._call("ZRANGE", key, start, end, *words)

    def zrange_withscores(
        self,
        key: Key,
        start: Word,
        end: Word,
        *,
        byscore: bool = False,
        desc: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Call[list[tuple[Data, float]]]:
        """Members and their scores, by place, or by score or member."""
        words = _range(byscore, False, desc, offset, num)
        return self._call("ZRANGE", key, start, end, *words, "WITHSCORES", then=_scored)

    def zrangestore(
        self,
        destination: Key,
        source: Key,
        start: Word,
        end: Word,
        *,
        byscore: bool = False,
        bylex: bool = False,
        desc: bool = False,
        offset: int | None = None,
        num: int | None = None,
    ) -> Call[int]:
        """Store what ``zrange`` returns; how many."""
        words = _range(byscore, bylex, desc, offset, num)
        return self._call("ZRANGESTORE", destination, source, start, end, *words)

    def zrank(self, key: Key, member: Word) -> Call[int | None]:
        """The place of a member, in ascending order."""
        return self._call("ZRANK", key, member)

    def zrevrank(self, key: Key, member: Word) -> Call[int | None]:
        """The place of a member, in descending order."""
        return self._call("ZREVRANK", key, member)

    def zpopmin(self, key: Key, count: int = 1) -> Call[list[tuple[Data, float]]]:
        """Take the members with the lowest scores."""
        return self._call("ZPOPMIN", key, count, then=_scored)

    def zpopmax(self, key: Key, count: int = 1) -> Call[list[tuple[Data, float]]]:
        """Take the members with the highest scores."""
        return self._call("ZPOPMAX", key, count, then=_scored)

    def bzpopmin(
        self, keys: Key | Sequence[Key], timeout: float = 0
    ) -> Call[tuple[Data, Data, float] | None]:
        """Take the member with the lowest score of the first set that has one; waits for it.

        Args:
            keys: A key, or several.
            timeout: Seconds after which the result is ``None``; 0 means without an end.
        """
        words = (*listed(keys), timeout)
        return self._call("BZPOPMIN", *words, then=_triple, blocks_ms=milliseconds(timeout))

    def bzpopmax(
        self, keys: Key | Sequence[Key], timeout: float = 0
    ) -> Call[tuple[Data, Data, float] | None]:
        """Take the member with the highest score of the first set that has one; waits for it."""
        words = (*listed(keys), timeout)
        return self._call("BZPOPMAX", *words, then=_triple, blocks_ms=milliseconds(timeout))

    def zremrangebyrank(self, key: Key, start: int, end: int) -> Call[int]:
        """Remove the members at places; how many."""
        return self._call("ZREMRANGEBYRANK", key, start, end)

    def zremrangebyscore(self, key: Key, least: Word, most: Word) -> Call[int]:
        """Remove the members whose scores lie between; how many."""
        return self._call("ZREMRANGEBYSCORE", key, least, most)

    def zremrangebylex(self, key: Key, least: Word, most: Word) -> Call[int]:
        """Remove the members that lie between; how many."""
        return self._call("ZREMRANGEBYLEX", key, least, most)

    def zunion(self, keys: Sequence[Key], *, aggregate: str | None = None) -> Call[list[Data]]:
        """Members of any set; ``aggregate``: ``SUM``, ``MIN`` or ``MAX`` of their scores gives the order."""
        return self._call("ZUNION", *counted(keys), *options(("AGGREGATE", aggregate)))

    def zinter(self, keys: Sequence[Key], *, aggregate: str | None = None) -> Call[list[Data]]:
        """Members of all sets."""
        return self._call("ZINTER", *counted(keys), *options(("AGGREGATE", aggregate)))

    def zdiff(self, keys: Sequence[Key]) -> Call[list[Data]]:
        """Members of the first set that are in no other."""
        return self._call("ZDIFF", *counted(keys))

    def zunionstore(
        self, destination: Key, keys: Sequence[Key], *, aggregate: str | None = None
    ) -> Call[int]:
        """Store the members of any set; how many."""
        words = options(("AGGREGATE", aggregate))
        return self._call("ZUNIONSTORE", destination, *counted(keys), *words)

    def zinterstore(
        self, destination: Key, keys: Sequence[Key], *, aggregate: str | None = None
    ) -> Call[int]:
        """Store the members of all sets; how many."""
        words = options(("AGGREGATE", aggregate))
        return self._call("ZINTERSTORE", destination, *counted(keys), *words)

    def zdiffstore(self, destination: Key, keys: Sequence[Key]) -> Call[int]:
        """Store the members of the first set that are in no other; how many."""
        return self._call("ZDIFFSTORE", destination, *counted(keys))

    def zintercard(self, keys: Sequence[Key], *, limit: int | None = None) -> Call[int]:
        """How many members are in all sets; counted up to ``limit``."""
        return self._call("ZINTERCARD", *counted(keys), *options(("LIMIT", limit)))

    def zrandmember(self, key: Key) -> Call[Data | None]:
        """Any member."""
        return self._call("ZRANDMEMBER", key)

    def zscan(
        self, key: Key, *, match: str | bytes | None = None, count: int | None = None
    ) -> Scan[tuple[Data, float]]:
        """Members and scores, a portion at a time: ``async for member, score in redis.zscan(key)``."""
        words = options(("MATCH", match), ("COUNT", count))

        def portion(cursor: bytes, _node: int | None) -> Call[Any]:
            return self._call("ZSCAN", key, cursor, *words)

        def elements(found: list[Any]) -> list[tuple[Data, float]]:
            turns = zip(found[::2], found[1::2], strict=True)
            return [(member, float(score)) for member, score in turns]

        return self._scan(portion, elements)

    # --- places on the earth ---

    def geoadd(self, key: Key, *places: tuple[float, float, Word]) -> Call[int]:
        """Add places: longitude, latitude, member; how many are new."""
        return self._call("GEOADD", key, *(word for place in places for word in place))

    def geodist(self, key: Key, one: Word, two: Word, unit: str = "m") -> Call[float | None]:
        """The distance of two members: ``m``, ``km``, ``mi`` or ``ft``."""
        return self._call("GEODIST", key, one, two, unit, as_=float)

    def geopos(self, key: Key, *members: Word) -> Call[list[tuple[float, float] | None]]:
        """Longitude and latitude of members."""
        return self._call("GEOPOS", key, *members, then=_positions)

    def geosearch(
        self,
        key: Key,
        *,
        member: Word | None = None,
        longitude: float | None = None,
        latitude: float | None = None,
        radius: float | None = None,
        width: float | None = None,
        height: float | None = None,
        unit: str = "m",
        count: int | None = None,
        desc: bool = False,
    ) -> Call[list[Data]]:
        """Members around a member, or around a place; nearest first, unless ``desc``.

        Args:
            key: The key.
            member: Around which.
            longitude: Or around this place, with ``latitude``.
            latitude: Its latitude.
            radius: How far away.
            width: Or within a box, with ``height``.
            height: Its height.
            unit: Of these: ``m``, ``km``, ``mi`` or ``ft``.
            count: How many at most.
            desc: Farthest first.
        """
        words: list[Word] = []
        if member is not None:
            words += ["FROMMEMBER", member]
        elif longitude is not None and latitude is not None:
            words += ["FROMLONLAT", longitude, latitude]
        if radius is not None:
            words += ["BYRADIUS", radius, unit]
        elif width is not None and height is not None:
            words += ["BYBOX", width, height, unit]
        check_flag("desc", desc)
        words += ["DESC" if desc else "ASC", *options(("COUNT", count))]
        return self._call("GEOSEARCH", key, *words)


def _range(
    byscore: bool, bylex: bool, desc: bool, offset: int | None, num: int | None
) -> list[Word]:
    words = flags(("BYSCORE", byscore), ("BYLEX", bylex), ("REV", desc))
    if num is not None or offset is not None:
        words += ["LIMIT", offset or 0, -1 if num is None else num]
    return words


def _scored(found: list[Any]) -> list[tuple[Any, float]]:
    """Members with scores: pairs, or of one member the two values alone."""
    if found and not isinstance(found[0], list):
        return [(found[0], found[1])]
    return [(member, score) for member, score in found]


def _triple(found: list[Any] | None) -> tuple[Any, ...] | None:
    return None if found is None else tuple(found)


def _positions(found: list[Any]) -> list[tuple[float, float] | None]:
    return [None if place is None else (place[0], place[1]) for place in found]
