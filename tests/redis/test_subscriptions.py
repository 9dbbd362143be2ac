"""Channels, patterns, sharded channels: many subscribers on one connection, slow ones, lost connections."""

from __future__ import annotations

import asyncio

import pytest
from citius import ConfigError
from citius.redis import ClientClosed, Message, NoPermission, Redis, TimedOut
from redis_rig import WAIT_S, Server, opened, until


async def first(subscription, count: int = 1):
    found = []
    async for message in subscription:
        found.append(message)
        if len(found) == count:
            return found
    return found


@opened
async def test_messages(redis) -> None:
    async with redis.subscribe("a", "b") as messages, redis.psubscribe("*") as all_of_them:
        assert await redis.publish("a", "1") == 2
        assert await redis.publish("b", b"\xff") == 2
        assert await first(messages, 2) == [Message("a", b"1"), Message("b", b"\xff")]
        assert await first(all_of_them, 2) == [Message("a", b"1", "*"), Message("b", b"\xff", "*")]
        # One connection for all of them.
        assert redis.connections == 2
    async with redis.ssubscribe("shard") as messages:
        assert await redis.spublish("shard", "x") == 1
        assert await first(messages) == [Message("shard", b"x")]
    with pytest.raises(ClientClosed, match="not open"):
        await first(messages)


@opened(decode_responses=True)
async def test_text(redis) -> None:
    async with redis.subscribe("ä") as messages:
        await redis.publish("ä", "ö")
        assert await first(messages) == [Message("ä", "ö")]


@opened
async def test_subscribers_share_what_the_server_sends(redis) -> None:
    async with redis.subscribe("a", "a") as one, redis.subscribe("a", "b") as two:
        assert await redis.publish("a", "1") == 1
        assert await first(one) == await first(two) == [Message("a", b"1")]
    while await redis.pubsub_channels():
        pass
    async with redis.subscribe("a") as one:
        async with redis.subscribe("a"):
            pass
        await redis.publish("a", "2")
        assert await first(one) == [Message("a", b"2")]


@opened
async def test_a_slow_subscriber_loses_its_oldest_messages_and_delays_no_other(redis) -> None:
    gaps = []
    async with (
        redis.subscribe("a", queue_max=3, on_gap=lambda: gaps.append(1)) as slow,
        redis.subscribe("a") as other,
    ):
        for number in range(10):
            await redis.publish("a", number)
        assert [message.data for message in await first(other, 10)] == [
            str(n).encode() for n in range(10)
        ]
        assert [message.data for message in await first(slow, 3)] == [b"7", b"8", b"9"]
        assert (slow.dropped, len(gaps)) == (7, 7)


@opened(timeout_s=2.0)
async def test_a_channel_is_subscribed_to_again_at_once(redis) -> None:
    """Of sharded ones the server says when they are left, which is nothing about the next subscription."""
    blocks = {"SPUBLISH": redis.ssubscribe, "PUBLISH": redis.subscribe}
    for publish, block in blocks.items():
        for number in range(20):
            async with block("a"):
                pass
            entering = asyncio.create_task(block("a").__aenter__())
            await asyncio.sleep(0)
            entering.cancel()
            async with block("a") as messages:
                assert await redis.execute(publish, "a", number) == 1
                assert await first(messages) == [Message("a", str(number).encode())]
            assert await asyncio.gather(entering, return_exceptions=True)


@opened
async def test_leaving_while_waiting(redis) -> None:
    async with redis.subscribe("a") as messages:
        waiting = asyncio.create_task(first(messages))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await first(messages)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await redis.publish("a", "1")
        assert await first(messages) == [Message("a", b"1")]


def test_lost_connections_are_made_again(own_server: Server) -> None:
    async def main() -> None:
        gaps = []
        async with (
            Redis(own_server.url) as redis,
            redis.subscribe("a", on_gap=lambda: gaps.append(1)) as messages,
        ):
            await redis.execute("CLIENT", "KILL", "TYPE", "pubsub")
            await until(lambda: gaps == [1], "the gap is told")
            assert await redis.publish("a", "again") == 1
            assert await first(messages) == [Message("a", b"again")]
            await asyncio.to_thread(own_server.stop)
            await asyncio.to_thread(own_server.start)
            while not await redis.publish("a", "new server"):
                pass
            assert await first(messages) == [Message("a", b"new server")]
            assert len(gaps) == 2

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_subscription_that_is_refused_after_a_loss_ends(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url) as admin:
            allowed = ("+@all", "resetchannels", "&news", "&more")
            await admin.execute("ACL", "SETUSER", "reader", "on", "nopass", *allowed)
            async with (
                Redis(f"redis://reader:x@127.0.0.1:{own_server.port}") as redis,
                redis.subscribe("news") as messages,
                redis.subscribe("more") as others,
            ):
                waiting = asyncio.create_task(first(messages))
                await asyncio.sleep(0)
                # Redis 7 ends the connections that have what is taken away.
                await admin.execute("ACL", "SETUSER", "reader", "resetchannels", "&more")
                await admin.execute("CLIENT", "KILL", "TYPE", "pubsub")
                for refused in (waiting, first(messages)):
                    with pytest.raises(NoPermission):
                        await refused
                while not await admin.publish("more", "heard"):
                    pass
                assert await first(others) == [Message("more", b"heard")]

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_closing_the_client_ends_subscriptions(server: Server) -> None:
    async def main() -> None:
        redis = Redis(server.url)
        await redis.open()
        async with redis.subscribe("a") as messages:
            waiting = asyncio.create_task(first(messages))
            await asyncio.sleep(0)
            await redis.close()
            with pytest.raises(ClientClosed, match="the client is closed"):
                await waiting

    asyncio.run(main())


def test_a_server_that_is_away_and_one_that_refuses(own_server: Server) -> None:
    async def main() -> None:
        async with Redis(own_server.url, timeout_s=1) as redis:
            await redis.execute(
                "ACL", "SETUSER", "reader", "on", "nopass", "+@all", "resetchannels", "&open"
            )
            async with Redis(f"redis://reader:x@127.0.0.1:{own_server.port}") as reader:
                with pytest.raises(NoPermission, match="one of the channels"):
                    async with reader.subscribe("secret"):
                        pass
                async with reader.subscribe("open") as messages:
                    await redis.publish("open", "1")
                    assert await first(messages) == [Message("open", b"1")]
            own_server.stop()
            with pytest.raises(TimedOut, match="no confirmation"):
                async with redis.subscribe("a"):
                    pass

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@opened
async def test_arguments(redis) -> None:
    with pytest.raises(ValueError, match="names of channels"):
        redis.subscribe()
    with pytest.raises(ValueError, match="queue_max"):
        redis.subscribe("a", queue_max=0)
    async with redis.subscribe("a") as messages:
        with pytest.raises(RuntimeError, match="entered once"):
            async with messages:
                pass


@pytest.mark.parametrize("error", [ValueError("gap"), asyncio.CancelledError()])
def test_subscriptions_outlive_an_on_gap_that_raises(server: Server, error: BaseException) -> None:
    """The kind of review B3: others had no message, and a lost connection was not made again."""
    gaps: list[int] = []

    def on_gap() -> None:
        gaps.append(1)
        raise error

    async def main() -> None:
        async with (
            Redis(server.url) as redis,
            redis.subscribe("a", queue_max=1, on_gap=on_gap) as slow,
            redis.subscribe("a") as other,
        ):
            for text in ("1", "2", "3"):
                await redis.publish("a", text)
            assert await first(other, 3) == [
                Message("a", b"1"),
                Message("a", b"2"),
                Message("a", b"3"),
            ]
            assert await first(slow) == [Message("a", b"3")]
            assert slow.dropped == len(gaps) == 2
            server.say("CLIENT", "KILL", "TYPE", "pubsub")
            async with asyncio.timeout(20):
                while len(gaps) == 2:
                    await asyncio.sleep(0.01)
                while not await redis.publish("a", "late"):
                    await asyncio.sleep(0.01)
                assert await first(slow) == [Message("a", b"late")]
                assert await first(other) == [Message("a", b"late")]
            with pytest.raises(ConfigError, match="without await"):
                redis.subscribe("a", on_gap=asyncio.sleep)

    asyncio.run(asyncio.wait_for(main(), 40))
