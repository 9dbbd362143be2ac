"""Several machines: rooms, events, sessions, limits, caches, presence and locks by way of existing engines.

    from citius import App
    from citius.cluster import Cluster

    cluster = Cluster("redis://redis.internal")
    app = App(cluster=cluster)
    lobby = app.room("lobby")              # one room on all machines
    pages = cluster.cache("pages")

``Cluster()`` alone has everything on this machine: the same code, without an engine. Names are imported
when they are first used. docs/guides/scaling.md has a section for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.cluster.cache import Cache
    from citius.cluster.cluster import Cluster
    from citius.cluster.engines import EngineAway, MessageLog
    from citius.cluster.locks import Held, Lock, LockLost, LockTaken
    from citius.cluster.presence import Presence
    from citius.cluster.redisbuckets import RedisBuckets
    from citius.cluster.redisclient import RedisClient
    from citius.cluster.redissessions import RedisStore
    from citius.cluster.sessionstores import MemoryStore, SharedStore
    from citius.cluster.stats import Stats

__all__ = [
    "Cache",
    "Cluster",
    "EngineAway",
    "Held",
    "Lock",
    "LockLost",
    "LockTaken",
    "MemoryStore",
    "MessageLog",
    "Presence",
    "RedisBuckets",
    "RedisClient",
    "RedisStore",
    "SharedStore",
    "Stats",
]

__getattr__, __dir__ = exports(
    "citius.cluster",
    {
        "cache": ["Cache"],
        "cluster": ["Cluster"],
        "engines": ["EngineAway", "MessageLog"],
        "locks": ["Held", "Lock", "LockLost", "LockTaken"],
        "presence": ["Presence"],
        "redisbuckets": ["RedisBuckets"],
        "redisclient": ["RedisClient"],
        "redissessions": ["RedisStore"],
        "sessionstores": ["MemoryStore", "SharedStore"],
        "stats": ["Stats"],
    },
)
