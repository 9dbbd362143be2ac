"""Sessions and rate limits in Redis by citius.redis, with a Redis that stops, hangs and comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from citius import App, Request
from citius.redis import Redis
from citius.testing import AsyncClient
from citius.web.middleware import RateLimit, RedisBuckets, RedisStore, StoredSessions, session
from redis_rig import WAIT_S, Server


def run(app: App, redis: Redis[bytes], steps: Any) -> None:
    async def main() -> None:
        async with redis, AsyncClient(app) as client:
            await steps(client)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.parametrize(("when_down", "status"), [("allow", 200), ("refuse", 503)])
def test_rate_limits(own_server: Server, when_down: Any, status: int) -> None:
    redis = Redis(own_server.url, timeout_s=1)
    app = App()
    # Each request asks.
    buckets = RedisBuckets(redis, when_down=when_down, retry_s=0.0, sync_s=0.0)
    app.middleware(RateLimit(3, 60, store=buckets))

    @app.get("/")
    async def index() -> str:
        return "served"

    async def steps(client: AsyncClient) -> None:
        statuses = [(await client.get("/")).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        await redis.script_flush()
        assert (await client.get("/")).status_code == 429
        await asyncio.to_thread(own_server.stop)
        assert (await client.get("/")).status_code == status
        await asyncio.to_thread(own_server.start)
        while (await client.get("/")).status_code != 429:
            pass

    run(app, redis, steps)


@pytest.mark.parametrize(("when_down", "status"), [("refuse", 503), ("empty", 200)])
def test_sessions(own_server: Server, when_down: Any, status: int) -> None:
    redis = Redis(own_server.url, timeout_s=1)
    app = App()
    app.middleware(StoredSessions(RedisStore(redis, when_down=when_down, retry_s=0.0)))

    @app.get("/read")
    async def read(request: Request) -> Any:
        return dict(session(request))

    @app.post("/count")
    async def count(request: Request) -> int:
        session(request)["n"] = session(request).get("n", 0) + 1
        return session(request)["n"]

    @app.post("/logout")
    async def logout(request: Request) -> None:
        session(request).clear()

    async def steps(client: AsyncClient) -> None:
        assert (await client.post("/count")).json() == 1
        assert (await client.post("/count")).json() == 2
        own_server.pause()
        assert (await client.get("/read")).status_code == status
        assert (await client.post("/count")).status_code == 503
        own_server.resume()
        while (await client.get("/read")).status_code != 200:
            pass
        assert (await client.get("/read")).json()["n"] >= 2
        await client.post("/logout")
        assert (await client.get("/read")).json() == {}
        # A write that got no reply may have been made: of the session that began while Redis did not serve.
        assert len(await redis.keys("session:*")) <= (when_down == "empty")

    run(app, redis, steps)
