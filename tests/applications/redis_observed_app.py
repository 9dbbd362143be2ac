"""A server whose commands are measured; the URL is in the variable REDIS."""

# pyright: basic

import asyncio
import os
from contextlib import asynccontextmanager

from citius import App
from citius.redis import ClientCache, Redis, ServerError, gather

redis = Redis(os.environ["REDIS"], name="shop", client_name="observed")
cached = Redis(os.environ["REDIS"], name="cached", cache=ClientCache())


@asynccontextmanager
async def lifespan(app: App):
    async with redis, cached:
        yield


app = App(lifespan=lifespan)


@app.get("/add/{a}")
async def add(a: int) -> int:
    return await redis.incr("total", a)


@app.get("/many")
async def many() -> list:
    async with redis.transaction() as tx:
        first, second = tx.get("secret"), tx.incr("n")
    script = redis.register_script("return 7")
    return [await first, await second, await script(), *await gather(redis.ping(), redis.ping())]


@app.get("/wrong")
async def wrong() -> str:
    try:
        await redis.lpush("total", "secret")
    except ServerError as error:
        return error.code
    return ""


@app.get("/cached")
async def read() -> list:
    return [await cached.get("k"), await cached.get("k")]


@app.get("/left")
async def left() -> str:
    try:
        await asyncio.wait_for(redis.blpop("none"), 0.01)
    except TimeoutError:
        return "left"
    return ""
