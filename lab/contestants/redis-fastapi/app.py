"""A record from Redis on FastAPI and redis-py, as their documentation writes services."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgpack
from fastapi import FastAPI
from pydantic import BaseModel
from redis.asyncio import Redis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Record(BaseModel):
    id: int
    name: str
    description: str
    type: str
    count: int
    created_at: float


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    global redis
    async with Redis.from_url(os.environ["REDIS_URL"]) as redis:
        yield


redis: Redis
app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.get("/cached/{id}")
async def cached(id: int) -> Record | None:
    found = await redis.get(f"record:{id}")
    return None if found is None else Record(**msgpack.unpackb(found))
