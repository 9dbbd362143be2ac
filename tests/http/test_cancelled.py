"""No connection and no place in line is kept by what is cancelled at any await (issue 32 C4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from cancelling import at_every_await
from citius.http import CircuitBreaker, Client, Hedge, Limits, RequestError, Retry
from http_peer import Peer, Talk

Use = Callable[[Client], Coroutine[Any, Any, None]]


def act(talk: Talk) -> None:
    """It answers in two pieces, and redirects."""
    while request := talk.request():
        target = request[0].split()[1]
        if target == "/moved":
            talk.say(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n")
        elif target == "/busy":
            talk.say(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
        else:
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")
            talk.say(b"k")


async def get(client: Client) -> None:
    assert (await client.get("/")).content == b"ok"


async def redirected(client: Client) -> None:
    assert (await client.get("/moved", follow_redirects=True)).content == b"ok"


async def busy(client: Client) -> None:
    assert (await client.get("/busy")).status_code == 503


async def post(client: Client) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"piece"
            await asyncio.sleep(0)

    assert (await client.post("/", content=body())).content == b"ok"


async def stream(client: Client) -> None:
    async with client.stream("GET", "/") as response:
        assert b"".join([piece async for piece in response.iter_bytes()]) == b"ok"


async def left_early(client: Client) -> None:
    async with client.stream("GET", "/"):
        await asyncio.sleep(0)


WAYS: dict[str, tuple[Use, dict[str, Any]]] = {
    "get": (get, {}),
    "redirected": (redirected, {}),
    "retried": (busy, {"retry": Retry(attempts_max=2, backoff_s=0.001, budget_ratio=10)}),
    "hedged": (get, {"hedge": Hedge(after_s=0.0001)}),
    "breaker": (busy, {"breaker": CircuitBreaker(failures=1000)}),
    "post": (post, {}),
    "stream": (stream, {}),
    "left early": (left_early, {}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("requests_max", [None, 1])
def test_nothing_is_kept(way: str, requests_max: int | None) -> None:
    use, options = WAYS[way]

    async def steps() -> None:
        limits = Limits(
            connections_max=2,
            connections_per_origin_max=2,
            requests_per_origin_max=requests_max,
        )
        with Peer(act) as peer:
            origin = f"http://127.0.0.1:{peer.port}"
            async with Client(origin, limits=limits, **options) as client:
                async for where in at_every_await(lambda: use(client)):
                    # A place that is kept is kept for good.
                    calls = [get(client) for _ in range(5)]
                    async with asyncio.timeout(10):
                        for failure in await asyncio.gather(*calls, return_exceptions=True):
                            assert failure is None, f"{where}: {failure!r}"
                    stats = client.stats()
                    assert stats["waiting"] == 0, where
                    assert stats["open"] <= 2, where

    asyncio.run(steps())


async def test_a_start_that_is_cancelled() -> None:
    """A client that is closed while it connects leaves no connection open."""
    with Peer(act) as peer:

        async def use() -> None:
            async with Client(f"http://127.0.0.1:{peer.port}") as client:
                await get(client)

        async for _ in at_every_await(use):
            with suppress(RequestError):
                await use()
        async with asyncio.timeout(10):
            while peer.open:
                await asyncio.sleep(0.001)
