"""``Cluster``: which engines an application uses, said once; the seams are made from it.

| URL | rooms, events | sessions, limits, cache, presence, locks |
|---|---|---|
| none | all workers of this machine | all workers of this machine |
| ``memory://`` | this process | this process |
| ``redis://``, ``rediss://``, ``unix://``, ``redis+sentinel://`` | all machines | all machines |
| ``nats://``, ``tls://`` (``messages`` only) | all machines | - |

Engines are connected to when the application starts, on its event loop. Tests: ``tests/cluster/``.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, overload
from urllib.parse import quote, urlsplit

from citius.cluster.engines import EngineAway, check_lasts, without_credentials
from citius.cluster.outage import Asker, Health, all_given_back
from citius.cluster.redisclient import is_own, is_redis
from citius.cluster.stats import Stats
from citius.errors import ConfigError
from citius.unknown_options import known_options, with_known_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.cluster.cache import Cache
    from citius.cluster.engines import MessageLog
    from citius.cluster.locks import Lock, LockStore
    from citius.cluster.ownredis import OwnRedis, RedisByLoop
    from citius.cluster.presence import Presence
    from citius.cluster.redisbuckets import RedisBuckets
    from citius.cluster.redissessions import RedisStore
    from citius.cluster.rooms import ClusterRooms
    from citius.cluster.runstores import RunStore
    from citius.cluster.sessionstores import MemoryStore, SharedStore
    from citius.redis.client import Redis

_T = TypeVar("_T")

START_WAIT_S: Final = 5.0
"""How long a worker waits for the engine when it starts. It serves without one, too."""

_NATS: Final = {"nats", "tls"}
_SHARED, _MEMORY = "workers", "memory"


@known_options
class Cluster:
    """The engines of an application.

    Args:
        url: Where sessions, limits, cached values, presence and locks are, and messages unless ``messages``
            says otherwise. Without it everything is on this machine. A ``citius.redis.Redis`` may take the
            place of a URL: handlers use the same one, and it is opened and closed with the application.
        messages: Where messages of rooms and broadcasts go: one URL of Redis or NATS, or several of Redis
            between which rooms are divided by their names.
        application: Part of the names of all keys and channels: applications of one engine do not see
            each other's.
        secret: A key that all nodes share: messages are authenticated by it. Without one, any program
            that can write to the engine can send to rooms.
        when_down: What becomes of messages while the engine is away: they wait for it (``"queue"``), or are
            also delivered on the node that sends them (``"local"``).
        queue_bytes_max: Bytes that may wait for the engine; messages beyond are lost, and counted.
        keep: Records of each room that the engine keeps, about, for nodes that were away.
        keep_s: How long it keeps a room that nothing is sent to.
        start_wait_s: How long a worker waits for the engine when it starts.

    Raises:
        ConfigError: A URL is wrong, or the package for its engine is not installed.
    """

    def __init__(
        self,
        url: str | Redis[bytes] | None = None,
        *,
        messages: str | Sequence[str] | None = None,
        application: str = "app",
        secret: str | bytes | None = None,
        when_down: Literal["queue", "local"] = "queue",
        queue_bytes_max: int = 16 * 1024 * 1024,
        keep: int = 1000,
        keep_s: float = 3600.0,
        start_wait_s: float = START_WAIT_S,
    ) -> None:
        if not application or any(c in application for c in ":{}* .>\r\n"):
            raise ConfigError(
                f"application={application!r}: expected a name without : {{ }} * . > and spaces"
            )
        check_lasts("Cluster", "keep_s", keep_s)
        self.application = application
        self.stats = Stats()
        """What this node has sent and received, and what went wrong."""
        given = url if is_own(url) else None
        own_url = "" if given is not None else cast("str", url or "")
        self._kind = _kind(own_url) if given is None else "redis"
        self._secret = secret
        self._when_down: Literal["queue", "local"] = when_down
        self._queue_bytes_max = queue_bytes_max
        self._keep, self._keep_s = keep, keep_s
        self._start_wait_s = start_wait_s
        self._redis: OwnRedis | RedisByLoop | None = None
        if self._kind == "redis":
            from citius.cluster.ownredis import OwnRedis, RedisByLoop

            self._redis = (
                RedisByLoop(own_url) if given is None else OwnRedis(given, is_opened_here=True)
            )
        self._rooms: ClusterRooms | None = None
        self._presences: list[Presence] = []
        self._buckets: list[RedisBuckets] = []
        self._locks: LockStore | None = None
        self._making_locks = threading.Lock()
        self._health = Health()
        """What is known of the Redis of all seams but messages."""
        self._lock_asker = Asker("locks", stats=self.stats, health=self._health)
        self._is_over_own = given is not None and messages is None
        """Whether messages go over the client that was given."""
        if messages is None:
            messages = [own_url] if self._kind == "redis" and given is None else []
        self._messages = [messages] if isinstance(messages, str) else list(messages)
        self._check_messages()

    def _check_messages(self) -> None:
        schemes = {urlsplit(url).scheme for url in self._messages}
        is_nats = bool(schemes) and schemes <= _NATS
        if is_nats:
            from citius.cluster.natslog import check_installed

            check_installed()
        elif not all(is_redis(url) for url in self._messages):
            urls = ", ".join(map(without_credentials, self._messages))
            raise ConfigError(
                f"messages={urls}: expected redis://, rediss:// or unix://, one or several, or "
                "one of nats:// and tls://"
            )
        self._is_nats = is_nats
        if not is_nats and not self._is_over_own:
            self._log()  # a URL that is wrong ends the start

    # --- what the application calls ------------------------------------------------------------------

    @property
    def has_messages(self) -> bool:
        """Whether messages of rooms and broadcasts go over an engine."""
        return bool(self._messages) or self._is_over_own

    @property
    def is_connected(self) -> bool:
        """Whether the engine for messages is there and this node has caught up; for readiness checks."""
        return self._rooms is not None and self._rooms.is_connected

    async def start(self, share: Callable[[Callable[[str, Any], object]], None]) -> None:
        """Connect, for the application whose ``share`` this is."""
        _clusters.add(self)
        if self._redis is not None:
            with suppress(EngineAway, TimeoutError):  # it is tried again when it is used
                async with asyncio.timeout(self._start_wait_s):
                    await self._redis.connect()
        if not self.has_messages:
            return
        from citius.cluster.records import key_of
        from citius.cluster.rooms import ClusterRooms

        key = key_of(self._secret, self.application)
        self._rooms = ClusterRooms(
            self._log(), key, self.stats, when_down=self._when_down,
            queue_bytes_max=self._queue_bytes_max,
        )  # fmt: skip
        share(self._rooms.share)
        await self._rooms.start(self._start_wait_s)

    async def stop(self) -> None:
        """Hand over what is queued, take this node's members away, and let go of engines."""
        _clusters.discard(self)
        await asyncio.gather(*(one.stop() for one in (*self._presences, *self._buckets)))
        rooms, self._rooms = self._rooms, None
        if rooms is not None:
            await rooms.stop()
        await all_given_back()
        if self._redis is not None:
            await self._redis.close()

    # --- the seams -----------------------------------------------------------------------------------

    @with_known_options
    def sessions(
        self, *, when_down: Literal["refuse", "empty"] = "refuse"
    ) -> RedisStore | SharedStore | MemoryStore:
        """A store for ``StoredSessions``."""
        from citius.cluster.sessionstores import MemoryStore, SharedStore

        if self._kind == _MEMORY:
            return MemoryStore()
        if self._kind == _SHARED:
            return SharedStore(prefix=self._prefix("session") + ":")
        from citius.cluster.redissessions import RedisStore

        prefix = self._prefix("session") + ":"
        return RedisStore(
            self._client(), prefix, when_down=when_down, stats=self.stats, health=self._health
        )

    @with_known_options
    def buckets(
        self, *, when_down: Literal["local", "allow", "refuse"] = "local"
    ) -> RedisBuckets | None:
        """A store for ``RateLimit``; ``None`` is its own, of all workers of this machine."""
        if self._kind != "redis":
            return None
        from citius.cluster.redisbuckets import RedisBuckets

        prefix = self._prefix("rate") + ":"
        self._buckets.append(
            RedisBuckets(
                self._client(), prefix, when_down=when_down, stats=self.stats, health=self._health
            )
        )
        return self._buckets[-1]

    @overload
    def cache(
        self,
        name: str,
        *,
        type: type[_T],
        ttl_s: float = 60.0,
        when_down: Literal["make", "refuse"] = "make",
        flight_s: float = 10.0,
    ) -> Cache[_T]: ...
    @overload
    def cache(
        self,
        name: str,
        *,
        ttl_s: float = 60.0,
        when_down: Literal["make", "refuse"] = "make",
        flight_s: float = 10.0,
    ) -> Cache[Any]: ...
    @with_known_options
    def cache(
        self,
        name: str,
        *,
        type: Any = None,
        ttl_s: float = 60.0,
        when_down: Literal["make", "refuse"] = "make",
        flight_s: float = 10.0,
    ) -> Cache[Any]:
        """A cache; see ``Cache``."""
        from citius.cluster import cachestores
        from citius.cluster.cache import Cache

        # Quoted, so that a name with colons is not that of another cache with one of its keys.
        prefix = self._prefix("cache", quote(name, safe=""))
        store: Any
        if self._kind == _MEMORY:
            store = cachestores.MemoryCache()
        elif self._kind == _SHARED:
            from citius.process.sharedtable import shared_table

            store = cachestores.SharedCache(shared_table("cache"), prefix)
        else:
            store = cachestores.RedisCache(self._client(), prefix)
        return Cache(
            store, type=type, ttl_s=ttl_s, when_down=when_down, flight_s=flight_s,
            stats=self.stats, health=self._health,
        )  # fmt: skip

    @with_known_options
    def presence(
        self, topic: str, *, ttl_s: float = 15.0, when_down: Literal["last", "refuse"] = "last"
    ) -> Presence:
        """Who is there; see ``Presence``."""
        from citius.cluster import presencestores
        from citius.cluster.presence import Presence

        store: Any
        if self._kind == _MEMORY:
            store = presencestores.MemoryPresence()
        elif self._kind == _SHARED:
            from citius.process.sharedtable import shared_table

            store = presencestores.SharedPresence(
                shared_table("presence"), self._prefix("presence")
            )
        else:
            store = presencestores.RedisPresence(self._client(), self._prefix("presence"))
        made = Presence(
            store, topic, ttl_s=ttl_s, when_down=when_down, stats=self.stats, health=self._health
        )
        self._presences.append(made)
        return made

    def runs(self) -> RunStore:
        """Where the runs of an application are kept, which uses it by itself (``App.run``)."""
        from citius.cluster.runstores import RedisRuns, TableRuns

        if self._kind == _MEMORY:
            from citius.process.sharedmemory import TABLE_BYTES
            from citius.process.sharedtable import SharedTable

            return TableRuns(SharedTable.alone(TABLE_BYTES))
        if self._kind == _SHARED:
            from citius.process.sharedtable import shared_table

            return TableRuns(shared_table("runs"), self._prefix("run") + ":")
        return RedisRuns(self._client(), self._prefix("runs"))

    @with_known_options
    def lock(self, name: str, *, ttl_s: float = 30.0) -> Lock:
        """A lock; see ``Lock``."""
        from citius.cluster.locks import Lock

        with self._making_locks:
            # One for all: they know which names this process holds.
            if self._locks is None:
                self._locks = self._lock_store()
        return Lock(self._locks, name, ttl_s=ttl_s, asker=self._lock_asker)

    def _lock_store(self) -> LockStore:
        from citius.cluster.locks import MemoryLocks, RedisLocks, SharedLocks

        if self._kind == _MEMORY:
            return MemoryLocks()
        if self._kind == _SHARED:
            from citius.process.sharedtable import shared_table

            return SharedLocks(shared_table("presence"), self._prefix("lock"))
        return RedisLocks(self._client(), self._prefix())

    # --- engines -------------------------------------------------------------------------------------

    def _client(self) -> OwnRedis | RedisByLoop:
        assert self._redis is not None, "the constructor has made it"
        return self._redis

    def _prefix(self, *parts: str) -> str:
        return ":".join(("citius", self.application, *parts))

    def _log(self) -> MessageLog:
        """The engine for messages, made anew for each start."""
        if self._is_nats:
            from citius.cluster.natslog import NatsLog

            return NatsLog(self._messages, self.application, keep=self._keep, keep_s=self._keep_s)
        from citius.cluster.ownredis import RedisByLoop
        from citius.cluster.redislog import RedisLog
        from citius.cluster.shardedlog import ShardedLog

        if self._is_over_own:
            return RedisLog(self._client(), self._prefix(), keep=self._keep, keep_s=self._keep_s)
        logs = [
            RedisLog(RedisByLoop(url), self._prefix(), keep=self._keep, keep_s=self._keep_s)
            for url in self._messages
        ]
        return logs[0] if len(logs) == 1 else ShardedLog(logs, self._messages)


def _kind(url: str | None) -> str:
    if not url:
        return _SHARED
    if is_redis(url):
        return "redis"
    scheme = urlsplit(url).scheme
    if scheme in (_MEMORY, _SHARED):
        return scheme
    if scheme in _NATS:
        raise ConfigError(
            "NATS carries messages only; give it as messages=, and for sessions, limits, caches, "
            'presence and locks a Redis: Cluster("redis://…", messages="nats://…")'
        )
    raise ConfigError(
        f"{without_credentials(url)}: expected redis://, rediss://, unix://, workers:// or memory://"
    )


_clusters: set[Cluster] = set()


def rows_in_process() -> list[int] | None:
    """The counters of the clusters that have started here, added up, for metrics."""
    rows = [cluster.stats.row() for cluster in _clusters]
    return [sum(column) for column in zip(*rows, strict=True)] if rows else None
