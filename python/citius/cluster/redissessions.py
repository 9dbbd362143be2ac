"""Sessions in Redis (or Valkey), for all workers of all machines.

The client is one of ``citius.redis``, or another with the same methods, such as redis-py's. Tests:
tests/middleware/test_redis.py, tests/redis/test_stores.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from citius.cluster.outage import RETRY_S, TIMEOUT_S, Asker, Away
from citius.cluster.sessionstores import Unreadable
from citius.unknown_options import known_options, with_known_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from citius.cluster.outage import Health
    from citius.cluster.stats import Stats


@known_options
class RedisStore:
    """Sessions in Redis, for all workers and machines.

    While Redis is away, requests with a session get 503; with ``when_down="empty"`` those that only read
    their session find it empty. A change of a session, or its end, is never pretended: it gets 503. A session
    that could not be read can be ended once Redis is back; another change of it gets 503 all the same, for it
    would take the place of what is there.

    Args:
        client: A ``citius.redis.Redis``, a ``redis.asyncio.Redis``, or what has its ``get``, ``set`` and
            ``delete``.
        prefix: What its keys begin with.
        when_down: What a request gets whose session cannot be read.
        timeout_s: Seconds that a request waits for Redis.
        retry_s: Seconds until a Redis that did not respond is asked again.
        stats: Where outages are counted.
        health: What is known of Redis, if others ask it, too.
    """

    def __init__(
        self,
        client: object,
        prefix: str = "session:",
        *,
        when_down: Literal["refuse", "empty"] = "refuse",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        stats: Stats | None = None,
        health: Health | None = None,
    ) -> None:
        self._asker = Asker("sessions", timeout_s, retry_s, stats=stats, health=health)
        self._client: Any = client
        self._is_own = False
        self._prefix = prefix
        self._when_down = when_down

    @classmethod
    @with_known_options
    def from_url(
        cls,
        url: str,
        prefix: str = "session:",
        *,
        when_down: Literal["refuse", "empty"] = "refuse",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
    ) -> RedisStore:
        """A store of the server at ``url``; its connections end with the process, or by ``close``.

        Raises:
            ConfigError: The URL is wrong.
        """
        from citius.cluster.ownredis import RedisByLoop

        client = RedisByLoop(url)
        made = cls(client, prefix, when_down=when_down, timeout_s=timeout_s, retry_s=retry_s)
        made._is_own = True
        return made

    async def load(self, key: str) -> bytes | Unreadable | None:
        """What was saved, ``None`` if it is not there or has expired."""
        try:
            found = await self._asker.ask(lambda: self._client.get(self._prefix + key))
        except Away:
            if self._when_down == "empty":
                return Unreadable(self._asker.refusal())
            raise self._asker.refusal() from None
        return cast("bytes | None", found)

    async def save(self, key: str, data: bytes, max_age_s: int) -> None:
        """Keep ``data`` for that many seconds."""
        await self._change(lambda: self._client.set(self._prefix + key, data, ex=max_age_s))

    async def replace(self, key: str, data: bytes, max_age_s: int) -> bool:
        """Keep ``data`` in place of what was saved; ``False`` if that has been deleted meanwhile."""
        done = await self._change(
            lambda: self._client.set(self._prefix + key, data, ex=max_age_s, xx=True)
        )
        return bool(done)

    async def delete(self, key: str) -> bool:
        """Forget it; ``False`` if it was not there."""
        return bool(await self._change(lambda: self._client.delete(self._prefix + key)))

    async def close(self) -> None:
        """Close the connections that ``from_url`` has made, on the running loop."""
        if self._is_own:
            await self._client.close()

    async def _change(self, command: Callable[[], Awaitable[object]]) -> object:
        try:
            return await self._asker.ask(command)
        except Away:
            raise self._asker.refusal() from None
