"""Stored responses in Redis, for all workers and machines.

A URL has one hash: the names of the fields that its responses differ by, and a response for each of their
values. ``…:changed`` is the URL's version, which an invalidation replaces: a response is kept only if that is
what it was before its request, so that none comes in late that is out of date. A URL without a version gets
one before it is asked for, so a change that Redis has forgotten (emptied, restarted, short of memory) keeps
such a response out, too. ``…:claim`` is of the process that asks for the URL.
Tests: ``tests/http/gateway/test_caching_redis.py``.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from citius.cluster.engines import EngineAway
from citius.cluster.outage import RETRY_S, Asker, Away, give_back
from citius.cluster.ownredis import OwnRedis, RedisByLoop
from citius.cluster.redisclient import Script, checked, command
from citius.http.gateway.entries import Entry, value_sent
from citius.http.gateway.stores import CHANGED_MAX, COLLAPSED_S, VARIANTS_MAX, Found, Mark
from citius.observability.logging import warning

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.cluster.redisclient import Argument
    from citius.http.gateway.entries import Key, Lines, Varies
    from citius.redis.client import Redis

NAMES_MAX: Final = 4
"""Sets of fields by which the responses of one URL differ. Exceeded: the oldest is forgotten."""
_CHANGED_S: Final = 3600
"""How long a URL's version is kept. Origin: longer than a response takes. Exceeded: that is not kept."""
_VALIDATED_S: Final = 24 * 3600.0
"""How long a stale response with a validator is kept."""
_KEPT_S_MAX: Final = 7 * 24 * 3600.0
_LOOK_S: Final = 0.005
"""How often another process's claim is looked at; the pause doubles."""
_LOOK_S_MAX: Final = 0.1

_KEEP: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 and redis.call('HLEN', KEYS[1]) > tonumber(ARGV[6]) then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], '', ARGV[2], ARGV[3], ARGV[4])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return 1
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
_names: Final = msgspec.msgpack.Decoder(tuple[tuple[str, ...], ...])


class RedisResponses:
    """Responses in Redis. While it is away requests are passed on, and nothing is kept.

    An invalidation that Redis could not be told is told when it is back; until then this worker finds nothing
    for the URL.

    Args:
        redis: A client of ``citius.redis``, or the URL of a server.
        prefix: What its keys begin with.
    """

    def __init__(self, redis: Redis[bytes] | str, prefix: str) -> None:
        self._client: Any = (
            RedisByLoop(redis) if isinstance(redis, str) else OwnRedis(redis, is_opened_here=True)
        )
        self._prefix = prefix
        self._asker = Asker("stored responses")
        self._script, self._release = Script(_KEEP), Script(_RELEASE)
        self._untold: OrderedDict[str, None] = OrderedDict()
        """Names of URLs whose invalidation Redis was not told yet."""
        self._overflows = self._dropped = 0
        """How often they were too many to be remembered; after how many of these times all were dropped."""
        self._telling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def _name(self, key: Key) -> str:
        # In braces: all keys of a URL are on one node of a cluster.
        return f"{self._prefix}{{{sha256(msgspec.msgpack.encode(key)).hexdigest()}}}"

    async def find(self, key: Key, fields: Lines) -> Found:
        """The latest response whose ``Vary`` this request meets."""
        name = self._name(key)
        if name in self._untold or self._dropped != self._overflows:
            return Found(None, None)
        try:
            return await self._asker.ask(lambda: self._find(name, fields))
        except Away:
            return Found(None, None)

    async def _find(self, name: str, fields: Lines) -> Found:
        plain = _variant(())
        (index, of_all), changed = await self._all(
            [["HMGET", name, "", plain], ["GET", f"{name}:changed"]]
        )
        changed = changed or await self._version(name)
        try:
            names = () if index is None else _names.decode(index)
            for one in names:
                varies = tuple((field, value_sent(fields, field)) for field in one)
                data = of_all
                if varies:
                    data = await command(self._client, "HGET", name, _variant(varies))
                if data is not None and (entry := Entry.unpacked(data)).is_for(fields):
                    return Found(entry, Mark(changed, names))
        except msgspec.MsgspecError:  # of another version
            names = ()
        return Found(None, Mark(changed, names))

    async def _version(self, name: str) -> bytes:
        """The version of a URL that had none, before it is asked for."""
        _, version = await self._all(
            [
                ["SET", f"{name}:changed", secrets.token_bytes(8), "NX", "EX", _CHANGED_S],
                ["GET", f"{name}:changed"],
            ]
        )
        return version or b""

    def keep(self, key: Key, entry: Entry, mark: Mark, over: Callable[[], None]) -> None:
        """Keep a response in place of others for the same requests; the client does not wait for it."""
        name = self._name(key)
        own = tuple(field for field, _ in entry.varies)
        names = (own, *(one for one in mark.names if one != own))[:NAMES_MAX]
        left_s = entry.lifetime_s - entry.age_s + entry.stale_s
        if entry.etag or entry.modified:
            left_s = max(left_s, _VALIDATED_S)
        ttl_ms = round(1000 * min(max(left_s, 1.0), _KEPT_S_MAX))
        arguments: list[Argument] = [
            mark.changed, msgspec.msgpack.encode(names), _variant(entry.varies), entry.packed(), ttl_ms,
            VARIANTS_MAX,
        ]  # fmt: skip
        call = self._script.call([name, f"{name}:changed"], arguments)

        async def keep() -> None:
            try:
                await self._asker.ask(lambda: self._scripted(self._script, call))
            except Away:
                pass
            finally:
                over()

        self._begin(keep())

    async def invalidate(self, keys: list[Key]) -> None:
        """Drop the responses for URLs."""
        names = [self._name(key) for key in keys]
        self._untold.update(dict.fromkeys(names))
        if len(self._untold) > CHANGED_MAX:
            self._untold.clear()
            self._overflows += 1
            warning(
                "stored responses: more URLs than can be remembered were changed while redis was away; "
                "all are dropped there when it is back"
            )
        # A request that is cancelled has changed the resource all the same.
        await asyncio.shield(self._begin(self._tell_or_remember(names)))

    async def _tell_or_remember(self, names: list[str]) -> None:
        try:
            await self._tell(names)
        except Away:
            if self._telling is None or self._telling.done():
                self._telling = self._begin(self._tell_later())

    async def _tell(self, names: list[str]) -> None:
        calls: list[list[Argument]] = []
        for name in names:
            calls.append(["SET", f"{name}:changed", secrets.token_bytes(8), "EX", _CHANGED_S])
            calls.append(["DEL", name])
        await self._asker.ask(lambda: self._all(calls))
        for name in names:
            self._untold.pop(name, None)

    async def _tell_later(self) -> None:
        while self._untold or self._dropped != self._overflows:
            await asyncio.sleep(RETRY_S)
            try:
                overflows = self._overflows
                if self._dropped != overflows:
                    await self._drop_all()
                    self._dropped = overflows
                await self._tell(list(self._untold))
            except Away:
                continue

    async def _drop_all(self) -> None:
        """Drop all versions, so that what was asked for before is not kept, and then all responses.

        Raises:
            Away: Redis has not done it.
        """
        pattern = "".join(f"\\{one}" if one in "*?[]^\\" else one for one in self._prefix) + "{*}"
        try:
            for suffix in (":changed", ""):
                await self._client.delete_all(pattern + suffix)
        except EngineAway as error:
            raise Away from error

    async def claim(self, key: Key) -> bytes | None:
        """Try to be the one that asks for a URL."""
        token = secrets.token_bytes(8)
        words = f"{self._name(key)}:claim", token, "NX", "PX", round(1000 * COLLAPSED_S)
        try:
            got = await self._asker.ask(lambda: command(self._client, "SET", *words))
        except Away:
            return b""
        return None if got is None else token

    def release(self, key: Key, token: bytes) -> None:
        """End one's own claim; without a loop it ends by itself."""
        if not token:
            return
        call = self._release.call([f"{self._name(key)}:claim"], [token])
        with suppress(RuntimeError):
            give_back(lambda: self._scripted(self._release, call), COLLAPSED_S)

    async def wait(self, key: Key) -> None:
        """Wait until the process that has claimed a URL is done."""
        name, pause_s = f"{self._name(key)}:claim", _LOOK_S
        until = time.monotonic() + COLLAPSED_S
        while time.monotonic() < until:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LOOK_S_MAX)
            try:
                if not await self._asker.ask(lambda: command(self._client, "EXISTS", name)):
                    return
            except Away:
                return

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name="citius-stored-responses")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _all(self, calls: list[list[Argument]]) -> list[Any]:
        return checked(await self._client.pipeline(calls))

    async def _scripted(self, script: Script, call: list[Argument]) -> None:
        checked(await script.replies(self._client, [call]))


def _variant(varies: Varies) -> str:
    return sha256(msgspec.msgpack.encode(varies)).hexdigest()
