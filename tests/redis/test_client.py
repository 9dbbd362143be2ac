"""What applications see of a client: replies, errors, pipelines, waiting, cancellation, closing."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from citius.errors import ConfigError, HTTPError
from citius.redis import (
    ClientClosed,
    ConnectionLost,
    Overloaded,
    Redis,
    ServerError,
    TimedOut,
    WrongType,
    gather,
)
from redis_rig import WAIT_S, Server, opened, until


@opened
async def test_values_of_every_type_of_resp3(redis) -> None:
    """As ``DEBUG PROTOCOL`` sends them; attributes are read and dropped."""
    expected = {
        "string": b"Hello World", "integer": 12345, "double": 3.141, "null": None, "true": True,
        "false": False, "array": [0, 1, 2], "set": {0, 1, 2}, "map": {0: False, 1: True, 2: False},
        "bignum": 1234567999999999999999999999999999999, "verbatim": "This is a verbatim\nstring",
        "attrib": "Some real reply following the attribute",
    }  # fmt: skip
    for kind, value in expected.items():
        found = await redis.execute("DEBUG", "PROTOCOL", kind)
        assert found == (value.encode() if kind == "attrib" else value), kind
        assert type(found) is type(value) or kind == "attrib"


@opened
async def test_nested_values(redis) -> None:
    script = (
        "return {1, {2, {}}, 'x', {ok='fine'}, {err='MY bad'}, {double=1.5}, {map={a={1}}}, false}"
    )
    found = await redis.eval("redis.setresp(3) " + script)
    assert isinstance(found[4], ServerError)
    assert (found[4].code, found[4].message) == ("MY", "bad")
    found[4] = None
    assert found == [1, [2, []], b"x", "fine", None, 1.5, {b"a": [1]}, False]
    # What cannot be hashed is no member of a set and no key of a dict.
    script = "redis.setresp(3) local t = {} t[{1}] = true return {%s=t}"
    assert await redis.eval(script % "set") == [[1]]
    assert await redis.eval(script % "map") == [([1], True)]


@opened
async def test_errors_have_a_code(redis) -> None:
    await redis.set("s", 1)
    with pytest.raises(WrongType) as caught:
        await redis.lpush("s", 1)
    assert (caught.value.code, caught.value.message[:20]) == ("WRONGTYPE", "Operation against a ")
    with pytest.raises(ServerError, match="unknown command") as unknown:
        await redis.execute("NOSUCH", "x")
    assert unknown.value.code == "ERR"
    assert await redis.get("s") == b"1"


@opened
async def test_an_error_is_that_of_its_own_command(redis) -> None:
    """Ten commands in one write, every other one fails."""
    await redis.set("s", 1)
    calls = [redis.lpush("s", n) if n % 2 else redis.incr("n") for n in range(10)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [int, WrongType] * 5
    with pytest.raises(WrongType):
        await gather(redis.lpush("s", 1), redis.incr("n"))
    assert await redis.get("n", as_=int) == 6


@opened
async def test_arguments(redis) -> None:
    for value, stored in (
        ("ä", "ä".encode()), (b"\0", b"\0"), (bytearray(b"x"), b"x"), (memoryview(b"yz"), b"yz"), (7, b"7"),
        (-(10**30), str(-(10**30)).encode()), (1.5, b"1.5"), (1e300, b"1e+300"), (float("inf"), b"inf"),
    ):  # fmt: skip
        await redis.set("k", value)
        assert await redis.get("k") == stored
    await redis.set("k", "x" * 5_000_000)
    assert len(await redis.get("k")) == 5_000_000
    for value in (None, True, [1], {"a": 1}, object()):
        with pytest.raises(
            TypeError, match=r"argument 2 of SET: expected str, bytes, int or float, got"
        ):
            await redis.set("k", value)
    with pytest.raises(TypeError, match="argument 1 of GET"):
        await redis.get(None)
    with pytest.raises(TypeError, match="expected a command"):
        redis.execute()
    with pytest.raises(TypeError, match="name of a command"):
        redis.execute(1)
    with pytest.raises(TypeError, match="as_ is str, bytes, int, float"):
        redis.get("k", as_=7)
    with pytest.raises(UnicodeEncodeError):
        await redis.set("k", "\ud800")
    assert await redis.ping()


@opened
async def test_what_would_change_the_shared_connection_is_refused(redis) -> None:
    for words in (
        ("MULTI",),
        ("subscribe", "x"),
        (b"SELECT", 1),
        ("WATCH", "k"),
        ("MONITOR",),
        ("WAIT", 1, 0),
    ):
        with pytest.raises(
            ValueError,
            match="not sent (on a connection that is shared|by this client): (use|say|what)",
        ):
            redis.execute(*words)


@opened
async def test_a_command_is_awaited_once(redis) -> None:
    call = redis.incr("n")
    assert await call == 1
    with pytest.raises(RuntimeError, match="awaited already"):
        await call
    with pytest.raises(TypeError, match="commands of citius.redis"):
        await gather("GET")
    # One that is never awaited is never sent.
    redis.incr("n")
    assert await redis.get("n", as_=int) == 1
    started = redis.incr("n")
    started.start()
    assert await redis.get("n", as_=int) == 2
    assert await started == 2


@opened
async def test_long_replies_come_in_pieces(redis) -> None:
    await redis.rpush("l", *(f"value {number}" for number in range(100_000)))
    found = await redis.lrange("l", 0, -1)
    assert len(found) == 100_000
    assert found[-1] == b"value 99999"
    whole, ping = await gather(redis.lrange("l", 0, -1), redis.ping())
    assert (whole, ping) == (found, True)


@opened(reply_bytes_max=100_000)
async def test_a_reply_that_is_too_long_ends_its_connection_and_no_more(redis) -> None:
    from citius.redis import ProtocolError

    await redis.set("large", "x" * 200_000)
    with pytest.raises(ConnectionLost, match="takes more than 100000 bytes") as caught:
        await redis.get("large")
    assert isinstance(caught.value.__cause__, ProtocolError)
    assert await redis.strlen("large") == 200_000


@opened
async def test_cancellation_at_any_moment_mixes_up_no_replies(redis) -> None:
    async def ask(number: int) -> None:
        async with asyncio.timeout(0.0002 * (number % 7)):
            assert await redis.echo(number) == str(number).encode()

    for _ in range(20):
        tasks = [asyncio.create_task(ask(number)) for number in range(50)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} <= {type(None), TimeoutError}
    assert await redis.echo("x") == b"x"


@opened(queue_max=10)
async def test_too_many_commands_are_refused(redis) -> None:
    calls = [redis.incr("n") for _ in range(15)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert results[:10] == [*range(1, 11)]
    assert {type(result) for result in results[10:]} == {Overloaded}
    assert isinstance(results[-1], HTTPError)
    assert results[-1].status_code == 503
    assert "10 commands wait" in str(results[-1])
    assert await redis.incr("n") == 11


def test_commands_wait_for_a_stalled_server_and_then_fail(own_server: Server) -> None:
    """A reply that comes later is no other's."""

    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.set("k", "v")
            own_server.pause()
            calls = [redis.echo(number) for number in range(5)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(result) for result in results} == {TimedOut}
            assert "no reply from Redis at 127.0.0.1" in str(results[0])
            assert isinstance(results[0], TimeoutError)
            assert results[0].status_code == 503
            own_server.resume()
            replies = await gather(*(redis.echo(number) for number in range(100, 110)))
            assert replies == tuple(str(number).encode() for number in range(100, 110))
            assert redis.connections == 1

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_the_client_must_be_open(server: Server) -> None:
    redis = Redis(server.url)

    async def main() -> None:
        with pytest.raises(ClientClosed, match="async with redis"):
            await redis.get("k")
        with pytest.raises(ClientClosed):
            redis.transaction()
        async with redis:
            with pytest.raises(RuntimeError, match="open already"):
                await redis.open()
            get = redis.get
            assert await redis.ping()
        with pytest.raises(ClientClosed):
            await redis.get("k")
        with pytest.raises(ClientClosed):
            await get("k")
        async with redis:
            assert await redis.ping()
        await redis.close()

    asyncio.run(main())


def test_a_client_whose_loop_has_ended_without_closing_it_is_opened_anew(server: Server) -> None:
    redis = Redis(server.url)

    async def leave() -> None:
        await redis.open()
        assert await redis.ping()

    async def use() -> object:
        async with redis:
            return await redis.ping()

    asyncio.run(leave())
    assert asyncio.run(use())
    assert asyncio.run(use())
    asyncio.run(leave())
    assert redis.sync.ping()
    redis.sync.close()
    asyncio.run(leave())
    asyncio.run(redis.close())
    assert redis.connections == 0


def test_closing_waits_for_commands_under_way(own_server: Server) -> None:
    async def main() -> None:
        redis = Redis(own_server.url)
        await redis.open()
        slow = asyncio.create_task(
            _result(redis.eval("local n = 0 for i = 1, 2e7 do n = n + i end return 1"))
        )
        await asyncio.sleep(0)
        await redis.close()
        assert await slow == 1

    async def _result(call):
        return await call

    asyncio.run(main())


def test_closing_fails_what_does_not_end(own_server: Server) -> None:
    async def main() -> None:
        redis = Redis(own_server.url, timeout_s=None)
        await redis.open()
        own_server.pause()
        calls = [asyncio.ensure_future(redis.incr("n")) for _ in range(3)]
        waiting = asyncio.ensure_future(redis.blpop("none"))
        await asyncio.sleep(0)
        await redis.close(wait_s=0.05)
        results = await asyncio.gather(*calls, waiting, return_exceptions=True)
        assert all(isinstance(result, ClientClosed | ConnectionLost) for result in results)
        own_server.resume()

    asyncio.run(main())


def test_arguments_of_a_client() -> None:
    for options, message in (
        ({"size": 0}, "size must be at least 1"),
        ({"queue_max": 0}, "queue_max"),
        ({"timeout_s": 0}, "timeout_s must be more than 0"),
        ({"timeout_s": float("nan")}, "timeout_s"),
    ):
        with pytest.raises(ConfigError, match=message):
            Redis(**options)


def test_nothing_shows_a_password(own_server: Server) -> None:
    own_server.say("CONFIG", "SET", "requirepass", "another")

    async def main() -> None:
        redis = Redis(f"redis://:secret-word@127.0.0.1:{own_server.port}/3")
        assert "secret" not in repr(redis) + repr(redis.target) + repr(vars(redis))
        with pytest.raises(ServerError) as caught:
            await redis.open()
        assert "secret" not in str(caught.value) + repr(caught.value)

    asyncio.run(main())


@opened(size=3)
async def test_several_connections_share_the_commands(redis) -> None:
    await until(lambda: redis.connections == 3, "three connections")
    ids = await gather(*(redis.client_id() for _ in range(300)))
    assert len(set(ids)) == 3
    assert await gather(*(redis.echo(n) for n in range(100))) == tuple(
        str(n).encode() for n in range(100)
    )


def test_a_closed_client_is_garbage(server: Server) -> None:
    async def main() -> weakref.ref[object]:
        redis = Redis(server.url)
        async with redis:
            await redis.ping()
            with pytest.raises(ServerError):
                await redis.execute("NOSUCH")
        return weakref.ref(redis)

    ref = asyncio.run(main())
    gc.collect()
    assert ref() is None
