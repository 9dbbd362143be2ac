"""Nothing of an engine is kept by what is cancelled at any await (hostile 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from cancelling import at_every_await
from citius.cluster import Cluster
from engines_rig import Redis
from redis_rig import needs_redis

Use = Callable[[Cluster], Coroutine[Any, Any, None]]


async def lock(cluster: Cluster) -> None:
    async with cluster.lock("day").hold(wait_s=10), cluster.lock("hour").hold(wait_s=10):
        await asyncio.sleep(0)


async def cache(cluster: Cluster) -> None:
    async def make() -> str:
        await asyncio.sleep(0)
        return "made"

    values = cluster.cache("values", type=str, flight_s=60)
    await values.get_or_make("key", make, tags=["tag"])
    await values.invalidate("tag")
    await values.delete("key")


async def failing(cluster: Cluster) -> None:
    async def make() -> str:
        await asyncio.sleep(0)
        raise ValueError("no value")

    with pytest.raises(ValueError, match="no value"):
        await cluster.cache("values", type=str, flight_s=60).get_or_make("other", make)


async def presence(cluster: Cluster) -> None:
    async with cluster.presence("lobby", ttl_s=60).enter("me"):
        await asyncio.sleep(0)


async def check(cluster: Cluster) -> None:
    """All of it can be had at once."""

    async def make() -> str:
        return "made"

    await lock(cluster)
    values = cluster.cache("values", type=str, flight_s=60)
    for key in ("key", "other"):
        assert await values.get_or_make(key, make) == "made"
        await values.delete(key)
    assert await cluster.presence("lobby").members() == {}


@pytest.fixture(params=["redis", "shared"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str | None]:
    if request.param == "shared":
        yield None
        return
    redis = Redis(tmp_path / "redis")
    yield redis.url
    redis.close()


@needs_redis
@pytest.mark.parametrize("use", [lock, cache, failing, presence])
def test_nothing_is_kept(url: str | None, use: Use) -> None:
    async def steps() -> None:
        cluster = Cluster(url)
        await cluster.start(lambda share: None)
        try:
            await check(cluster)
            async for where in at_every_await(lambda: use(cluster)):
                try:
                    async with asyncio.timeout(8):  # what is kept, is for longer
                        await check(cluster)
                except TimeoutError:
                    pytest.fail(f"something is kept behind {where}")
        finally:
            await cluster.stop()

    asyncio.run(steps())
