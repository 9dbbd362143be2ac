"""A cluster: keys find their nodes, slots move, masters fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from citius.redis import ClientClosed, CrossSlot, Message, Redis, RedisError, WatchFailed, gather
from redis_rig import SERVER, WAIT_S, Nodes, until, wait_until

TAGS = ("a", "b", "c")  # in slots 15495, 3300, 7365: a node each


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    yield from started(Nodes(3))


def started(made: Nodes) -> Iterator[Nodes]:
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    try:
        made.start()
        yield made
    finally:
        made.remove()


def run(nodes: Nodes, test, **options) -> None:
    async def main() -> None:
        async with Redis(nodes.url, **options) as redis:
            await test(redis)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_keys_find_their_nodes(nodes: Nodes) -> None:
    async def test(redis) -> None:
        assert redis.server.mode == "cluster"
        for number in range(300):
            assert await redis.set(f"key:{number}", number)
        values = await gather(*(redis.get(f"key:{number}", as_=int) for number in range(300)))
        assert values == tuple(range(300))
        assert redis.connections == 3
        sizes = [int(server.say("DBSIZE")[1:]) for server in nodes.masters]
        assert sum(sizes) >= 300
        assert min(sizes) > 50
        assert await redis.ping()
        assert await redis.eval("return KEYS[1]", ["{b}x"]) == b"{b}x"
        script = redis.register_script("return redis.call('GET', KEYS[1])")
        assert await gather(*(script([f"key:{number}"]) for number in range(20))) == tuple(
            str(number).encode() for number in range(20)
        )
        assert await redis.mset({"{b}1": 1, "{b}2": 2})
        assert await redis.mget("{b}1", "{b}2") == [b"1", b"2"]
        with pytest.raises(CrossSlot):
            await redis.mget("a", "b")
        first = await redis.xadd("{c}s", {"n": 1})
        assert (await redis.xread({"{c}s": "0"}))[b"{c}s"][0].id == first
        assert await redis.blpop("{a}none", timeout=0.01) is None

    run(nodes, test)


def test_transactions_and_watches(nodes: Nodes) -> None:
    async def test(redis) -> None:
        for tag in TAGS:
            await redis.delete(f"{{{tag}}}n")
            async with redis.transaction() as tx:
                one, two = tx.incr(f"{{{tag}}}n"), tx.get(f"{{{tag}}}n", as_=int)
            assert (await one, await two) == (1, 1)
            async with redis.watch(f"{{{tag}}}n") as watched:
                await redis.incr(f"{{{tag}}}n")
                with pytest.raises(WatchFailed):
                    async with watched.transaction() as tx:
                        tx.incr(f"{{{tag}}}n")
        with pytest.raises(CrossSlot):
            async with redis.transaction() as tx:
                tx.mget("a", "b")
        # Keys of several slots: an error at once, and nothing of it is done (databases, row 73).
        for keys in (("a", "b"), ("a", "c"), ("b", "a", "c")):
            before = [await redis.get(key) for key in keys]
            with pytest.raises(CrossSlot, match="one slot of the cluster"):
                async with redis.transaction() as tx:
                    calls = [tx.incr(key) for key in keys]
            for call in calls:
                with pytest.raises(CrossSlot):
                    await call
            assert [await redis.get(key) for key in keys] == before
        # A block that watches keys of one slot and changes those of another can never be done.
        with pytest.raises(CrossSlot, match="one slot of the cluster"):
            async with redis.watch("a") as watched, watched.transaction() as tx:
                tx.incr("b")
        with pytest.raises(CrossSlot, match="one slot of the cluster"):
            async with redis.watch("a") as watched, watched.transaction() as tx:
                tx.incr("a")
                tx.incr("b")
        assert await redis.get("b") is None

    run(nodes, test)


def test_messages(nodes: Nodes) -> None:
    async def test(redis) -> None:
        async with redis.subscribe("news") as messages, redis.ssubscribe(*TAGS) as sharded:
            await redis.publish("news", "1")
            assert await anext(aiter(messages)) == Message("news", b"1")
            for tag in TAGS:
                assert await redis.spublish(tag, tag) == 1
                assert await anext(aiter(sharded)) == Message(tag, tag.encode())

    run(nodes, test)


@pytest.mark.parametrize(
    ("kind", "tag", "slot"), [("hostname", "n", 3432), ("unknown-endpoint", "u", 11826)]
)
def test_nodes_without_a_name(nodes: Nodes, kind: str, tag: str, slot: int) -> None:
    """They call one another `?`, or say nothing; where they are is known all the same."""
    source = nodes.owner(slot)
    target = next(one for one in nodes.masters if one is not source)

    async def test(redis) -> None:
        keys = [f"nameless:{number}" for number in range(100)]
        assert all(await gather(*(redis.set(key, key) for key in keys)))
        nodes.begin_move(slot, source, target)
        assert await redis.set(f"{{{tag}}}moving", 1)
        nodes.end_move(slot, target)
        assert await redis.set(tag, 1)
        assert await redis.get(f"{{{tag}}}moving", as_=int) == 1
        assert redis.connections <= 4

    try:
        for server in nodes.servers:
            server.say("CONFIG", "SET", "cluster-preferred-endpoint-type", kind)
        run(nodes, test)
    finally:
        for server in nodes.servers:
            server.say("CONFIG", "SET", "cluster-preferred-endpoint-type", "ip")


def test_a_subscription_is_confirmed_by_the_node_that_has_its_slot(nodes: Nodes) -> None:
    """The client finds out by the subscription that the slot has moved; it is in force behind its entry."""
    source = nodes.owner(3828)
    target = next(one for one in nodes.masters if one is not source)

    async def test(redis) -> None:
        async with Redis(nodes.url) as other:
            nodes.begin_move(3828, source, target)
            nodes.end_move(3828, target)
            # One that is on its way from node to node when the client is closed ends.
            entering = asyncio.create_task(other.ssubscribe("s").__aenter__())
            await until(lambda: bool(other._subscriber._moving), "the channel moves")
            await other.close(wait_s=0)
            with pytest.raises(ClientClosed):
                await entering
        async with redis.ssubscribe("s") as one, redis.ssubscribe("s") as two:
            assert await redis.spublish("s", "here") == 1
            for subscription in (one, two):
                assert await anext(aiter(subscription)) == Message("s", b"here")

    run(nodes, test)


def test_a_slot_moves_under_the_client(nodes: Nodes) -> None:
    """While it moves some keys are here and some there (ASK, TRYAGAIN); then all are there (MOVED)."""
    source, target = (
        nodes.owner(3300),
        next(one for one in nodes.masters if one is not nodes.owner(3300)),
    )

    async def test(redis) -> None:
        keys = [f"{{b}}{number}" for number in range(50)]
        await redis.mset({key: key for key in keys})
        async with redis.ssubscribe("b") as sharded:
            nodes.begin_move(3300, source, target, *keys[:25])
            assert await gather(*(redis.get(key) for key in keys)) == tuple(
                key.encode() for key in keys
            )
            assert await redis.set("{b}new", 1)
            assert await redis.get("{b}new") == b"1"
            # Keys of both places: the client tries again until the slot has moved.
            both = asyncio.ensure_future(redis.mget(*keys))
            block = asyncio.ensure_future(transact(redis, keys[0]))
            # So long that an answer of the cluster would have come: there is none to wait for.
            await asyncio.sleep(0.1)
            assert not both.done()
            for key in keys[25:]:
                source.say("MIGRATE", "127.0.0.1", str(target.port), key, "0", "5000")
            nodes.end_move(3300, target)
            assert await both == [key.encode() for key in keys]
            assert await block == keys[0].encode()
            assert await gather(*(redis.get(key) for key in keys)) == tuple(
                key.encode() for key in keys
            )
            while not await redis.spublish("b", "moved"):
                pass
            assert await anext(aiter(sharded)) == Message("b", b"moved")

    async def transact(redis, key: str):
        async with redis.transaction() as tx:
            call = tx.get(key)
        return await call

    run(nodes, test)


def test_the_client_need_not_know_all_nodes(nodes: Nodes) -> None:
    async def test(redis) -> None:
        assert await gather(*(redis.set(f"{{{tag}}}k", tag) for tag in TAGS)) == (True, True, True)

    async def main() -> None:
        async with Redis(f"redis://127.0.0.1:1,127.0.0.1:{nodes.masters[1].port}") as redis:
            await test(redis)
        # As if it were a single server: only keys of that node can be used.
        async with Redis(nodes.url, cluster=False) as redis:
            with pytest.raises(RedisError, match="MOVED"):
                await gather(*(redis.get(tag) for tag in TAGS))

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


async def first_commands(nodes: Nodes) -> None:
    # One without a deadline: without a connection that it finds it would wait for ever.
    async with Redis(nodes.url, timeout_s=None) as redis:
        assert await redis.publish("news", "text") == 0
        async with redis.connection() as connection:
            assert await connection.ping()
    async with Redis(nodes.url, timeout_s=None) as redis, redis.transaction() as tx:
        tx.publish("news", "text")


def test_any_node_takes_what_was_asked_for_before_it_was_connected(nodes: Nodes) -> None:
    """Commands without a key, the first ones of a client and those that come while all nodes are away."""
    asyncio.run(asyncio.wait_for(first_commands(nodes), WAIT_S))

    async def test(redis) -> None:
        assert await redis.ping()
        for server in nodes.servers:
            server.stop()
        await until(lambda: redis.connections == 0, "the connections have ended")
        waiting = [asyncio.ensure_future(one) for one in (redis.ping(), redis.publish("news", ""))]
        await until(lambda: redis.queued == 2, "they wait")
        for server in nodes.servers:
            server.start()
        assert await asyncio.gather(*waiting) == [True, 0]

    run(nodes, test, timeout_s=None)


def test_a_master_fails_and_its_replica_takes_over() -> None:
    for nodes in started(Nodes(3, replicas=True)):

        async def test(redis) -> None:
            await gather(*(redis.set(f"{{{tag}}}k", tag) for tag in TAGS))
            failing = nodes.owner(3300)
            await asyncio.to_thread(wait_until, lambda: replicated(nodes), "the replicas")
            failing.stop()
            others = [tag for tag in TAGS if tag != "b"]
            taken_over = asyncio.create_task(
                asyncio.to_thread(wait_until, lambda: has_new_owner(nodes, failing), "a new owner")
            )
            while not taken_over.done():
                # Keys of the other nodes are served meanwhile, unless the cluster says that it is down.
                for tag in others:
                    assert await redis.get(f"{{{tag}}}k") == tag.encode()
                await asyncio.sleep(0.01)  # a pause between two questions
            since = time.monotonic()
            assert await redis.get("{b}k") == b"b"
            assert time.monotonic() - since < 5
            assert await redis.set("{b}k", "new")

        run(nodes, test, timeout_s=WAIT_S)


def replicated(nodes: Nodes) -> bool:
    return all(b"master_link_status:up" in one.say("INFO", "replication") for one in nodes.replicas)


def has_new_owner(nodes: Nodes, failing) -> bool:
    alive = next(one for one in nodes.masters if one is not failing)
    return nodes.owner(3300) is not failing and b"cluster_state:ok" in alive.say("CLUSTER", "INFO")


COMMANDS = """
get K|set K v|getdel K|getex K|getrange K 0 1|append K v|strlen K|incr K|setbit K 1 1|bitcount K
bitpos K 1|bitop AND K K2|bitfield K GET u8 0|mget K K2|mset K v K2 v|msetnx K v K2 v|lcs K K2
substr K 0 1|setex K 1 v|del K K2|unlink K|exists K K2|touch K|expire K 1|ttl K|type K|persist K|dump K
rename K K2|copy K K2|sort K|sort_ro K|object encoding K|memory usage K|restore K 0 v|pexpireat K 1
expiretime K|renamenx K K2|hset K f v|hget K f|hgetall K|hmget K f|hincrby K f 1|hrandfield K|hscan K 0
hstrlen K f|lpush K v|rpop K|lrange K 0 1|lmove K K2 LEFT LEFT|lmpop 2 K K2 LEFT|lpos K v|rpoplpush K K2
linsert K BEFORE a b|blpop K 0.01|brpop K K2 0.01|blmove K K2 LEFT LEFT 0.01|blmpop 0.01 2 K K2 LEFT
brpoplpush K K2 0.01|sadd K m|smembers K|sinter K K2|sinterstore K K2|sintercard 2 K K2|smove K K2 m
sscan K 0|smismember K m|zadd K 1 m|zrange K 0 1|zrangestore K K2 0 1|zunion 2 K K2|zunionstore K 1 K2
zinter 1 K|zintercard 1 K|zdiff 1 K|zdiffstore K 1 K2|zmpop 1 K MIN|bzpopmin K 0.01|bzmpop 0.01 1 K MIN
zscan K 0|zrandmember K|zlexcount K - +|pfadd K e|pfcount K K2|pfmerge K K2|geoadd K 1 1 m
geosearch K FROMMEMBER m BYRADIUS 1 m|georadius K 1 1 1 m|geosearchstore K K2 FROMMEMBER m BYRADIUS 1 m
xadd K * f v|xread STREAMS K 0|xread COUNT 1 BLOCK 1 STREAMS K $|xreadgroup GROUP g c STREAMS K >
xrange K - +|xack K g 1-1|xinfo stream K|xgroup create K g $ MKSTREAM|xlen K|xautoclaim K g c 0 0
xpending K g|xsetid K 99-99|xclaim K g c 0 1-1|eval return+1 1 K|eval_ro return+1 2 K K2|fcall none 1 K
evalsha 0000 1 K|spublish K m
"""


def test_commands_find_their_nodes_at_the_first_try(nodes: Nodes) -> None:
    """The server judges which argument is a key: it redirects what comes to a wrong node."""

    def redirections() -> int:
        said = b"".join(server.say("INFO", "errorstats") for server in nodes.masters)
        return said.count(b"errorstat_MOVED")

    async def test(redis) -> None:
        await gather(*(redis.set(f"{{{tag}}}k", tag) for tag in TAGS))
        for server in nodes.masters:
            server.say("CONFIG", "RESETSTAT")
        commands = [line for line in COMMANDS.replace("\n", "|").split("|") if line]
        assert len(commands) > 100
        for tag in TAGS:
            for command in commands:
                keys = {"K": f"{{{tag}}}k", "K2": f"{{{tag}}}k2"}
                words = [
                    keys.get(word, word.replace("+", " ") if len(word) > 1 else word)
                    for word in command.split(" ")
                ]
                found = await asyncio.gather(redis.execute(*words), return_exceptions=True)
                assert not isinstance(found[0], TimeoutError), command
                assert redirections() == 0, command

    run(nodes, test)
