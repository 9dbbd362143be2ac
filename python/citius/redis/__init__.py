"""Redis in the event loop that serves: no other thread, one write per turn, replies within a turn.

    from citius import App
    from citius.redis import Redis

    redis = Redis("redis://localhost")
    app = App(lifespan=redis.lifespan)

    @app.get("/items/{id}")
    async def item(id: int) -> Item | None:
        return await redis.get_msgpack(f"item:{id}", as_=Item)

On any other asyncio loop it works too, by callbacks of that loop; in threads, greenlets and goroutines the
same commands wait for themselves: ``redis.get("key").wait()``. ``docs/guides/redis.md`` says more.
"""

from __future__ import annotations

from citius.redis.caching import CacheStatistics, ClientCache
from citius.redis.calls import Call, gather
from citius.redis.client import Redis
from citius.redis.commands import Commands
from citius.redis.commands.scripting import Script
from citius.redis.commands.streams import Entry, Pending, PendingSummary
from citius.redis.errors import (
    BlockEnded,
    ClientClosed,
    CommandLost,
    ConnectionLost,
    CrossSlot,
    GroupExists,
    LoginRefused,
    NoGroup,
    NoPermission,
    NotReady,
    OutOfMemory,
    Overloaded,
    ProtocolError,
    ReadOnly,
    RedisError,
    ServerError,
    TimedOut,
    TlsFailed,
    WatchFailed,
    WrongType,
)
from citius.redis.sessions import Session
from citius.redis.subscriptions import Message, Subscription
from citius.redis.transactions import Transaction

__all__ = [
    "BlockEnded",
    "CacheStatistics",
    "Call",
    "ClientCache",
    "ClientClosed",
    "CommandLost",
    "Commands",
    "ConnectionLost",
    "CrossSlot",
    "Entry",
    "GroupExists",
    "LoginRefused",
    "Message",
    "NoGroup",
    "NoPermission",
    "NotReady",
    "OutOfMemory",
    "Overloaded",
    "Pending",
    "PendingSummary",
    "ProtocolError",
    "ReadOnly",
    "Redis",
    "RedisError",
    "Script",
    "ServerError",
    "Session",
    "Subscription",
    "TimedOut",
    "TlsFailed",
    "Transaction",
    "WatchFailed",
    "WrongType",
    "gather",
]
