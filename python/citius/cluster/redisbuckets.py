"""Token buckets in Redis: ``RateLimit(…, store=…)`` counts over all machines.

A node takes tokens from Redis for all requests that came together, and, of a bucket that is asked
often, a few in advance: as many as it has needed in the last ``sync_s``, and no more than half of what
the bucket gets in that time. What it has not used by then it gives back. A bucket that was empty is not
asked again for ``sync_s`` (less for small buckets). So between two syncs the node decides by itself,
and the tokens that are in advance on all nodes are few: what passes is the limit to one percent,
however the requests are split between nodes.

A bucket is one instant, the one at which it is full again (the generic cell rate algorithm), by the clock of
Redis: those of machines differ. Tests: tests/middleware/test_redis.py, tests/cluster/test_limits.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal

from citius.cluster.outage import RETRY_S, TIMEOUT_S, Asker, Away
from citius.cluster.redisclient import Refusal, Script, adapted, redis_py

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.redisclient import RedisPipelines

SYNC_S: Final = 0.01
"""How long a node goes by what Redis has said. Origin: a limit per second is exact to one percent."""
BUCKETS_MAX: Final = 100_000
"""Buckets that a node remembers. Exceeded: the one that was not asked longest is asked in Redis next time."""

_NS_PER_US: Final = 1000
_US_PER_S: Final = 1_000_000
# Buckets that are asked in one pipeline.
_BUCKETS_AT_ONCE: Final = 500

# KEYS[1] is the bucket; ARGV microseconds per token, tokens of a full one, tokens that are wanted, and
# those that are given back. It returns tokens granted, those left, and microseconds until there is one and
# until the bucket is full.
_TAKE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, size = tonumber(ARGV[1]), tonumber(ARGV[1]) * tonumber(ARGV[2])
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
local full = before - tonumber(ARGV[4]) * interval
if full < now then full = now end
if full > now + size then full = now + size end
local there = math.floor((size - (full - now)) / interval)
local granted = math.min(tonumber(ARGV[3]), there)
full = full + granted * interval
if full ~= before and full > now then
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000) + 1)
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

    def __init__(self, key: bytes, interval_us: int, burst: int) -> None:
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
        self.waiting: list[asyncio.Future[tuple[bool, int, int, int] | None]] = []
        self.asked: list[asyncio.Future[tuple[bool, int, int, int] | None]] = []
        """Those for which Redis is being asked."""
        self.is_dirty = False


class RedisBuckets:
    """Token buckets in Redis, exact over all machines.

    Args:
        client: A ``citius.redis.Redis``, a ``redis.asyncio.Redis``, or a ``citius.cluster.RedisClient``.
        prefix: What its keys begin with.
        when_down: What requests get while Redis is away: they are not limited, or get 503.
        timeout_s: Seconds that a request waits for Redis.
        retry_s: Seconds until a Redis that did not respond is asked again.
        sync_s: Seconds for which a node goes by what Redis has said.
    """

    def __init__(
        self,
        client: object,
        prefix: str = "rate:",
        *,
        when_down: Literal["allow", "refuse"] = "allow",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        sync_s: float = SYNC_S,
    ) -> None:
        self._asker = Asker("rate limits", timeout_s, retry_s)
        self._client: RedisPipelines = adapted(client)
        self._prefix = prefix.encode()
        self._when_down = when_down
        self._sync_s = sync_s
        self._script = Script(_TAKE)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._buckets: OrderedDict[tuple[bytes, int, int], _Bucket] = OrderedDict()
        self._dirty: list[_Bucket] = []
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_url(
        cls,
        url: str,
        prefix: str = "rate:",
        *,
        when_down: Literal["allow", "refuse"] = "allow",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        sync_s: float = SYNC_S,
    ) -> RedisBuckets:
        """Buckets in the server at ``url``.

        Raises:
            ConfigError: redis-py is not installed.
        """
        return cls(
            redis_py(url), prefix, when_down=when_down, timeout_s=timeout_s, retry_s=retry_s,
            sync_s=sync_s,
        )  # fmt: skip

    async def take(
        self, key: bytes, interval_ns: int, burst: int
    ) -> tuple[bool, int, int, int] | None:
        """Take a token.

        Returns:
            Whether there was one, how many are left, and nanoseconds until there is one and until the bucket
            is full; ``None`` if nothing is known and the request is to be served.

        Raises:
            ServiceUnavailable: Redis is away, and ``when_down`` is ``refuse``.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        bucket, now = self._bucket(key, interval_ns, burst), loop.time()
        if now - bucket.needed_since > self._sync_s:
            bucket.needed, bucket.needed_since = 0, now
        bucket.needed += 1
        if bucket.tokens and now < bucket.leased_until:
            bucket.tokens -= 1
            return True, bucket.left + bucket.tokens, 0, _ns(bucket.full_at - now)
        if now < bucket.empty_until:
            return False, 0, _ns(bucket.retry_at - now), _ns(bucket.full_at - now)
        waiter: asyncio.Future[tuple[bool, int, int, int] | None] = loop.create_future()
        bucket.waiting.append(waiter)
        self._ask_soon(bucket)
        try:
            return await waiter
        except Away:
            if self._when_down == "allow":
                return None
            raise self._asker.refusal() from None

    async def stop(self) -> None:
        """Give back what was taken in advance; nothing is asked any more from then on."""
        held = [bucket for bucket in self._buckets.values() if bucket.tokens]
        self._buckets.clear()
        for bucket in held:
            self._ask_soon(bucket)
        task, self._is_stopped = self._task, True
        if task is not None:
            await asyncio.wait([task])

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_stopped = False
        self._buckets.clear()
        self._dirty.clear()
        self._task = None

    def _bucket(self, key: bytes, interval_ns: int, burst: int) -> _Bucket:
        place = key, interval_ns, burst
        bucket = self._buckets.get(place)
        if bucket is None:
            interval_us = max(1, round(interval_ns / _NS_PER_US))
            bucket = self._buckets[place] = _Bucket(self._prefix + key, interval_us, burst)
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
            assert self._loop is not None, "take has set it"
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
        calls: list[list[Any]] = []
        for bucket in buckets:
            bucket.is_dirty = False
            bucket.asked, bucket.waiting = bucket.waiting, []
            back, bucket.tokens = bucket.tokens, 0
            wanted = len(bucket.asked) + self._in_advance(bucket)
            calls.append(
                self._script.call([bucket.key], [bucket.interval_us, bucket.burst, wanted, back])
            )
        try:
            replies = await self._asker.ask(lambda: self._script.replies(self._client, calls))
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
                self._granted(bucket, reply)

    def _in_advance(self, bucket: _Bucket) -> int:
        """Tokens to be taken for requests that have not come yet: none of a bucket that is seldom asked."""
        most = round(_US_PER_S * self._sync_s / bucket.interval_us / 2)
        return min(bucket.needed - len(bucket.asked), most) if bucket.asked and most > 0 else 0

    def _granted(self, bucket: _Bucket, reply: Sequence[int]) -> None:
        assert self._loop is not None, "take has set it"
        granted, left, retry_us, full_us = reply
        now = self._loop.time()
        bucket.left, bucket.full_at = left, now + full_us / _US_PER_S
        asked, bucket.asked = bucket.asked, []
        for waiter in asked:
            if waiter.done():
                continue  # its client has left; its token serves another, or is given back
            if granted:
                granted -= 1
                waiter.set_result((True, left + granted, 0, full_us * _NS_PER_US))
            else:
                waiter.set_result((False, 0, retry_us * _NS_PER_US, full_us * _NS_PER_US))
                bucket.retry_at = now + retry_us / _US_PER_S
                bucket.empty_until = now + self._quiet_s(bucket)
        if granted:
            bucket.tokens += granted
            bucket.leased_until = now + self._sync_s
            self._loop.call_later(self._sync_s, self._give_back, bucket)

    def _quiet_s(self, bucket: _Bucket) -> float:
        """For how long a bucket that was empty is not asked: less than it takes to fill a quarter of it."""
        return min(self._sync_s, bucket.burst * bucket.interval_us / _US_PER_S / 4)

    def _give_back(self, bucket: _Bucket) -> None:
        assert self._loop is not None, "take has set it"
        if bucket.tokens and not self._is_stopped and self._loop.time() >= bucket.leased_until:
            self._ask_soon(bucket)

    async def _refused(self, bucket: _Bucket, refusal: Refusal) -> None:
        """What Redis refuses (another type under the key, no memory) is as if it were away."""

        async def refuse() -> None:
            raise OSError(str(refusal))

        try:
            await self._asker.ask(refuse)
        except Away as away:
            _fail(bucket, away)


def _fail(bucket: _Bucket, error: BaseException) -> None:
    asked, bucket.asked = bucket.asked, []
    for waiter in asked:
        if not waiter.done():
            waiter.set_exception(Away() if isinstance(error, asyncio.CancelledError) else error)


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1_000_000_000))
