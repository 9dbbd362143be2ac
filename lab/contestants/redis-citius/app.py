"""A record from Redis on Citius's own client."""

from __future__ import annotations

import os

import msgspec
from citius import App
from citius.redis import Redis

redis = Redis(os.environ["REDIS_URL"])
app = App(lifespan=redis.lifespan)


class Record(msgspec.Struct):
    id: int
    name: str
    description: str
    type: str
    count: int
    created_at: float


@app.get("/cached/{id}")
async def cached(id: int) -> Record | None:
    return await redis.get_msgpack(f"record:{id}", as_=Record)
