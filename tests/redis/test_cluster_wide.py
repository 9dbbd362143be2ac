"""Commands without a key in a cluster: those about all keys or all nodes go to all masters.

databases, "missing": SCAN, KEYS, DBSIZE, FLUSHALL and SCRIPT LOAD acted on one node, silently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from citius.redis import Redis, ServerError, gather
from redis_rig import SERVER, WAIT_S, Nodes

COUNT = 300


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = Nodes(3)
    try:
        made.start()
        yield made
    finally:
        made.remove()


def run(nodes: Nodes, test: Callable[[Redis[Any]], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Redis(nodes.url, **options) as redis:
            await redis.flushall()
            await gather(*(redis.set(f"key:{number}", number) for number in range(COUNT)))
            await test(redis)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_all_keys_are_found(nodes: Nodes) -> None:
    expected = {f"key:{number}".encode() for number in range(COUNT)}

    async def test(redis: Redis[bytes]) -> None:
        assert await redis.dbsize() == await redis.execute("dbsize") == COUNT
        assert sorted(await redis.keys("key:*")) == sorted(expected)
        found = [key async for key in redis.scan(match="key:*", count=7)]
        assert sorted(found) == sorted(expected)
        assert await redis.randomkey() in expected
        for server in nodes.masters[:2]:
            server.say("FLUSHALL")
        # Whichever nodes are empty, a key is found while there is one.
        assert all([await redis.randomkey() is not None for _ in range(20)])
        with pytest.raises(
            ValueError, match=r"belongs to one node of the cluster: use redis\.scan"
        ):
            await redis.execute("SCAN", 0)
        assert await redis.ping()

    run(nodes, test)


def test_all_keys_are_found_serially(nodes: Nodes) -> None:
    async def test(redis: Redis[bytes]) -> None:
        def serially() -> tuple[int, int, int]:
            sync = redis.sync
            return sync.dbsize(), len(sync.keys()), len(list(sync.scan(count=5)))

        assert await asyncio.to_thread(serially) == (COUNT, COUNT, COUNT)

    run(nodes, test)


@pytest.mark.parametrize("command", ["flushall", "flushdb"])
def test_all_nodes_are_emptied(nodes: Nodes, command: str) -> None:
    async def test(redis: Redis[bytes]) -> None:
        assert await getattr(redis, command)() == "OK"
        assert [server.say("DBSIZE") for server in nodes.masters] == [b":0\r\n"] * 3
        assert await redis.randomkey() is None

    run(nodes, test)


def test_all_nodes_know_scripts_and_functions(nodes: Nodes) -> None:
    async def test(redis: Redis[bytes]) -> None:
        sha = await redis.script_load("return KEYS[1]")
        for tag in "abc":
            assert await redis.execute("EVALSHA", sha, 1, f"{{{tag}}}k") == f"{{{tag}}}k".encode()
        assert await redis.script_exists(sha, "0" * 40) == [True, False]
        nodes.masters[1].say("SCRIPT", "FLUSH")
        assert await redis.script_exists(sha) == [False]
        assert await redis.script_flush() == "OK"
        code = "#!lua name=lib\nredis.register_function('f', function() return 7 end)"
        assert await redis.function_load(code) == "lib"
        for tag in "abc":
            assert await redis.fcall("f", [f"{{{tag}}}k"]) == 7
        with pytest.raises(ServerError, match="already exists"):
            await redis.function_load(code)
        assert await redis.function_delete("lib") == "OK"

    run(nodes, test)


def test_settings_and_subscribers_of_all_nodes(nodes: Nodes) -> None:
    async def test(redis: Redis[bytes]) -> None:
        await redis.config_set({"slowlog-max-len": 77})
        for server in nodes.masters:
            assert b"77" in server.say("CONFIG", "GET", "slowlog-max-len")
        async with redis.subscribe("one", "two"), redis.ssubscribe("a", "b", "c"):
            assert sorted(await redis.pubsub_channels()) == [b"one", b"two"]
            assert await redis.pubsub_numsub("one", "none") == {b"one": 1, b"none": 0}
            sharded = await redis.execute("PUBSUB", "SHARDCHANNELS")
            assert sorted(sharded) == [b"a", b"b", b"c"]

    run(nodes, test)


def test_a_transaction_is_on_one_node(nodes: Nodes) -> None:
    async def test(redis: Redis[bytes]) -> None:
        with pytest.raises(ValueError, match="DBSIZE is about all nodes of the cluster"):
            async with redis.transaction() as tx:
                tx.set("{a}k", 1)
                late = tx.dbsize()
        with pytest.raises(ValueError, match="DBSIZE is about all nodes"):
            await late
        async with redis.connection("{a}k") as connection:
            assert 0 < await connection.dbsize() < COUNT

    run(nodes, test)


def test_a_node_that_fails_is_an_error_and_no_part_of_an_answer(nodes: Nodes) -> None:
    async def test(redis: Redis[bytes]) -> None:
        nodes.masters[2].pause()
        try:
            for ask in (redis.dbsize, redis.keys, redis.flushall):
                with pytest.raises(TimeoutError):
                    await ask()
        finally:
            nodes.masters[2].resume()
        calls = [asyncio.ensure_future(redis.dbsize()) for _ in range(20)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        await asyncio.wait(calls)
        assert len({call.result() for call in calls[1::2]}) == 1

    run(nodes, test, timeout_s=1)
