"""Replies that are kept are not given behind the times to live of their keys, which the server does not tell.

The servers here remove nothing by themselves (``DEBUG SET-ACTIVE-EXPIRE 0``), so that only what the client
has asked can say when a reply is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from citius.redis import ClientCache, Redis
from redis_rig import SERVER, WAIT_S, Nodes, Sentinel, Server, Valkey, wait_until

PREFIXES = [(), ("k", "h")]
Read = Callable[[], Awaitable[Any]]


@pytest.fixture(scope="module", params=[Server, Valkey], ids=["redis", "valkey"])
def lazy(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that removes what has expired only when it is asked for it."""
    if request.param.program is None:
        pytest.skip(f"{request.param.__name__} is not installed")
    made: Server = request.param()
    try:
        made.start()
        made.say("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        yield made
    finally:
        made.remove()


@pytest.fixture
def has_field_ttls(lazy: Server) -> Server:
    if lazy.say("HPTTL", "none", "FIELDS", "1", "f").startswith(b"-ERR unknown"):
        pytest.skip("fields of hashes do not expire at this server")
    return lazy


def run(server: Server, test: Callable[[Any, Any], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        cache = ClientCache(**options)
        async with Redis(server.url, cache=cache) as redis, Redis(server.url) as other:
            await other.flushall()
            await test(redis, other)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


async def is_kept(redis: Any, read: Read, until: float = float("inf")) -> bool:
    """Whether one of some reads is answered here, or they were made after ``until``.

    What the server tells of a change on another connection may come behind a read, which is forgotten then.
    """
    for _ in range(20):
        before = redis.cache_statistics.hits
        await read()
        await read()
        if redis.cache_statistics.hits > before or time.monotonic() > until - 0.002:
            return True
    return False


async def ends_in_time(read: Read, gone: object, until: float) -> None:
    """Reads until nothing is there: no read that begins behind ``until`` gives anything else."""
    while True:
        since = time.monotonic()
        value = await read()
        if value == gone:
            return
        assert since < until, f"{value} is given {since - until:.3f} s behind its time"
        await asyncio.sleep(0)


@pytest.mark.parametrize("prefixes", PREFIXES, ids=["read", "prefixes"])
def test_a_reply_ends_with_its_key(lazy: Server, prefixes: tuple[str, ...]) -> None:
    async def test(redis: Any, other: Any) -> None:
        reads: list[tuple[Read, object]] = [
            (lambda: redis.get("k"), None),
            (lambda: redis.mget("k0", "k"), [b"0", None]),
            (lambda: redis.exists("k0", "k"), 1),
            (lambda: redis.strlen("k"), 0),
            (lambda: redis.execute("TYPE", "k", as_=str), "none"),
            (lambda: redis.getrange("k", 0, -1), b""),
        ]
        await other.set("k0", "0")
        for read, gone in reads:
            await other.set("k", "v", px=200)
            ends = time.monotonic() + 0.201
            assert await is_kept(redis, read, ends)
            await ends_in_time(read, gone, ends)
        for fill, read, gone in (
            (lambda: other.rpush("kl", "a"), lambda: redis.lrange("kl", 0, -1), []),
            (lambda: other.sadd("ks", "a"), lambda: redis.smembers("ks"), set()),
            (lambda: other.zadd("kz", {"a": 1}), lambda: redis.zrange("kz", 0, -1), []),
            (lambda: other.hset("h", mapping={"a": 1}), lambda: redis.hgetall("h"), {}),
            (lambda: other.hset("h", mapping={"a": 1}), lambda: redis.hget("h", "a"), None),
        ):
            await fill()
            for key in ("kl", "ks", "kz", "h"):
                await other.execute("PEXPIRE", key, 200)
            ends = time.monotonic() + 0.201
            assert await is_kept(redis, read, ends)
            await ends_in_time(read, gone, ends)

    run(lazy, test, prefixes=prefixes)


@pytest.mark.parametrize("prefixes", PREFIXES, ids=["read", "prefixes"])
def test_a_time_to_live_that_changes_counts(lazy: Server, prefixes: tuple[str, ...]) -> None:
    """What a change of the time to live tells ends the reply; the next one is bounded by the new time."""

    async def test(redis: Any, other: Any) -> None:
        read = lambda: redis.get("k")  # noqa: E731
        for change in (
            ("PEXPIRE", "k", 200),
            ("PEXPIREAT", "k", None),
            ("SET", "k", "w", "PX", 200),
            ("GETEX", "k", "PX", 200),
        ):
            await other.set("k", "v")
            while await read() != b"v":
                pass
            assert await is_kept(redis, read)
            words = [int(time.time() * 1000) + 200 if word is None else word for word in change]
            await other.execute(*words)
            # The message may come behind this reply, and well before the end of the time.
            await ends_in_time(read, None, time.monotonic() + 0.201)
        ends = time.monotonic() + 0.200
        await other.set("k", "v", px=200)
        assert await is_kept(redis, read, ends)
        await other.execute("SET", "k", "w", "KEEPTTL")
        ends = time.monotonic() + 0.201
        while await read() != b"w":
            pass
        assert await is_kept(redis, read, ends)
        await ends_in_time(read, None, ends)
        # A time that is taken away: nothing ends, and what is kept is kept.
        await other.set("k", "v", px=200)
        assert await is_kept(redis, read)
        await other.execute("PERSIST", "k")
        await asyncio.sleep(0.25)  # longer than the time was
        assert await read() == b"v"
        assert await is_kept(redis, read)

    run(lazy, test, prefixes=prefixes)


def test_what_this_client_gives_a_time(lazy: Server) -> None:
    async def test(redis: Any, other: Any) -> None:
        await redis.set("k", "v", px=200)
        ends = time.monotonic() + 0.201
        assert await redis.get("k") == b"v"
        await ends_in_time(lambda: redis.get("k"), None, ends)
        # That nothing was there is kept, until something is.
        assert await is_kept(redis, lambda: redis.get("k"))
        await other.set("k", "new")
        while await redis.get("k") is None:
            pass

    run(lazy, test)


def test_many_keys_and_short_times_are_not_kept(lazy: Server) -> None:
    async def test(redis: Any, other: Any) -> None:
        keys = [f"k{number}" for number in range(65)]
        assert await is_kept(redis, lambda: redis.mget(*keys[:64]))
        assert not await is_kept(redis, lambda: redis.mget(*keys))
        await other.set("k", "v", px=9)
        await redis.get("k")
        assert await redis.get("k") in (b"v", None)
        assert redis.cache_statistics.hits == 1

    run(lazy, test)


def test_a_user_who_may_not_ask_has_nothing_kept(lazy: Server) -> None:
    lazy.say("ACL", "SETUSER", "half", "on", ">x", "~*", "&*", "+@all", "-pttl")

    async def main() -> None:
        url = lazy.url.replace("unix://", "unix://half:x@")
        async with Redis(url, cache=ClientCache()) as redis:
            assert await redis.set("k", "v")
            assert not await is_kept(redis, lambda: redis.get("k"))
            assert await redis.get("k") == b"v"

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_swapped_databases_end_what_is_kept(lazy: Server) -> None:
    """By this client; of those of others the server tells nothing."""

    async def test(redis: Any, other: Any) -> None:
        await other.set("k", "v")
        assert await is_kept(redis, lambda: redis.get("k"))
        await redis.execute("SWAPDB", 0, 1)
        assert await redis.get("k") is None
        await redis.execute("SWAPDB", 0, 1)
        assert await redis.get("k") == b"v"

    run(lazy, test)


def test_fields_of_hashes_that_expire(has_field_ttls: Server) -> None:
    async def test(redis: Any, other: Any) -> None:
        await other.execute("HSET", "h", "a", 1, "b", 2)
        whole = lambda: redis.hgetall("h")  # noqa: E731
        assert await is_kept(redis, whole), "a small one without such fields"
        assert await is_kept(redis, lambda: redis.hget("h", "a"))
        await other.execute("HPEXPIRE", "h", 200, "FIELDS", 1, "a")
        ends = time.monotonic() + 0.201
        assert await redis.hgetall("h") == {b"a": b"1", b"b": b"2"}
        assert await is_kept(redis, lambda: redis.hget("h", "a"))
        assert await is_kept(redis, lambda: redis.hget("h", "b"))
        assert await is_kept(redis, lambda: redis.hmget("h", "a", "b"))
        assert not await is_kept(redis, whole)
        await ends_in_time(lambda: redis.hmget("h", "a", "b"), [None, b"2"], ends)
        assert await redis.hget("h", "a") is None
        assert await redis.hgetall("h") == {b"b": b"2"}

    run(has_field_ttls, test)


def test_whole_hashes_are_kept_where_no_code_has_fields_expire(has_field_ttls: Server) -> None:
    async def test(redis: Any, other: Any) -> None:
        await other.execute("HSET", "h", "a", "x" * 100)
        assert await is_kept(redis, lambda: redis.hgetall("h"))

    run(has_field_ttls, test, field_ttls=False)
    with pytest.raises(AssertionError):
        run(has_field_ttls, test)


def test_in_a_cluster() -> None:
    if SERVER is None:
        pytest.skip("no redis-server")
    nodes = Nodes(3)

    async def main() -> None:
        async with Redis(nodes.url, cache=ClientCache()) as redis:
            for tag in ("a", "b", "c"):
                key = f"{{{tag}}}k"
                for server in nodes.masters:
                    server.say("DEBUG", "SET-ACTIVE-EXPIRE", "0")
                await redis.set(key, "v", px=200)
                ends = time.monotonic() + 0.201
                assert await is_kept(redis, lambda key=key: redis.mget(key))
                await ends_in_time(lambda key=key: redis.get(key), None, ends)
                assert await redis.mget(key) == [None]

    try:
        nodes.start()
        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        nodes.remove()


def test_of_a_master_that_sentinels_name(own_server: Server) -> None:
    sentinel = Sentinel(own_server)
    own_server.say("DEBUG", "SET-ACTIVE-EXPIRE", "0")

    async def main() -> None:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/shop"
        async with Redis(url, cache=ClientCache()) as redis:
            await redis.set("k", "v", px=200)
            ends = time.monotonic() + 0.201
            assert await is_kept(redis, lambda: redis.get("k"))
            await ends_in_time(lambda: redis.get("k"), None, ends)

    try:
        sentinel.start()
        wait_until(lambda: sentinel.say("SENTINEL", "MASTERS") != b"*0\r\n", "the master")
        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    finally:
        sentinel.remove()
