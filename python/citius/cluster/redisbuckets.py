"""Token buckets in Redis: ``RateLimit(…, store=…)`` counts over all machines.

A node takes tokens from Redis for all requests that came together, and, of a bucket that is asked
often, a few in advance: as many as it has needed in the last ``sync_s``, and no more than half of what
the bucket gets in that time. What it has not used by then it gives back. A bucket that is empty is not
asked again for half of ``sync_s``. So between two syncs the node decides by itself.

How exact that is: let U be the tokens that are unused, in Redis and in advance on nodes. While requests come
faster than tokens, what passes in any interval is the tokens that came in it, U at its beginning, less U at
its end. So it is wrong by the largest U at most.

- Nothing is taken in advance of a bucket that has less than a tenth of a second's tokens (a small one: less
  than half of its own), and what was taken before is used or back after ``sync_s``. So U is what Redis has.
- That grows only while each node that gets requests goes by the bucket's being empty. The node has found it
  so at most ``sync_s / 2 + d`` ago, where d is the time until its next request, until its event loop has a
  turn, and until the call is in Redis.
- So U is at most ``rate * (sync_s / 2 + d)``, for any number of nodes and any split of the requests: with
  1 000 per second and a d of 5 ms, between 990 and 1 010 pass in each second.

Outside of this are the seconds in which the burst of a full bucket passes, and a load that takes a tenth of
a second's tokens within ``sync_s``: what nodes had in advance then passes once, at most half a percent of a
second's tokens for each node.

A bucket is one instant, the one at which it is full again (the generic cell rate algorithm), by the clock of
Redis: those of machines differ. Tests: tests/middleware/test_redis.py, tests/cluster/test_limits.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from citius.cluster.byloop import ByLoop
from citius.cluster.engines import EngineRefused
from citius.cluster.outage import RETRY_S, TIMEOUT_S, Asker, Away
from citius.cluster.redisclient import Refusal, Script, is_own
from citius.cluster.stats import Stats
from citius.errors import ConfigError
from citius.unknown_options import known_options, with_known_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.outage import Health
    from citius.cluster.ownredis import RedisByLoop
    from citius.cluster.redisclient import RedisPipelines

WhenDown: TypeAlias = Literal["local", "allow", "refuse"]

SYNC_S: Final = 0.01
"""How long a node has tokens in advance; twice as long as it goes by a bucket's being empty. Origin: a limit
per second is exact to one percent."""
BUCKETS_MAX: Final = 100_000
"""Buckets that a node remembers. Exceeded: the one that was not asked longest is asked in Redis next time."""

# A bucket that is empty is not asked before it has a token, as Redis has said, but after so many syncs at
# most: Redis may have lost its memory, or a token may have been given back.
_EMPTY_SYNCS_MAX: Final = 10
# What is left in a bucket of which nothing is taken in advance.
_RESERVE_S: Final = 0.1
_NS_PER_US: Final = 1000
_US_PER_S: Final = 1_000_000
# Buckets that are asked in one pipeline.
_BUCKETS_AT_ONCE: Final = 500

# KEYS[1] is the bucket; ARGV microseconds per token, tokens of a full one, tokens that are wanted, those that
# are given back, those that are wanted in advance, and those that have to be left then. It returns tokens
# granted, those left, and microseconds until there is one and until the bucket is full. Microseconds have
# fractions, for a limit of 70 000 per second is not one of 14 microseconds; a number as large as the clock is
# right to a quarter of one. What another program has put under the key stands for a full bucket.
_TAKE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, size = tonumber(ARGV[1]), tonumber(ARGV[1]) * tonumber(ARGV[2])
local found = redis.pcall('GET', KEYS[1])
local before = tonumber(type(found) == 'string' and found or '0') or 0
local full = before - tonumber(ARGV[4]) * interval
if full < now then full = now end
if full > now + size + 1 then full = now + size + 1 end
local there = math.max(0, math.floor((size - (full - now) + 0.5) / interval))
local granted = math.min(tonumber(ARGV[3]), there)
local advance = math.min(tonumber(ARGV[5]), there - granted - tonumber(ARGV[6]))
if advance > 0 then granted = granted + advance end
full = full + granted * interval
if full ~= before and full > now then
  redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1)
end
local retry = full + interval - now - size
if retry < 0 then retry = 0 end
return {granted, there - granted, retry, full - now}
"""


class _Bucket:
    """What a node knows of one bucket. Times are those of the event loop, in seconds."""

    __slots__ = (
        "asked",
        "burst",
        "empty_until",
        "full_at",
        "interval_us",
        "is_dirty",
        "key",
        "leased_until",
        "left",
        "needed",
        "needed_since",
        "retry_at",
        "tokens",
        "waiting",
    )  # fmt: skip

    def __init__(self, key: bytes, interval_us: float, burst: int) -> None:
        self.key = key
        self.interval_us = interval_us
        self.burst = burst
        self.tokens = 0
        """Tokens that were taken in advance."""
        self.leased_until = 0.0
        self.empty_until = 0.0
        self.retry_at = 0.0
        """When there is a token again, as Redis has said."""
        self.full_at = 0.0
        self.left = 0
        """Tokens in Redis, when it was last asked."""
        self.needed = 0
        """Requests since ``needed_since``."""
        self.needed_since = 0.0
        self.waiting: list[asyncio.Future[tuple[bool, int, int, int]]] = []
        self.asked: list[asyncio.Future[tuple[bool, int, int, int]]] = []
        """Those for which Redis is being asked."""
        self.is_dirty = False


class _Node:
    """The buckets of one event loop."""

    def __init__(self, client: RedisPipelines, prefix: bytes, sync_s: float, asker: Asker) -> None:
        self._client = client
        self._prefix = prefix
        self._sync_s = sync_s
        self._asker = asker
        self._script = Script(_TAKE)
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False
        self._buckets: OrderedDict[tuple[bytes, int, int], _Bucket] = OrderedDict()
        self._dirty: list[_Bucket] = []
        self._task: asyncio.Task[None] | None = None

    async def take(self, key: bytes, interval_ns: int, burst: int) -> tuple[bool, int, int, int]:
        """Take a token.

        Raises:
            Away: Nothing is known.
        """
        bucket, now = self._bucket(key, interval_ns, burst), self._loop.time()
        if now - bucket.needed_since > self._sync_s:
            bucket.needed, bucket.needed_since = 0, now
        bucket.needed += 1
        if bucket.tokens and now < bucket.leased_until:
            bucket.tokens -= 1
            return True, bucket.left + bucket.tokens, 0, _ns(bucket.full_at - now)
        if now < bucket.empty_until:
            return False, 0, _ns(bucket.retry_at - now), _ns(bucket.full_at - now)
        waiter: asyncio.Future[tuple[bool, int, int, int]] = self._loop.create_future()
        bucket.waiting.append(waiter)
        self._ask_soon(bucket)
        return await waiter

    async def stop(self) -> None:
        """Give back what was taken in advance; nothing is asked any more from then on."""
        held = [bucket for bucket in self._buckets.values() if bucket.tokens]
        self._buckets.clear()
        for bucket in held:
            self._ask_soon(bucket)
        task, self._is_stopped = self._task, True
        if task is not None:
            await asyncio.wait([task])

    def _bucket(self, key: bytes, interval_ns: int, burst: int) -> _Bucket:
        place = key, interval_ns, burst
        bucket = self._buckets.get(place)
        if bucket is None:
            bucket = _Bucket(self._prefix + key, interval_ns / _NS_PER_US, burst)
            self._buckets[place] = bucket
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(place)
        return bucket

    def _ask_soon(self, bucket: _Bucket) -> None:
        """Have Redis asked, for all buckets of this turn together."""
        if not bucket.is_dirty:
            bucket.is_dirty = True
            self._dirty.append(bucket)
        if self._task is None:
            self._task = self._loop.create_task(self._sync(), name="citius-rate-limits")

    async def _sync(self) -> None:
        try:
            while self._dirty:
                some, self._dirty = (
                    self._dirty[:_BUCKETS_AT_ONCE],
                    self._dirty[_BUCKETS_AT_ONCE:],
                )
                await self._sync_some(some)
        finally:
            self._task = None

    async def _sync_some(self, buckets: list[_Bucket]) -> None:
        for bucket in buckets:
            bucket.is_dirty = False
        # The reply to an earlier call may have been one to those that came meanwhile, too.
        buckets = [bucket for bucket in buckets if bucket.waiting or bucket.tokens]
        if not buckets:
            return
        calls = [self._call(bucket) for bucket in buckets]
        asked_at = self._loop.time()
        try:
            # Each is of a bucket of its own; one that was carried out twice would give tokens back twice.
            replies = await self._asker.ask(
                lambda: self._script.replies(self._client, calls, is_ordered=False)
            )
        except BaseException as error:
            for bucket in buckets:
                _fail(bucket, error)
            if not isinstance(error, Away):
                raise
            return
        for bucket, reply in zip(buckets, replies, strict=True):
            if isinstance(reply, Refusal):
                await self._refused(bucket, reply)
            else:
                self._granted(bucket, reply, asked_at)

    def _call(self, bucket: _Bucket) -> list[Any]:
        """The call for those that wait, which gives back what was in advance."""
        bucket.asked, bucket.waiting = bucket.waiting, []
        back, bucket.tokens = bucket.tokens, 0
        reserve = min(round(_US_PER_S * _RESERVE_S / bucket.interval_us), bucket.burst // 2)
        return self._script.call(
            [bucket.key],
            [
                bucket.interval_us, bucket.burst, len(bucket.asked), back, self._in_advance(bucket),
                reserve,
            ],
        )  # fmt: skip

    def _in_advance(self, bucket: _Bucket) -> int:
        """Tokens to be taken for requests that have not come yet: none of a bucket that is seldom asked."""
        most = round(_US_PER_S * self._sync_s / bucket.interval_us / 2)
        return max(0, min(bucket.needed - len(bucket.asked), most)) if bucket.asked else 0

    def _granted(self, bucket: _Bucket, reply: Sequence[int], asked_at: float) -> None:
        granted, left, retry_us, full_us = reply
        now = self._loop.time()
        bucket.left, bucket.full_at = left, now + full_us / _US_PER_S
        asked, bucket.asked = bucket.asked, []
        if not left:
            bucket.retry_at = now + retry_us / _US_PER_S
            bucket.empty_until = self._empty_until(bucket, asked_at)
            # Redis has said what those would hear that have come since it was asked.
            asked, bucket.waiting = asked + bucket.waiting, []
        for waiter in asked:
            if waiter.done():
                continue  # its client has left; its token serves another, or is given back
            if granted:
                granted -= 1
                waiter.set_result((True, left + granted, 0, full_us * _NS_PER_US))
            else:
                waiter.set_result((False, 0, retry_us * _NS_PER_US, full_us * _NS_PER_US))
        if granted:
            bucket.tokens += granted
            bucket.leased_until = now + self._sync_s
            self._loop.call_later(self._sync_s, self._give_back, bucket)

    def _empty_until(self, bucket: _Bucket, asked_at: float) -> float:
        """Until when a bucket that is empty is not asked: until it has a token, or a few of them.

        At most a quarter of what it can have; counted from when Redis was asked, not from its reply, for the
        bucket has been filling since.
        """
        while_s = min(self._sync_s / 2, bucket.burst * bucket.interval_us / _US_PER_S / 4)
        at_most = asked_at + _EMPTY_SYNCS_MAX * self._sync_s
        return max(asked_at + while_s, min(bucket.retry_at, at_most))

    def _give_back(self, bucket: _Bucket) -> None:
        if bucket.tokens and not self._is_stopped and self._loop.time() >= bucket.leased_until:
            self._ask_soon(bucket)

    async def _refused(self, bucket: _Bucket, refusal: Refusal) -> None:
        """What Redis refuses (it has no memory, say) is as if it were away."""

        async def refuse() -> None:
            raise EngineRefused(str(refusal))

        try:
            await self._asker.ask(refuse)
        except Away as away:
            _fail(bucket, away)


@known_options
class RedisBuckets:
    """Token buckets in Redis, exact over all machines.

    Args:
        client: A ``citius.redis.Redis`` or a ``citius.cluster.RedisClient``.
        prefix: What its keys begin with.
        when_down: What requests get while Redis is away: they are limited by this server alone (``"local"``),
            are not limited (``"allow"``), or get 503 (``"refuse"``).
        timeout_s: Seconds that a request waits for Redis.
        retry_s: Seconds until a Redis that did not respond is asked again.
        sync_s: Seconds for which a node goes by what Redis has said.
        stats: Where outages are counted.
        health: What is known of Redis, if others ask it, too.
    """

    def __init__(
        self,
        client: object,
        prefix: str = "rate:",
        *,
        when_down: WhenDown = "local",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        sync_s: float = SYNC_S,
        stats: Stats | None = None,
        health: Health | None = None,
    ) -> None:
        self._asker = asker = Asker("rate limits", timeout_s, retry_s, stats=stats, health=health)
        pipelines = _pipelines(client)
        self._own: RedisByLoop | None = None
        """The client that ``from_url`` has made."""
        self.when_down: WhenDown = when_down
        self._stats = stats or Stats()
        self._nodes = ByLoop(lambda: _Node(pipelines, prefix.encode(), sync_s, asker))

    @classmethod
    @with_known_options
    def from_url(
        cls,
        url: str,
        prefix: str = "rate:",
        *,
        when_down: WhenDown = "local",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        sync_s: float = SYNC_S,
    ) -> RedisBuckets:
        """Buckets in the server at ``url``; their connections end with the process, or by ``close``.

        Raises:
            ConfigError: The URL is wrong.
        """
        from citius.cluster.ownredis import RedisByLoop

        client = RedisByLoop(url)
        made = cls(
            client, prefix, when_down=when_down, timeout_s=timeout_s, retry_s=retry_s, sync_s=sync_s
        )
        made._own = client
        return made

    async def take(
        self, key: bytes, interval_ns: int, burst: int
    ) -> tuple[bool, int, int, int] | None:
        """Take a token.

        Returns:
            Whether there was one, how many are left, and nanoseconds until there is one and until the bucket
            is full; ``None`` if nothing is known, and ``when_down`` says what becomes of the request.

        Raises:
            ServiceUnavailable: Redis is away, and ``when_down`` is ``refuse``.
        """
        try:
            return await self._nodes.here().take(key, interval_ns, burst)
        except Away:
            if self.when_down == "refuse":
                raise self._asker.refusal() from None
            self._stats.limits_without_engine += 1
            return None

    async def stop(self) -> None:
        """Give back what was taken in advance; nothing is asked any more from then on."""
        node = self._nodes.pop_here()
        if node is not None:
            await node.stop()

    async def close(self) -> None:
        """Stop, and close the connections that ``from_url`` has made, on the running loop."""
        await self.stop()
        if self._own is not None:
            await self._own.close()


def _fail(bucket: _Bucket, error: BaseException) -> None:
    asked, bucket.asked = bucket.asked, []
    for waiter in asked:
        if not waiter.done():
            waiter.set_exception(Away() if isinstance(error, asyncio.CancelledError) else error)


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1_000_000_000))


def _pipelines(client: object) -> RedisPipelines:
    """What sends pipelines by a client of ``citius.redis``, or by a :class:`RedisClient`."""
    if hasattr(client, "subscriber"):
        return client  # pyright: ignore[reportReturnType]
    if is_own(client):
        from citius.cluster.ownredis import OwnRedis

        return OwnRedis(client)
    raise ConfigError(
        f"RedisBuckets({type(client).__module__}.{type(client).__name__}): expected a citius.redis.Redis or "
        'a citius.cluster.RedisClient; of a URL: RedisBuckets.from_url("redis://…")'
    )
