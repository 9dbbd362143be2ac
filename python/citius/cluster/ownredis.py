"""``citius.redis`` as the cluster's client of Redis.

Commands go over the client's own connections, beside those of handlers. All subscriptions share one of its
connections, which it makes again by itself; when messages may have been missed the subscriber ends, and its
log reads them. Tests: tests/cluster/test_redis_rooms.py, tests/cluster/test_servers.py.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from citius.cluster.byloop import ByLoop
from citius.cluster.engines import EngineAway, cancel, without_credentials
from citius.cluster.patience import Patience
from citius.cluster.redisclient import NoScript, Refusal, checked
from citius.errors import ConfigError
from citius.process import reactors
from citius.redis.client import Redis
from citius.redis.errors import ConnectionLost, NotReady, RedisError, ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from citius.cluster.redisclient import Argument
    from citius.redis.subscriptions import Message, Subscription

TIMEOUT_S: Final = 2.0
"""How long connecting, and a pipeline, may take. Origin: ten times a round trip of 200 ms."""

_PORTION: Final = 500
"""Keys that are deleted at once where all that match a pattern are."""

_QUEUE_MAX: Final = 100_000
"""Messages that wait for the log's next turn. Exceeded: the log reads what it has missed from the stream."""


class OwnRedis:
    """A client of ``citius.redis`` as a :class:`RedisClient`; one of a cluster of nodes keeps no order.

    Args:
        client: The client. Its replies have to be bytes.
        is_opened_here: It is opened when it is first used, and closed by ``close``; otherwise the application
            does both.
        is_alone: The loops of other reactors have clients of their own.
        timeout_s: How long connecting, and a pipeline, may take.

    Raises:
        ConfigError: The client decodes replies.
    """

    def __init__(
        self,
        client: Redis[bytes],
        *,
        is_opened_here: bool = False,
        is_alone: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if client.decode_responses:
            raise ConfigError(
                "a Redis(decode_responses=True) cannot carry what a cluster keeps, which is no text: give it "
                "a client of its own"
            )
        self.client = client
        self._is_opened_here, self._is_alone = is_opened_here, is_alone
        self._timeout_s = timeout_s
        self._opening: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        """Loops of several threads may open it."""

    async def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The replies to several commands."""
        return await self.bounded(self._pipeline(commands))

    async def _pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        await self._ready()
        calls = [self.client.execute(*one, as_=bytes) for one in commands]
        for call in calls:
            call.start()
        replies: list[Any] = []
        away: Exception | None = None
        for call in calls:
            try:
                replies.append(await call)
            except NotReady as error:
                away = away or error
            except ServerError as error:
                kind = NoScript if error.code == "NOSCRIPT" else Refusal
                replies.append(kind(without_credentials(error)))
            except (RedisError, OSError) as error:
                away = away or error
        if away is not None:
            raise away
        return replies

    async def subscriber(self) -> OwnSubscriber:
        """A connection for what is published."""
        return OwnSubscriber(self)

    async def connect(self) -> None:
        """Open the client, if that is to be done here and has not been.

        Raises:
            EngineAway: It cannot, or not in time; it is tried again when the client is used.
        """
        await self.bounded(self.open())

    async def open(self) -> None:
        """Open the client, if that is to be done here and has not been."""
        if not self._is_opened_here or self.client.is_open:
            return
        with self._lock:
            opening = self._opening
            if opening is None and not self.client.is_open:
                opening = self._opening = asyncio.create_task(self._open())
                opening.add_done_callback(self._opened)
        if opening is None:
            return
        if opening.get_loop() is not asyncio.get_running_loop():
            raise ConnectionLost("another thread is connecting")
        # It goes on when the one that waits for it is cancelled: others may wait, too.
        await asyncio.shield(opening)

    async def _open(self) -> None:
        await (self.client.open_alone() if self._is_alone else self.client.open())

    async def _ready(self) -> None:
        """Open the client, and fail at once while it cannot connect: a command would wait for that."""
        await self.open()
        if (why := self.client.unreachable) is not None:
            raise ConnectionLost(str(why))

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # those that wait for it have it

    async def close(self) -> None:
        """Let go of all connections, if they were opened here."""
        opening = self._opening
        if opening is not None and opening.get_loop() is asyncio.get_running_loop():
            await cancel([opening])
        if self._is_opened_here:
            await self.client.close()

    async def bounded(self, work: Awaitable[Any]) -> Any:
        """What work returns.

        Raises:
            EngineAway: It has failed, or taken too long.
        """
        try:
            async with Patience(self._timeout_s):
                return await work
        except (RedisError, OSError) as error:  # TimeoutError is an OSError
            said = without_credentials(f"{type(error).__name__}: {error}")
            raise EngineAway(f"redis: {said}") from None

    async def delete_all(self, pattern: str) -> None:
        """Delete the keys that match a pattern, on all nodes of a cluster.

        Raises:
            EngineAway: It has failed; some may be gone.
        """
        await self.connect()
        names: list[bytes] = []
        try:
            async for name in self.client.scan(match=pattern, count=_PORTION):
                names.append(name)
                if len(names) == _PORTION:
                    await self._delete(names)
        except (RedisError, OSError) as error:
            raise EngineAway(f"redis: {without_credentials(error)}") from None
        await self._delete(names)

    async def _delete(self, names: list[bytes]) -> None:
        # One command for each: they may be on several nodes.
        checked(await self.pipeline([["UNLINK", name] for name in names]))
        names.clear()

    # --- what a store of sessions calls ---------------------------------------------------------------

    async def get(self, key: str) -> bytes | None:
        """The value of a key."""
        await self._ready()
        return await self.client.get(key)

    async def set(self, key: str, value: bytes, *, ex: int, xx: bool = False) -> object:
        """Set a key for so many seconds; ``xx``: if it is there."""
        await self._ready()
        return await self.client.set(key, value, ex=ex, xx=xx)

    async def delete(self, key: str) -> object:
        """Delete a key."""
        await self._ready()
        return await self.client.delete(key)


class RedisByLoop:
    """A client of ``citius.redis`` for each event loop that asks, as a :class:`RedisClient`.

    A connection belongs to the loop that reads it, and a worker may have a loop in each of several threads.

    Args:
        url: As for ``citius.redis.Redis``.
        timeout_s: How long connecting, and a pipeline, may take.

    Raises:
        ConfigError: The URL is wrong.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        # A function, so that `vars` does not show the password of the URL.
        self._make: Callable[[], Redis[bytes]] = lambda: Redis(
            url, timeout_s=timeout_s, connect_timeout_s=timeout_s, cluster=False
        )
        self._make()  # a URL that is wrong ends the start
        self._clients = ByLoop(
            lambda: OwnRedis(self._make(), is_opened_here=True, is_alone=True, timeout_s=timeout_s)
        )

    def here(self) -> OwnRedis:
        """The client of the running loop."""
        return self._clients.here()

    async def connect(self) -> None:
        """Connect on the running loop, and on those of the reactors that are started from now on.

        Raises:
            EngineAway: It cannot, or not in time; it is tried again when the client is used.
        """
        reactors.unshare(self)
        reactors.share(self)
        await self.here().connect()

    async def open_on_loop(self) -> None:
        """Connect on the running loop."""
        with suppress(EngineAway):  # it is tried again when the client is used
            await self.here().connect()

    async def close_on_loop(self) -> None:
        """Close the connections of the running loop."""
        own = self._clients.pop_here()
        if own is not None:
            await own.close()

    async def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The replies to several commands."""
        return await self.here().pipeline(commands)

    async def subscriber(self) -> OwnSubscriber:
        """A connection for what is published."""
        return await self.here().subscriber()

    async def get(self, key: str) -> bytes | None:
        """The value of a key."""
        return await self.here().get(key)

    async def set(self, key: str, value: bytes, *, ex: int, xx: bool = False) -> object:
        """Set a key for so many seconds; ``xx``: if it is there."""
        return await self.here().set(key, value, ex=ex, xx=xx)

    async def delete(self, key: str) -> object:
        """Delete a key."""
        return await self.here().delete(key)

    async def delete_all(self, pattern: str) -> None:
        """Delete the keys that match a pattern."""
        await self.here().delete_all(pattern)

    async def close(self) -> None:
        """Close the connections of the running loop; those of a reactor's loop end with the reactor."""
        reactors.unshare(self)
        await self.close_on_loop()


class OwnSubscriber:
    """Subscriptions of a client, as one :class:`RedisSubscriber`.

    Its sign of life is a message on a channel of its own, which takes the way of all others.
    """

    def __init__(self, owner: OwnRedis) -> None:
        self._owner = owner
        self._alive = f"citius:alive:{secrets.token_hex(8)}"
        self._heard: deque[tuple[bytes, bytes]] = deque()
        self._news = asyncio.Event()
        self._end: str | None = None
        """Why it has ended."""
        self._subscriptions: list[Subscription[bytes]] = []
        self._readers: list[asyncio.Task[None]] = []

    async def subscribe(self, channels: Sequence[bytes]) -> None:
        """Receive what is published on these channels too."""
        names = [channel.decode() for channel in channels]
        if not self._readers:
            names.append(self._alive)
        await self._owner.bounded(self._subscribe(names))

    async def _subscribe(self, names: list[str]) -> None:
        await self._owner.open()
        subscription = self._owner.client.subscribe(
            *names, queue_max=_QUEUE_MAX, on_gap=self._on_gap
        )
        await subscription.__aenter__()
        self._subscriptions.append(subscription)
        self._readers.append(asyncio.create_task(self._read(subscription)))

    async def ping(self) -> None:
        """Ask for a sign of life."""
        await self._owner.pipeline([["PUBLISH", self._alive, b""]])

    async def next(self, wait_s: float) -> tuple[bytes, bytes] | None:
        """The next channel and message; ``None`` if there was none for so long."""
        if not self._heard and self._end is None:
            self._news.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                return None
        if self._end is not None:
            raise EngineAway(f"redis: {self._end}")
        return self._heard.popleft()

    async def close(self) -> None:
        """Let go of the subscriptions."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for subscription in self._subscriptions:
            await subscription.__aexit__(None, None, None)
        self._readers.clear()
        self._subscriptions.clear()

    async def _read(self, subscription: Subscription[bytes]) -> None:
        try:
            async for message in subscription:
                self._take(message)
        except RedisError as error:
            self._ended(str(error))

    def _take(self, message: Message[bytes]) -> None:
        is_ours = message.channel == self._alive
        self._heard.append((b"", b"") if is_ours else (message.channel.encode(), message.data))
        self._news.set()

    def _on_gap(self) -> None:
        self._ended("the subscription was interrupted")

    def _ended(self, why: str) -> None:
        self._end = why
        self._news.set()
