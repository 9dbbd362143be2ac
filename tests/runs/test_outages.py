"""What runs keep while their store is away, and when it is back."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from citius import App, Request
from citius.cluster.engines import EngineAway
from citius.cluster.ownredis import RedisByLoop
from citius.cluster.runstores import LEASE_S, Page, RedisRuns, RunRecord
from citius.testing import AsyncClient
from engines_rig import Redis

needs_redis = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server")


def user(request: Request) -> str:
    return request.header("x-user") or "ann"


def shop() -> App:
    app = App()

    @app.run("/counts", owner=user, owner_runs_max=1)
    async def count(n: int = 3) -> AsyncIterator[str]:
        for number in range(n):
            yield str(number)

    return app


class Away:
    """The methods of a store that do what they are told, and whose replies are lost."""

    def __init__(self, store: Any, *names: str) -> None:
        self._store = store
        self._names = names
        for name in names:
            setattr(store, name, self._losing(getattr(store, name)))

    @staticmethod
    def _losing(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def lose(*arguments: Any) -> Any:
            await method(*arguments)
            raise EngineAway

        return lose

    def end(self) -> None:
        for name in self._names:
            delattr(self._store, name)


class Deaf(Away):
    """The methods of a store that does not hear what it is told."""

    @staticmethod
    def _losing(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def lose(*arguments: Any) -> Any:
            raise EngineAway

        return lose


async def events(client: AsyncClient, url: str) -> str:
    response = await client.get(url, headers={"accept": "text/event-stream"})
    assert response.status_code == 200, (response.status_code, response.text)
    return response.text


def test_a_key_whose_run_could_not_begin_is_free() -> None:
    """The claim was taken and its reply lost: later requests with the key got a run that is not there."""

    async def steps() -> None:
        app = shop()
        async with AsyncClient(app) as client:
            store = app.run_keeper.store
            away = Away(store, "claim")
            key = {"idempotency-key": "k"}
            assert (await client.post("/counts", headers=key)).status_code == 503
            away.end()
            run = await client.post("/counts", headers=key)
            assert run.status_code == 202
            assert '{"state":"done"}' in await events(client, run.json()["url"])
            again = await client.post("/counts", headers=key)
            assert again.json()["url"] == run.json()["url"]

    asyncio.run(steps())


def test_a_run_that_could_not_begin_does_not_count_for_its_owner() -> None:
    """It could not be taken back either, and its owner got 429 for as long as a run may last."""

    async def steps() -> None:
        app = shop()
        async with AsyncClient(app) as client:
            store = app.run_keeper.store
            lost, deaf = Away(store, "reserve"), Deaf(store, "forget", "release")
            assert (await client.post("/counts")).status_code == 503
            lost.end()
            deaf.end()
            async with asyncio.timeout(20):
                while (run := await client.post("/counts")).status_code == 429:
                    await asyncio.sleep(0.02)  # until it is taken back
            assert run.status_code == 202
            assert '{"state":"done"}' in await events(client, run.json()["url"])

    asyncio.run(steps())


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path / "redis")
    yield made
    made.close()


@needs_redis
def test_a_worker_whose_lease_ended_while_redis_was_away_is_alive(redis: Redis) -> None:
    """Leases end while Redis stands still: who asked first then ended the runs of live workers."""

    async def steps() -> None:
        client = RedisByLoop(redis.url)
        store = RedisRuns(client, "runs")
        await store.renew("w")
        for _ in range(2):
            redis.cli("DEL", "runs:worker:{w}")  # as when it has ended
            assert await store.is_alive("w")
            await store.renew("w")
            assert redis.cli("EXISTS", "runs:doubted:{w}").strip() == "0"
        redis.cli("DEL", "runs:worker:{w}")
        async with asyncio.timeout(LEASE_S):
            while await store.is_alive("w"):
                await asyncio.sleep(0.05)  # a look at a condition
        # It is not doubted anew, so that those who ask seldom hear of it, too.
        assert not await store.is_alive("w")
        await store.renew("w")
        assert await store.is_alive("w")
        await client.close()

    asyncio.run(steps())


@needs_redis
def test_no_claim_is_taken_from_another_run(redis: Redis) -> None:
    async def steps() -> None:
        client = RedisByLoop(redis.url)
        store = RedisRuns(client, "runs")
        assert await store.claim("k", "one", 10) == "one"
        await store.unclaim("k", "two")
        assert await store.claim("k", "two", 10) == "one"
        await store.unclaim("k", "one")
        assert await store.claim("k", "two", 10) == "two"
        await client.close()

    asyncio.run(steps())


@needs_redis
def test_a_redis_that_goes_back_in_time_is_told_as_a_gap(redis: Redis) -> None:
    """Later events took the numbers of those that were lost, and readers waited for what had been sent."""

    async def steps() -> None:
        client = RedisByLoop(redis.url)
        store, keys = RedisRuns(client, "runs"), ("runs:run:{r}", "runs:events:{r}")
        record = RunRecord("w")

        async def append(*events: bytes) -> None:
            assert await store.append("r", record, events, 60)
            record.last += len(events)

        async def read(after: int) -> tuple[int, list[bytes]]:
            page = await store.read("r", after)
            assert isinstance(page, Page)
            return page.first, page.events

        def go_back() -> None:
            for key in keys:
                redis.cli("COPY", "old:" + key, key, "REPLACE")

        await store.create("r", record, 60)
        await append(b"1", b"2", b"3")
        for key in keys:
            redis.cli("COPY", key, "old:" + key)
        await append(b"4", b"5", b"6")
        go_back()
        await append(b"7", b"8")
        assert await read(6) == (7, [b"7", b"8"])
        assert await read(3) == await read(0) == (7, [b"7", b"8"])
        record.first = 8
        await append(b"9")
        assert await read(0) == (8, [b"8", b"9"])
        # What is asked again changes nothing.
        record.last -= 1
        await append(b"9")
        assert await read(0) == (8, [b"8", b"9"])
        go_back()
        assert await store.end("r", "done", b"end", 60, record.last)
        assert await read(9) == await read(2) == (10, [b"end"])
        found = await store.find("r")
        assert found is not None
        assert (found.state, found.first, found.last) == ("done", 10, 10)
        await client.close()

    asyncio.run(steps())
