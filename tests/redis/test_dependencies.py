"""FromRedis: a client for handlers, which tests put another in place of."""

from __future__ import annotations

from typing import Annotated

from citius import App, FromRedis
from citius.redis import Redis
from citius.testing import Client
from redis_rig import Server

redis = Redis()
other = Redis()
app = App()


@app.get("/")
async def total(
    redis: Annotated[Redis[bytes], FromRedis(redis)],
    other: Annotated[Redis[bytes], FromRedis(other)],
) -> list[int]:
    return [await redis.incr("total"), await other.incr("other")]


def test_a_handler_gets_the_client_or_what_a_test_puts_in_its_place(server: Server) -> None:
    assert FromRedis(redis).call is FromRedis(redis).call
    assert FromRedis(redis).call is not FromRedis(other).call
    app.dependency_overrides[FromRedis(redis).call] = app.dependency_overrides[
        FromRedis(other).call
    ] = lambda: tested
    tested = Redis(server.url)
    app.on_startup(tested.open)
    app.on_shutdown(tested.close)
    with Client(app) as client:
        assert client.get("/").json() == [1, 1]
        assert client.get("/").json() == [2, 2]


def test_without_an_override_it_is_the_client_itself() -> None:
    assert FromRedis(redis).call() is redis
