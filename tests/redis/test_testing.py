"""What users test with: a Redis for the session, empty for each test."""

from __future__ import annotations

import asyncio

import pytest
from citius import App
from citius.redis import Redis
from citius.redis.urls import parse
from citius.testing import Client
from citius.testing.redis import VARIABLE, NoRedis, database, emptied
from redis_rig import Server

redis = Redis("redis://nowhere.invalid?client_name=shop")
app = App(lifespan=redis.lifespan)


@app.post("/")
async def count() -> int:
    return await redis.incr("n")


def test_each_test_begins_with_nothing(citius_redis: str) -> None:
    for _ in range(2):
        with emptied(redis, citius_redis), Client(app) as client:
            assert client.post("/").json() == 1
            assert client.post("/").json() == 2
    assert str(redis.target) == "nowhere.invalid:6379"


def test_in_a_coroutine(citius_redis: str) -> None:
    async def main() -> None:
        with emptied(redis, citius_redis):
            async with redis:
                assert await redis.dbsize() == 0
                assert (await redis.client_list())[0]["name"] == "shop"

    asyncio.run(main())


def test_a_server_that_is_there(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw2")
    for given, expected in (
        (server.url, f"{server.url}?db=2"),
        ("redis://:p@h:7/1?client_name=x", "redis://:p@h:7/3"),
        ("redis://h", "redis://h/2"),
    ):
        monkeypatch.setenv(VARIABLE, given)
        with database() as url:
            assert url == expected
            assert parse(url).database == parse(given).database + 2


def test_no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(NoRedis, match=r"apt-get|Debian: redis-server.*CITIUS_TEST_REDIS"),
        database(),
    ):
        pass
