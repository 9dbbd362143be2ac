"""A forked child has the client and copies of its sockets (issue 32 C7): it is refused."""

from __future__ import annotations

import asyncio
import os

import pytest
from citius.redis import Redis
from redis_rig import Server
from rig import in_child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
BEFORE = "was opened before a fork"


def test_a_child_is_refused_and_may_open_the_client_again(server: Server) -> None:
    async def main() -> None:
        async with Redis(server.url) as redis, redis.subscribe("news") as messages:
            await redis.set("k", "v")
            number = await redis.client_id()

            async def act() -> None:
                for use in (
                    lambda: redis.get("k"),
                    lambda: redis.set("k", "child"),
                    lambda: redis.blpop("none", timeout=0.01),
                    lambda: redis.watch("k").__aenter__(),
                    lambda: redis.subscribe("other").__aenter__(),
                    lambda: asyncio.to_thread(redis.sync.get, "k"),
                ):
                    with pytest.raises(RuntimeError, match=BEFORE):
                        await use()
                async with redis:
                    assert await redis.get("k") == b"v"
                    assert await redis.client_id() != number
                    await redis.publish("news", "from the child")

            async def closes() -> None:
                await redis.close()

            for _ in range(3):
                await in_child(act)
                assert (await anext(aiter(messages))).data == b"from the child"
                await in_child(closes)
                assert await redis.client_id() == number
                assert await redis.get("k") == b"v"

    asyncio.run(main())


def test_many_children_beside_commands(server: Server) -> None:
    """Each reply is its command's own while children come and go."""

    async def main() -> None:
        async with Redis(server.url) as redis:
            wrong: list[object] = []
            stop = asyncio.Event()

            async def ask(number: int) -> None:
                while not stop.is_set():
                    number += 1
                    if await redis.echo(number) != b"%d" % number:
                        wrong.append(number)

            async def act() -> None:
                with pytest.raises(RuntimeError, match=BEFORE):
                    await redis.echo("child")
                await redis.close()

            asking = [asyncio.ensure_future(ask(10**6 * number)) for number in range(8)]
            for _ in range(15):
                await in_child(act)
            stop.set()
            await asyncio.gather(*asking)
            assert wrong == []

    asyncio.run(main())
