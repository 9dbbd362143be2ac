"""A record from Redis on redis-py, in the native API of Citius."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from citius import App
from redis.asyncio import Redis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Record(msgspec.Struct):
    id: int
    name: str
    description: str
    type: str
    count: int
    created_at: float


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    global redis
    async with Redis.from_url(os.environ["REDIS_URL"]) as redis:
        yield


redis: Redis
app = App(lifespan=lifespan)
decode = msgspec.msgpack.Decoder(Record).decode


@app.get("/cached/{id}")
async def cached(id: int) -> Record | None:
    found = await redis.get(f"record:{id}")
    return None if found is None else decode(found)
