"""Replies that are kept until their keys change: by this client, by others, in every way that keys change."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from citius.errors import ConfigError
from citius.redis import ClientCache, Redis, gather
from redis_rig import Server, opened


class Item(msgspec.Struct):
    names: list[str]


async def hits(redis) -> int:
    return redis.cache_statistics.hits


@opened(cache=ClientCache())
async def test_what_is_read_twice_is_asked_for_once(redis) -> None:
    await redis.set("k", "v")
    assert [await redis.get("k") for _ in range(5)] == [b"v"] * 5
    assert await redis.get("k", as_=str) == "v"
    about = redis.cache_statistics
    assert (about.entries, about.hits) == (1, 5)
    assert 0 < about.bytes < 1000
    # No value is a value too.
    assert [await redis.get("none") for _ in range(2)] == [None, None]
    assert redis.cache_statistics.hits == 6
    await redis.hset("h", mapping={"a": 1})
    assert [await redis.hgetall("h") for _ in range(2)] == [{b"a": b"1"}] * 2
    assert [await redis.mget("k", "none") for _ in range(2)] == [[b"v", None]] * 2
    assert redis.cache_statistics.hits == 8


@opened(cache=ClientCache())
async def test_everybody_gets_objects_of_their_own(redis) -> None:
    await redis.set_msgpack("item", Item(["a"]))
    one = await redis.get_msgpack("item", as_=Item)
    two = await redis.get_msgpack("item", as_=Item)
    assert redis.cache_statistics.hits == 1
    one.names.append("b")
    assert two == Item(["a"])
    assert await redis.get_msgpack("item", as_=Item) == Item(["a"])


@opened(cache=ClientCache())
async def test_what_this_client_writes_is_read_at_once(redis) -> None:
    for number in range(200):
        await redis.set("n", number)
        assert await redis.get("n", as_=int) == number
    total = await redis.incr("n")
    assert await redis.get("n", as_=int) == total
    async with redis.transaction() as tx:
        tx.incr("n")
    assert await redis.get("n", as_=int) == total + 1
    script = redis.register_script("return redis.call('INCR', KEYS[1])")
    await script(["n"])
    assert await redis.get("n", as_=int) == total + 2
    async with redis.watch("n") as watched:
        await watched.get("n")
        async with watched.transaction() as tx:
            tx.set("n", 7)
    assert await redis.get("n", as_=int) == 7
    assert await redis.mget("n", as_=int) == [7]
    await redis.delete("n")
    assert await gather(redis.get("n"), redis.mget("n")) == (None, [None])


@pytest.mark.parametrize("prefixes", [(), ("k", "other:")])
def test_what_others_write_is_told(server: Server, prefixes: tuple[str, ...]) -> None:
    async def main() -> None:
        cache = ClientCache(prefixes=prefixes)
        async with Redis(server.url, cache=cache) as redis, Redis(server.url) as other:
            await other.flushall()
            for number in range(50):
                await other.set("k", number)
                while await redis.get("k", as_=int) != number:
                    pass
                # A reply that the message overtook is not kept: the next one is.
                assert await redis.get("k", as_=int) == number
                before = redis.cache_statistics.hits
                assert await redis.get("k", as_=int) == number
                assert redis.cache_statistics.hits == before + 1
            await other.set("k", "short", ex=0.02)
            while await redis.get("k") is not None:
                await asyncio.sleep(0.001)
            await other.mset({"k1": 1, "k2": 2})
            assert await redis.mget("k1", "k2") == [b"1", b"2"]
            await other.set("k2", 3)
            while await redis.mget("k1", "k2") != [b"1", b"3"]:
                pass
            await other.flushall()
            while await redis.get("k1") is not None:
                pass

    asyncio.run(asyncio.wait_for(main(), 20))


@opened(cache=ClientCache(prefixes=("keep:",)))
async def test_only_keys_with_a_prefix_are_kept(redis) -> None:
    for _ in range(2):
        await redis.get("keep:a")
        await redis.get("other")
        await redis.mget("keep:a", "other")
    assert (redis.cache_statistics.entries, redis.cache_statistics.hits) == (1, 1)


@opened(cache=ClientCache(entries_max=10, bytes_max=100_000))
async def test_what_is_kept_is_bounded(redis) -> None:
    for number in range(100):
        await redis.set(f"k{number}", number)
    for number in range(100):
        await redis.get("k0")
        await redis.get(f"k{number}")
    about = redis.cache_statistics
    assert about.entries == 10
    # What is used all the time stays.
    assert about.hits >= 99
    await redis.set("large", "x" * 200_000)
    await redis.get("large")
    for number in range(10):
        await redis.set(f"k{number}", "x" * 20_000)
        await redis.get(f"k{number}")
    assert redis.cache_statistics.bytes <= 100_000
    assert redis.cache_statistics.entries <= 5
    await redis.flushdb()


@opened(cache=ClientCache(age_max_s=0.02))
async def test_what_is_kept_has_an_age(redis) -> None:
    await redis.get("k")
    await redis.get("k")
    assert redis.cache_statistics.hits == 1
    await asyncio.sleep(0.05)  # longer than the age
    await redis.get("k")
    assert redis.cache_statistics.hits == 1


def test_without_a_connection_nothing_is_kept(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, cache=ClientCache(), timeout_s=10) as redis:
            await redis.set("k", "old")
            assert await redis.get("k") == b"old"
            assert redis.cache_statistics.entries == 1
            await redis.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
            while redis.cache_statistics.entries:
                await asyncio.sleep(0)
            own_server.say("SET", "k", "new")
            assert await redis.get("k") == b"new"
            # And changes are told again.
            own_server.say("SET", "k", "newer")
            while await redis.get("k") != b"newer":
                pass

    asyncio.run(asyncio.wait_for(main(), 20))


@opened(cache=ClientCache())
async def test_what_must_not_be_kept(redis) -> None:
    await redis.set("s", "x")
    for call in (redis.lrange, redis.ttl):
        for _ in range(2):
            with pytest.raises(Exception):  # noqa: B017, PT011
                await call("s", 0, -1)
    await redis.expire("s", 100)
    for _ in range(2):
        await redis.ttl("s")
        await redis.srandmember("none")
        await redis.keys()
    async with redis.connection() as connection:
        await connection.execute("SELECT", 1)
        assert await connection.get("s") is None
    assert await redis.get("s") == b"x"
    assert redis.cache_statistics.hits == 0


def test_arguments() -> None:
    with pytest.raises(ConfigError, match="size=1"):
        Redis(cache=ClientCache(), size=2)
