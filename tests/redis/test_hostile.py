"""Servers that say what has no meaning: to commands that the client itself has given, and unasked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from citius.redis import ConnectionLost, Redis
from redis_rig import WAIT_S, Server

HELLO = b"%2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
OK = b"+OK\r\n"

Said = Callable[[list[bytes]], bytes]


def words(*given: bytes) -> bytes:
    return b"*%d\r\n" % len(given) + b"".join(b"$%d\r\n%s\r\n" % (len(it), it) for it in given)


async def command(reader: asyncio.StreamReader) -> list[bytes]:
    count = int((await reader.readuntil(b"\r\n"))[1:])
    lengths = [
        (await reader.readexactly(int((await reader.readuntil(b"\r\n"))[1:]) + 2))[:-2]
        for _ in range(count)
    ]
    return lengths


@contextlib.asynccontextmanager
async def speaking(say: Said) -> AsyncIterator[int]:
    """The port of a server that logs everyone in, and says what ``say`` returns to other commands."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            while True:
                given = await command(reader)
                said = {b"HELLO": HELLO, b"CLIENT": OK}.get(given[0])
                writer.write(say(given) if said is None else said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        yield listener.sockets[0].getsockname()[1]
        await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)


NO_ADDRESSES = {
    "none": b"*0\r\n",
    "one word": words(b"127.0.0.1"),
    "a status": OK,
    "a number": b":5\r\n",
    "no port": words(b"127.0.0.1", b"x"),
    "a port beyond": words(b"127.0.0.1", b"65536"),
    "no host": words(b"", b"6379"),
    "arrays": b"*2\r\n*0\r\n*0\r\n",
    "no text": words(b"\xff\xfe", b"6379"),
}


@pytest.mark.parametrize("reply", NO_ADDRESSES.values(), ids=NO_ADDRESSES.keys())
def test_a_sentinel_that_names_no_address_is_passed_over(own_server: Server, reply: bytes) -> None:
    """The next one is asked, also for news of another master."""
    asked: list[bytes] = []

    def garbled(given: list[bytes]) -> bytes:
        asked.append(given[0])
        return reply if given[0] == b"SENTINEL" else OK

    subscribed = asyncio.Event()

    def right(given: list[bytes]) -> bytes:
        if given[0] == b"SUBSCRIBE":
            subscribed.set()
            return b">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
        return words(b"127.0.0.1", str(own_server.port).encode())

    async def main() -> None:
        async with speaking(garbled) as first, speaking(right) as second:
            url = f"redis+sentinel://127.0.0.1:{first},127.0.0.1:{second}/shop"
            async with Redis(url, timeout_s=WAIT_S) as redis:
                assert await redis.set("k", "v")
                await asyncio.wait_for(subscribed.wait(), WAIT_S)
        assert b"SENTINEL" in asked
        async with speaking(garbled) as first:
            with pytest.raises(ConnectionLost, match="cannot be read"):
                await Redis(f"redis+sentinel://127.0.0.1:{first}/shop").open()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


@pytest.mark.parametrize(
    "push",
    [
        b">0\r\n",
        b">1\r\n$7\r\nmessage\r\n",
        *(
            b">3\r\n" + words(b"message", b"+switch-master", text)[4:]
            for text in (
                b"",
                b"shop 1 2",
                b"shop 127.0.0.1 x 127.0.0.1 y",
                b"shop 127.0.0.1 1 127.0.0.1 65536",
            )
        ),
    ],
)
def test_news_without_a_meaning_end_their_connection(own_server: Server, push: bytes) -> None:
    """Another one is made: what a sentinel says next would be missed otherwise."""
    subscriptions = 0
    again = asyncio.Event()

    def say(given: list[bytes]) -> bytes:
        nonlocal subscriptions
        if given[0] != b"SUBSCRIBE":
            return words(b"127.0.0.1", str(own_server.port).encode())
        subscriptions += 1
        if subscriptions > 1:
            again.set()
            return b""
        return push

    async def main() -> None:
        async with (
            speaking(say) as port,
            Redis(f"redis+sentinel://127.0.0.1:{port}/shop", timeout_s=WAIT_S) as redis,
        ):
            assert await redis.set("k", "v")
            await asyncio.wait_for(again.wait(), WAIT_S)
            assert await redis.get("k") == b"v"

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


NO_SLOTS = {
    "a status": OK,
    "numbers": b"*1\r\n:1\r\n",
    "no master": b"*1\r\n*2\r\n:0\r\n:16383\r\n",
    "slots beyond": b"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:6379\r\n",
    "negative slots": b"*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n$1\r\na\r\n:6379\r\n",
    "a port beyond": b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:65536\r\n",
    "no text": b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$2\r\n\xff\xfe\r\n:6379\r\n",
}


@pytest.mark.parametrize("reply", NO_SLOTS.values(), ids=NO_SLOTS.keys())
def test_a_cluster_whose_slots_cannot_be_read(reply: bytes) -> None:
    async def main() -> None:
        async with speaking(lambda _given: reply) as port:
            with pytest.raises(Exception, match="CLUSTER cannot be read") as caught:
                await Redis(f"redis://127.0.0.1:{port}", cluster=True).open()
            assert type(caught.value).__module__ == "citius.redis.errors"

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_a_connection_that_ends_as_it_opens_takes_no_commands() -> None:
    """What ends it comes in one piece with the end of its login."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number, is_first = connections, True
        try:
            while True:
                given = await command(reader)
                if given[0] == b"HELLO":
                    writer.write(HELLO)
                elif given[0] == b"CLIENT":
                    # The login ends with the second one; a reply more ends the connection.
                    written = b"" if is_first else OK + OK + b":1\r\n"
                    writer.write(written if number == 2 else OK)
                    is_first = False
                elif number == 1:
                    return
                else:
                    writer.write(b"$1\r\nv\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            async with Redis(f"redis://127.0.0.1:{port}", cluster=False, timeout_s=5) as redis:
                with pytest.raises(ConnectionLost):
                    await redis.get("k")
                for _ in range(10):
                    assert await redis.get("k") == b"v"
                assert connections == 3

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
