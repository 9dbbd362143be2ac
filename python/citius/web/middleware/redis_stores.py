"""Redis (or Valkey): sessions and token buckets for all workers of all machines.

A server that is away costs one wait of ``timeout_s``; for ``retry_s`` after it no request asks again. What
requests get meanwhile is a choice, ``when_down``: it is written once per outage to the log, and once when the
server is back. The client is one of ``citius.redis`` or of redis-py (``pip install citius[redis]``). Tests:
tests/middleware/test_redis.py, tests/redis/test_stores.py.
"""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from citius.errors import ConfigError, ServiceUnavailable
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")

TIMEOUT_S: Final = 0.5
"""How long one request waits for Redis. Origin: some hundred times what it takes on the same network."""

RETRY_S: Final = 1.0
"""For how long a server that did not respond is not asked again."""

_NS_PER_US: Final = 1000
# Where the exceptions of clients are defined.
_CLIENTS: Final = ("redis.", "citius.redis.")

# A token bucket as one instant, the one at which it is full again (the generic cell rate algorithm). KEYS[1]
# is the bucket; ARGV microseconds per token and tokens of a full one. It returns whether a token was there,
# those left, and microseconds until there is one and until the bucket is full. The clock is that of Redis:
# those of machines differ.
_TAKE = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, size = tonumber(ARGV[1]), tonumber(ARGV[1]) * tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1]) or '0')
if full < now then full = now end
local next_full = full + interval
if next_full - now > size then
  return {0, 0, next_full - now - size, full - now}
end
redis.call('SET', KEYS[1], string.format('%.0f', next_full), 'PX', math.ceil((next_full - now) / 1000) + 1)
return {1, math.floor((size - (next_full - now)) / interval), 0, next_full - now}
"""


class _Away(Exception):
    """Redis did not respond, or not as it should."""


class _Asker:
    """Commands to one Redis, bounded in time."""

    def __init__(self, what: str, client: object, timeout_s: float, retry_s: float) -> None:
        self.client: Any = client
        self._what = what
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._is_away = False
        self._asked_again_at = 0.0

    async def ask(self, command: Callable[[], Awaitable[_T]]) -> _T:
        """What Redis says.

        Raises:
            _Away: Nothing, or that it cannot.
        """
        if self._is_away and time.monotonic() < self._asked_again_at:
            raise _Away
        try:
            async with asyncio.timeout(self._timeout_s):
                said = await command()
        except Exception as error:
            module = type(error).__module__
            if not isinstance(error, OSError) and not module.startswith(_CLIENTS):
                raise  # TimeoutError is an OSError
            self._asked_again_at = time.monotonic() + self._retry_s
            if not self._is_away:
                self._is_away = True
                logging.warning(f"{self._what}: redis does not serve: {error!r}")
            raise _Away from None
        if self._is_away:
            self._is_away = False
            logging.warning(f"{self._what}: redis serves again")
        return said

    def refusal(self) -> ServiceUnavailable:
        """The response while Redis is away."""
        seconds = str(max(1, round(self._retry_s)))
        return ServiceUnavailable(
            f"the {self._what} are not available; try again later", {"retry-after": seconds}
        )


def _client_of(url: str) -> object:
    try:
        redis: Any = import_module("redis.asyncio")
    except ModuleNotFoundError:
        raise ConfigError("redis-py is not installed: pip install citius[redis]") from None
    return redis.Redis.from_url(url)


class RedisStore:
    """Sessions in Redis, for all workers and machines.

    While Redis is away, requests with a session get 503; with ``when_down="empty"`` those that only read
    their session find it empty. A change of a session, or its end, is never pretended: it gets 503.

    Args:
        client: A ``citius.redis.Redis``, a ``redis.asyncio.Redis``, or what has its ``get``, ``set`` and
            ``delete``.
        prefix: What its keys begin with.
        when_down: What a request gets whose session cannot be read.
        timeout_s: Seconds that a request waits for Redis.
        retry_s: Seconds until a Redis that did not respond is asked again.
    """

    def __init__(
        self,
        client: object,
        prefix: str = "session:",
        *,
        when_down: Literal["refuse", "empty"] = "refuse",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._asker = _Asker("sessions", client, timeout_s, retry_s)
        self._client = self._asker.client
        self._prefix = prefix
        self._when_down = when_down

    @classmethod
    def from_url(
        cls,
        url: str,
        prefix: str = "session:",
        *,
        when_down: Literal["refuse", "empty"] = "refuse",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> RedisStore:
        """A store of the server at ``url``.

        Raises:
            ConfigError: redis-py is not installed.
        """
        client = _client_of(url)
        return cls(client, prefix, when_down=when_down, timeout_s=timeout_s, retry_s=retry_s)

    async def load(self, key: str) -> bytes | None:
        """What was saved, ``None`` if it is not there or has expired."""
        try:
            found = await self._asker.ask(lambda: self._client.get(self._prefix + key))
        except _Away:
            if self._when_down == "empty":
                return None
            raise self._asker.refusal() from None
        return cast("bytes | None", found)

    async def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds."""
        await self._change(lambda: self._client.set(self._prefix + key, data, ex=max_age_s))

    async def replace(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` in place of what was saved, unless that has been deleted meanwhile."""
        await self._change(
            lambda: self._client.set(self._prefix + key, data, ex=max_age_s, xx=True)
        )

    async def delete(self, key: str) -> None:
        """Forget it."""
        await self._change(lambda: self._client.delete(self._prefix + key))

    async def _change(self, command: Callable[[], Awaitable[object]]) -> None:
        try:
            await self._asker.ask(command)
        except _Away:
            raise self._asker.refusal() from None


class RedisBuckets:
    """Token buckets in Redis: ``RateLimit(…, store=…)`` counts over all machines, one command per request.

    Args:
        client: A ``citius.redis.Redis`` or a ``redis.asyncio.Redis``.
        prefix: What its keys begin with.
        when_down: What requests get while Redis is away: they are not limited, or get 503.
        timeout_s: Seconds that a request waits for Redis.
        retry_s: Seconds until a Redis that did not respond is asked again.
    """

    def __init__(
        self,
        client: object,
        prefix: str = "rate:",
        *,
        when_down: Literal["allow", "refuse"] = "allow",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._asker = _Asker("rate limits", client, timeout_s, retry_s)
        self._prefix = prefix
        self._when_down = when_down
        self._script: Any = None

    @classmethod
    def from_url(
        cls,
        url: str,
        prefix: str = "rate:",
        *,
        when_down: Literal["allow", "refuse"] = "allow",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> RedisBuckets:
        """Buckets in the server at ``url``.

        Raises:
            ConfigError: redis-py is not installed.
        """
        client = _client_of(url)
        return cls(client, prefix, when_down=when_down, timeout_s=timeout_s, retry_s=retry_s)

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
        if self._script is None:
            self._script = self._asker.client.register_script(_TAKE)
        interval_us = max(1, round(interval_ns / _NS_PER_US))
        name = self._prefix.encode() + key
        try:
            allowed, left, retry_us, full_us = await self._asker.ask(
                lambda: self._script(keys=[name], args=[interval_us, burst])
            )
        except _Away:
            if self._when_down == "allow":
                return None
            raise self._asker.refusal() from None
        return bool(allowed), left, retry_us * _NS_PER_US, full_us * _NS_PER_US
