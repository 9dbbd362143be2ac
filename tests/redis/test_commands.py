"""Every typed method against a real server: what it returns has the promised form."""

from __future__ import annotations

import math

import msgspec
import pytest
from citius.redis import Entry, Pending, PendingSummary, ServerError, WrongType
from redis_rig import opened


class Item(msgspec.Struct):
    id: int
    name: str


@opened
async def test_keys(redis) -> None:
    assert await redis.set("a", 1)
    assert await redis.delete("a", "b") == 1
    await redis.mset({"a": 1, "b": 2})
    assert await redis.exists("a", "b", "a", "c") == 3
    assert await redis.touch("a", "c") == 1
    assert await redis.unlink("b") == 1
    assert await redis.ttl("a") == -1
    assert await redis.ttl("none") == -2
    assert await redis.expire("a", 100) is True
    assert await redis.expire("a", 50, gt=True) is False
    assert await redis.expire("none", 50) is False
    assert 99 <= await redis.ttl("a") <= 100
    assert await redis.pexpire("a", 50_000, lt=True) is True
    assert 49_000 < await redis.pttl("a") <= 50_000
    assert await redis.expireat("a", 4_000_000_000) is True
    assert await redis.expiretime("a") == 4_000_000_000
    assert await redis.pexpireat("a", 4_000_000_000_000, nx=True) is False
    assert await redis.persist("a") is True
    assert await redis.persist("a") is False
    assert await redis.type("a") == "string"
    assert await redis.type("none") == "none"
    assert await redis.rename("a", "b") == "OK"
    with pytest.raises(ServerError, match="no such key"):
        await redis.rename("a", "b")
    await redis.set("c", 1)
    assert await redis.renamenx("b", "c") is False
    assert await redis.copy("b", "d") is True
    assert await redis.copy("b", "d") is False
    assert await redis.copy("b", "d", replace=True) is True
    assert sorted(await redis.keys()) == [b"b", b"c", b"d"]
    assert await redis.keys("x*") == []
    assert await redis.randomkey() in (b"b", b"c", b"d")
    dumped = await redis.dump("b")
    assert await redis.restore("e", 0, dumped) == "OK"
    assert await redis.get("e", as_=int) == 1
    assert await redis.object_encoding("e") == "int"
    assert await redis.memory_usage("e") > 0
    await redis.mset({f"n{number}": number for number in range(1000)})
    found = [key async for key in redis.scan(match="n*", count=100)]
    assert sorted(set(found)) == sorted(f"n{number}".encode() for number in range(1000))
    assert [key async for key in redis.scan(type="hash")] == []


@opened
async def test_strings(redis) -> None:
    assert await redis.get("a") is None
    assert await redis.set("a", "ä") is True
    assert await redis.get("a") == "ä".encode()
    assert await redis.get("a", as_=str) == "ä"
    assert await redis.set("a", b"\x00\xff\r\n", nx=True) is False
    assert await redis.set("b", b"\x00\xff\r\n", nx=True) is True
    assert await redis.get("b") == b"\x00\xff\r\n"
    with pytest.raises(UnicodeDecodeError):
        await redis.get("b", as_=str)
    assert await redis.set("none", 1, xx=True) is False
    assert await redis.set("c", 1.5, ex=0.5) is True
    assert 0 < await redis.pttl("c") <= 500
    assert await redis.set("c", 2.5, keepttl=True)
    assert await redis.pttl("c") > 0
    assert await redis.get("c", as_=float) == 2.5
    for expiry in (
        {"ex": 100},
        {"px": 100_000},
        {"exat": 4_000_000_000},
        {"pxat": 4_000_000_000_000},
    ):
        assert await redis.set("d", 1, **expiry)
        assert await redis.ttl("d") > 90
    assert await redis.getset("a", "new") == "ä".encode()
    assert await redis.getdel("a", as_=str) == "new"
    assert await redis.getdel("a") is None
    await redis.set("a", "x")
    assert await redis.getex("a", ex=100) == b"x"
    assert await redis.ttl("a") > 90
    assert await redis.getex("a", persist=True) == b"x"
    assert await redis.ttl("a") == -1
    assert await redis.mget("a", "none", "c") == [b"x", None, b"2.5"]
    assert await redis.mget("none", "c", as_=float) == [None, 2.5]
    assert await redis.mset({"m": 1, b"n": b"2"}) is True
    assert await redis.msetnx({"m": 1, "o": 2}) is False
    assert await redis.incr("m") == 2
    assert await redis.incr("m", 10) == 12
    assert await redis.decr("m", 2) == 10
    assert await redis.incrbyfloat("m", 0.5) == 10.5
    assert await redis.append("s", "hello") == 5
    assert await redis.strlen("s") == 5
    assert await redis.getrange("s", 1, -2) == b"ell"
    assert await redis.setrange("s", 1, "u") == 5
    assert await redis.setbit("bits", 7, True) is False
    assert await redis.getbit("bits", 7) is True
    assert await redis.bitcount("bits") == 1
    assert await redis.bitcount("bits", 0, 0) == 1
    assert await redis.bitpos("bits", True) == 7
    assert await redis.bitpos("bits", False, 0) == 0
    assert await redis.bitop("NOT", "flipped", "bits") == 1
    assert await redis.pfadd("hll", "a", "b") is True
    assert await redis.pfadd("hll", "a") is False
    assert await redis.pfcount("hll") == 2
    assert await redis.pfmerge("all", "hll") == "OK"


@opened
async def test_objects(redis) -> None:
    item = Item(1, "one")
    assert await redis.get_msgpack("item", as_=Item) is None
    assert await redis.get_msgpack("item") is None
    assert await redis.set_msgpack("item", item, ex=100) is True
    assert await redis.get_msgpack("item", as_=Item) == item
    assert await redis.get_msgpack("item") == {"id": 1, "name": "one"}
    assert await redis.get_msgpack("item", as_=dict[str, int | str]) == {"id": 1, "name": "one"}
    assert await redis.set_json("json", item) is True
    assert await redis.get_json("json", as_=Item) == item
    assert await redis.get_json("json") == {"id": 1, "name": "one"}
    assert await redis.get("json") == b'{"id":1,"name":"one"}'
    assert await redis.mget_msgpack("item", "none", as_=Item) == [item, None]
    assert await redis.mget_json("json", "none", as_=Item) == [item, None]
    with pytest.raises(msgspec.ValidationError):
        await redis.get_msgpack("item", as_=list[int])
    with pytest.raises(msgspec.DecodeError):
        await redis.get_json("item")
    with pytest.raises(TypeError, match="set_msgpack and set_json encode objects"):
        await redis.set("item", item)


@opened
async def test_hashes(redis) -> None:
    assert await redis.hset("h", "a", 1) == 1
    assert await redis.hset("h", mapping={"b": 2, "c": "x"}) == 2
    assert await redis.hget("h", "a") == b"1"
    assert await redis.hget("h", "a", as_=int) == 1
    assert await redis.hget("h", "none") is None
    assert await redis.hsetnx("h", "a", 2) is False
    assert await redis.hmget("h", "a", "none") == [b"1", None]
    assert await redis.hmget("h", "a", "b", as_=int) == [1, 2]
    assert await redis.hgetall("h") == {b"a": b"1", b"b": b"2", b"c": b"x"}
    assert await redis.hgetall("none") == {}
    assert await redis.hdel("h", "c", "none") == 1
    assert await redis.hexists("h", "a") is True
    assert await redis.hexists("h", "c") is False
    assert await redis.hincrby("h", "a", 5) == 6
    assert await redis.hincrbyfloat("h", "a", 0.5) == 6.5
    assert sorted(await redis.hkeys("h")) == [b"a", b"b"]
    assert sorted(await redis.hvals("h")) == [b"2", b"6.5"]
    assert await redis.hlen("h") == 2
    assert await redis.hstrlen("h", "a") == 3
    assert set(await redis.hrandfield("h", 5)) == {b"a", b"b"}
    await redis.hset("big", mapping={str(number): number for number in range(1000)})
    found = {field: value async for field, value in redis.hscan("big", count=100)}
    assert len(found) == 1000
    assert found[b"7"] == b"7"


@opened
async def test_lists(redis) -> None:
    assert await redis.rpush("l", "b", "c") == 2
    assert await redis.lpush("l", "a") == 3
    assert await redis.lpushx("none", "a") == 0
    assert await redis.rpushx("l", "d") == 4
    assert await redis.lrange("l", 0, -1) == [b"a", b"b", b"c", b"d"]
    assert await redis.lrange("l", 0, 1, as_=str) == ["a", "b"]
    assert await redis.llen("l") == 4
    assert await redis.lindex("l", -1) == b"d"
    assert await redis.lset("l", 0, "A") == "OK"
    assert await redis.linsert("l", "BEFORE", "b", "x") == 5
    assert await redis.lpos("l", "c") == 3
    assert await redis.lpos("l", "none") is None
    assert await redis.lrem("l", 0, "x") == 1
    assert await redis.lpop("l", as_=str) == "A"
    assert await redis.rpop("l") == b"d"
    assert await redis.lpop("none") is None
    assert await redis.lmove("l", "other", "RIGHT", "LEFT") == b"c"
    assert await redis.lpop("l", 5) == [b"b"]
    assert await redis.rpop("none", 5) is None
    await redis.rpush("l", *range(10))
    assert await redis.ltrim("l", 2, 4) == "OK"
    assert await redis.lmpop(["none", "l"], "RIGHT", count=2) == (b"l", [b"4", b"3"])
    assert await redis.lmpop(["none"]) is None
    assert await redis.blpop("l") == (b"l", b"2")
    assert await redis.brpop(["none", "other"], timeout=1) == (b"other", b"c")
    assert await redis.blpop("none", timeout=0.01) is None
    await redis.rpush("l", "x", "y")
    assert await redis.blmove("l", "other", 1) == b"x"
    assert await redis.blmove("none", "other", 0.01) is None
    assert await redis.blmpop(["l"], 1) == (b"l", [b"y"])
    assert await redis.blmpop(["none"], 0.01) is None
    await redis.set("s", 1)
    with pytest.raises(WrongType):
        await redis.lpop("s")


@opened
async def test_sets(redis) -> None:
    assert await redis.sadd("s", "a", "b", "c") == 3
    assert await redis.sadd("t", "b", "d") == 2
    assert await redis.smembers("s") == {b"a", b"b", b"c"}
    assert await redis.smembers("none") == set()
    assert await redis.srem("s", "c", "x") == 1
    assert await redis.sismember("s", "a") is True
    assert await redis.smismember("s", "a", "x") == [True, False]
    assert await redis.scard("s") == 2
    assert await redis.srandmember("s") in (b"a", b"b")
    assert await redis.srandmember("none") is None
    assert await redis.sinter("s", "t") == {b"b"}
    assert await redis.sunion("s", "t") == {b"a", b"b", b"d"}
    assert await redis.sdiff("s", "t") == {b"a"}
    assert await redis.sinterstore("r", "s", "t") == 1
    assert await redis.sunionstore("r", "s", "t") == 3
    assert await redis.sdiffstore("r", "s", "t") == 1
    assert await redis.sintercard(["s", "t"], limit=5) == 1
    assert await redis.smove("s", "t", "a") is True
    assert await redis.spop("s") == b"b"
    assert await redis.spop("s") is None
    await redis.sadd("big", *range(1000))
    assert len({member async for member in redis.sscan("big")}) == 1000


@opened
async def test_sorted_sets(redis) -> None:
    assert await redis.zadd("z", {"a": 1, "b": 2.5, "c": 3}) == 3
    assert await redis.zadd("z", {"a": 5, "d": 4}, ch=True, gt=True) == 2
    assert await redis.zadd("z", {"a": 1}, xx=True) == 0
    assert await redis.zscore("z", "b") == 2.5
    assert await redis.zscore("z", "none") is None
    assert await redis.zmscore("z", "a", "none") == [1.0, None]
    assert await redis.zincrby("z", 0.5, "a") == 1.5
    assert await redis.zcard("z") == 4
    assert await redis.zcount("z", "-inf", "(3") == 2
    assert await redis.zrange("z", 0, -1) == [b"a", b"b", b"c", b"d"]
    assert await redis.zrange("z", 0, 0, desc=True) == [b"d"]
    assert await redis.zrange("z", 2, "+inf", byscore=True, offset=1, num=1) == [b"c"]
    assert await redis.zrange_withscores("z", 0, 1) == [(b"a", 1.5), (b"b", 2.5)]
    assert await redis.zrange_withscores("none", 0, 1) == []
    assert await redis.zrangestore("copy", "z", 0, 1) == 2
    assert await redis.zrank("z", "b") == 1
    assert await redis.zrevrank("z", "b") == 2
    assert await redis.zrank("z", "none") is None
    assert await redis.zpopmin("z") == [(b"a", 1.5)]
    assert await redis.zpopmax("z", 2) == [(b"d", 4.0), (b"c", 3.0)]
    assert await redis.zpopmin("none") == []
    assert await redis.bzpopmin("z", 1) == (b"z", b"b", 2.5)
    assert await redis.bzpopmax(["none", "z"], 0.01) is None
    await redis.zadd("lex", dict.fromkeys("abcde", 0))
    assert await redis.zlexcount("lex", "[b", "(d") == 2
    assert await redis.zrange("lex", "[b", "[c", bylex=True) == [b"b", b"c"]
    assert await redis.zremrangebylex("lex", "-", "[a") == 1
    assert await redis.zremrangebyrank("lex", 0, 0) == 1
    assert await redis.zremrangebyscore("lex", 0, 0) == 3
    await redis.zadd("x", {"a": 1, "b": 2, "inf": math.inf})
    await redis.zadd("y", {"b": 1})
    assert await redis.zscore("x", "inf") == math.inf
    assert await redis.zunion(["x", "y"]) == [b"a", b"b", b"inf"]
    assert await redis.zinter(["x", "y"], aggregate="MAX") == [b"b"]
    assert await redis.zdiff(["x", "y"]) == [b"a", b"inf"]
    assert await redis.zunionstore("r", ["x", "y"]) == 3
    assert await redis.zinterstore("r", ["x", "y"]) == 1
    assert await redis.zdiffstore("r", ["x", "y"]) == 2
    assert await redis.zintercard(["x", "y"]) == 1
    assert await redis.zrandmember("y") == b"b"
    assert dict([pair async for pair in redis.zscan("x")]) == {
        b"a": 1.0,
        b"b": 2.0,
        b"inf": math.inf,
    }


@opened
async def test_places(redis) -> None:
    assert (
        await redis.geoadd(
            "g", (13.361389, 38.115556, "Palermo"), (15.087269, 37.502669, "Catania")
        )
        == 2
    )
    assert 166_000 < await redis.geodist("g", "Palermo", "Catania") < 167_000
    assert 166 < await redis.geodist("g", "Palermo", "Catania", "km") < 167
    assert await redis.geodist("g", "Palermo", "none") is None
    ((longitude, latitude), missing) = await redis.geopos("g", "Palermo", "none")
    assert (round(longitude, 4), round(latitude, 4), missing) == (13.3614, 38.1156, None)
    assert await redis.geosearch("g", longitude=15, latitude=37, radius=200, unit="km") == [
        b"Catania",
        b"Palermo",
    ]
    assert await redis.geosearch(
        "g", member="Palermo", width=10, height=10, unit="km", count=1
    ) == [b"Palermo"]


@opened
async def test_streams(redis) -> None:
    first = await redis.xadd("s", {"n": 1})
    second = await redis.xadd("s", {"n": 2}, id="*", maxlen=100)
    assert await redis.xadd("none", {"n": 1}, nomkstream=True) is None
    assert await redis.xlen("s") == 2
    entries = [Entry(first, {b"n": b"1"}), Entry(second, {b"n": b"2"})]
    assert await redis.xrange("s") == entries
    assert await redis.xrange("s", f"({first}", count=1) == entries[1:]
    assert await redis.xrevrange("s") == entries[::-1]
    assert await redis.xread({"s": "0"}) == {b"s": entries}
    assert await redis.xread({"s": first}, count=1, block_ms=10) == {b"s": entries[1:]}
    assert await redis.xread({"s": "$"}, block_ms=10) == {}
    assert await redis.xgroup_create("s", "g", "0") == "OK"
    assert await redis.xgroup_create("new", "g", mkstream=True) == "OK"
    assert await redis.xreadgroup("g", "one", {"s": ">"}, count=1) == {b"s": entries[:1]}
    assert await redis.xreadgroup("g", "two", {"s": ">"}, block_ms=1000) == {b"s": entries[1:]}
    assert await redis.xpending("s", "g") == PendingSummary(2, first, second, {"one": 1, "two": 1})
    assert await redis.xpending("new", "g") == PendingSummary(0, None, None, {})
    pending = await redis.xpending_range("s", "g", consumer="one")
    assert [type(one) for one in pending] == [Pending]
    assert (pending[0].id, pending[0].consumer, pending[0].deliveries) == (first, "one", 1)
    assert await redis.xack("s", "g", first, "9-9") == 1
    assert await redis.xclaim("s", "g", "one", 0, [second]) == entries[1:]
    assert await redis.xautoclaim("s", "g", "two", 0) == ("0-0", entries[1:])
    assert await redis.xgroup_createconsumer("s", "g", "three") is True
    assert await redis.xgroup_delconsumer("s", "g", "two") == 1
    assert await redis.xgroup_setid("s", "g", "0") == "OK"
    assert [group["name"] for group in await redis.xinfo_groups("s")] == ["g"]
    assert {one["name"] for one in await redis.xinfo_consumers("s", "g")} == {"one", "three"}
    about = await redis.xinfo_stream("s")
    assert (about["length"], about["first-entry"]) == (2, entries[0])
    assert await redis.xgroup_destroy("s", "g") is True
    assert await redis.xdel("s", first) == 1
    assert await redis.xtrim("s", maxlen=0, approximate=False) == 1


@opened
async def test_scripts_and_functions(redis) -> None:
    assert await redis.eval("return {KEYS[1], ARGV[1], 7}", ["k"], ["v"]) == [b"k", b"v", 7]
    sha = await redis.script_load("return 1")
    assert await redis.script_exists(sha, "0" * 40) == [True, False]
    assert await redis.script_flush() == "OK"
    library = (
        "#!lua name=shop\nredis.register_function{function_name='double', flags={'no-writes'}, "
    )
    library += "callback=function(keys, args) return args[1] * 2 end}"
    assert await redis.function_load(library, replace=True) == "shop"
    assert await redis.fcall("double", [], [21]) == 42
    assert await redis.fcall_ro("double", [], [2]) == 4
    assert (await redis.function_list("shop"))[0]["library_name"] == "shop"
    assert await redis.function_delete("shop") == "OK"


@opened
async def test_the_server(redis) -> None:
    assert await redis.ping() is True
    assert await redis.echo("x") == b"x"
    assert (await redis.time())[0] > 1_600_000_000
    await redis.set("a", 1)
    assert await redis.dbsize() == 1
    assert await redis.flushdb() == "OK"
    assert (await redis.info("server"))["tcp_port"] == "0"
    assert await redis.config_get("maxmemory") == {"maxmemory": "0"}
    assert await redis.config_set({"maxmemory-samples": 5}) == "OK"
    assert (await redis.client_list())[0]["cmd"]
    assert await redis.client_id() > 0
    assert await redis.publish("nobody", "x") == 0
    assert await redis.spublish("nobody", "x") == 0
    assert await redis.pubsub_channels() == []
    assert await redis.pubsub_numsub("nobody") == {b"nobody": 0}


@opened(decode_responses=True)
async def test_text(redis) -> None:
    """With ``decode_responses`` strings are text, however deep they are."""
    await redis.set("a", "ä")
    assert await redis.get("a") == "ä"
    assert await redis.get("a", as_=bytes) == "ä".encode()
    await redis.hset("h", mapping={"f": "v"})
    assert await redis.hgetall("h") == {"f": "v"}
    await redis.sadd("s", "x")
    assert await redis.smembers("s") == {"x"}
    first = await redis.xadd("stream", {"f": "v"})
    assert await redis.xread({"stream": "0"}) == {"stream": [Entry(first, {"f": "v"})]}
    assert [key async for key in redis.scan(match="h")] == ["h"]
    assert await redis.execute("CONFIG", "GET", "maxmemory") == {"maxmemory": "0"}
