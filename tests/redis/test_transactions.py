"""MULTI and EXEC, watched keys, connections of a caller's own, and scripts."""

from __future__ import annotations

import asyncio

import pytest
from citius.redis import BlockEnded, ServerError, WatchFailed, WrongType
from redis_rig import opened, until


@opened
async def test_commands_of_a_transaction_are_done_at_its_end(redis) -> None:
    async with redis.transaction() as tx:
        total = tx.incr("n", 5)
        stored = tx.hset("h", mapping={"a": 1})
        whole = tx.hgetall("h")
        missing = tx.get("none")
        number = tx.get("n", as_=int)
        assert await redis.get("n") is None
        with pytest.raises(RuntimeError, match="await it behind the block"):
            await total
    assert await total == 5
    assert (await stored, await whole, await missing, await number) == (1, {b"a": b"1"}, None, 5)
    with pytest.raises(RuntimeError, match="its block has ended"):
        tx.incr("n")


@opened
async def test_nothing_is_sent_if_the_block_raises_or_is_empty(redis) -> None:
    with pytest.raises(ZeroDivisionError):
        async with redis.transaction() as tx:
            call = tx.incr("n")
            1 / 0
    assert await redis.exists("n") == 0
    with pytest.raises(BlockEnded, match="not sent, because its block raised ZeroDivisionError"):
        await call
    async with redis.transaction():
        pass


@opened
async def test_an_error_in_a_transaction_is_that_of_its_command(redis) -> None:
    await redis.set("s", 1)
    async with redis.transaction() as tx:
        wrong, right = tx.lpush("s", 1), tx.incr("n")
    assert await right == 1
    with pytest.raises(WrongType):
        await wrong
    # A command that the server does not take undoes all, and says why.
    with pytest.raises(ServerError, match="wrong number of arguments"):
        async with redis.transaction() as tx:
            tx.incr("n")
            tx.execute("GET")
    assert await redis.get("n", as_=int) == 1
    assert await redis.ping()


@opened
async def test_results_that_contain_others(redis) -> None:
    await redis.rpush("l", 1, 2)
    async with redis.transaction() as tx:
        first = tx.lrange("l", 0, -1)
        nested = tx.eval("return {{1}, {}, 'x'}")
        empty = tx.lrange("none", 0, -1)
        objects = tx.set_msgpack("m", {"a": 1}), tx.get_msgpack("m")
        scored = tx.zadd("z", {"m": 1}), tx.zrange_withscores("z", 0, -1)
    assert await first == [b"1", b"2"]
    assert await nested == [[1], [], b"x"]
    assert await empty == []
    assert [await call for call in objects] == [True, {"a": 1}]
    assert [await call for call in scored] == [1, [(b"m", 1.0)]]


@opened
async def test_many_transactions_among_other_commands(redis) -> None:
    async def move(number: int) -> None:
        async with redis.transaction() as tx:
            down, up = tx.decr("a"), tx.incr("b")
        assert await down == -await up
        assert await redis.echo(number) == str(number).encode()

    await asyncio.gather(*(move(number) for number in range(100)))
    assert await redis.mget("a", "b", as_=int) == [-100, 100]


@opened
async def test_a_watched_key(redis) -> None:
    await redis.set("stock", 1)
    async with redis.watch("stock", "other") as watched:
        assert await watched.get("stock", as_=int) == 1
        async with watched.transaction() as tx:
            left = tx.decr("stock")
        assert await left == 0
    async with redis.watch("stock") as watched:
        await redis.set("stock", 7)
        with pytest.raises(WatchFailed, match="a watched key has changed"):
            async with watched.transaction() as tx:
                tx.decr("stock")
        # The watch is over, and the connection goes on.
        async with watched.transaction() as tx:
            left = tx.decr("stock")
        assert await left == 6
    with pytest.raises(RuntimeError, match="given back"):
        await watched.get("stock")
    with pytest.raises(TypeError, match="keys to watch"):
        redis.watch()


@opened
async def test_watching_ends_with_its_block(redis) -> None:
    """The connection is used again, and what was watched on it is not any more."""
    await redis.set("a", 1)
    async with redis.watch("a") as watched:
        one = await watched.client_id()
    await redis.set("a", 2)
    async with redis.watch("b") as watched:
        assert await watched.client_id() == one
        async with watched.transaction() as tx:
            call = tx.incr("a")
        assert await call == 3


@opened
async def test_optimistic_counting_by_many(redis) -> None:
    async def add() -> None:
        while True:
            async with redis.watch("n") as watched:
                before = await watched.get("n", as_=int) or 0
                try:
                    async with watched.transaction() as tx:
                        tx.set("n", before + 1)
                except WatchFailed:
                    continue
                return

    await asyncio.gather(*(add() for _ in range(20)))
    assert await redis.get("n", as_=int) == 20


@opened
async def test_a_connection_of_ones_own(redis) -> None:
    async with redis.connection() as connection:
        own = await connection.client_id()
        await connection.execute("SELECT", 3)
        await connection.set("k", "in 3")
        assert await connection.execute("WAIT", 0, 0) == 0
        assert await connection.blpop("none", timeout=0.01) is None
        script = connection.register_script("return redis.call('GET', KEYS[1])")
        assert await script(["k"]) == b"in 3"
    assert await redis.get("k") is None
    # What was changed about it ends with it.
    async with redis.connection() as connection:
        assert await connection.client_id() != own
        assert await connection.get("k") is None


@opened(blocking_max=2, timeout_s=1)
async def test_connections_of_ones_own_are_bounded(redis) -> None:
    async with redis.watch("a") as one, redis.watch("a"):
        with pytest.raises(TimeoutError):
            async with redis.watch("a"):
                pass
        await one.ping()
    async with redis.watch("a") as again:
        assert await again.ping()
    await until(lambda: redis.connections == 3, "one shared connection and two others")


@opened
async def test_scripts_are_sent_by_their_hash(redis) -> None:
    script = redis.register_script("return {KEYS[1], ARGV[1]}")
    assert await script(["k"], ["v"]) == [b"k", b"v"]
    assert await redis.script_exists(script.sha) == [True]
    await redis.script_flush()
    results = await asyncio.gather(*(script([f"k{n}"], [n], as_=str) for n in range(5)))
    assert results == [[f"k{n}", str(n)] for n in range(5)]
    failing = redis.register_script("return redis.call('NOSUCH')")
    with pytest.raises(ServerError, match="Unknown Redis command"):
        await failing()
    async with redis.transaction() as tx:
        await redis.script_flush()
        inside = tx.register_script("return 7")()
    assert await inside == 7
    reading = redis.register_script("return redis.call('SET', 'k', 1)", is_read_only=True)
    with pytest.raises(ServerError, match="read-only"):
        await reading()
    with pytest.raises(TypeError, match="argument 3 of EVALSHA"):
        await script([None])
