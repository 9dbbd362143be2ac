"""Requests through a proxy that cuts, delays and splits at any byte: each gets its response or an error.

Once by the client alone, once through a gateway. With ``-m slow`` they are 100 000.
"""

# pyright: basic

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from citius.http import Client, Limits, Timeout
from citius.http.errors import (
    ConnectError,
    ReadError,
    RemoteProtocolError,
    RequestError,
    WriteError,
)
from rig import application

GATEWAY = application("direct_gateway_app")
AT_ONCE = 24
SIZES = (0, 1, 100, 3_000, 40_000)
LOST = (ConnectError, ReadError, WriteError, RemoteProtocolError)
"""What a connection that is cut may come to."""
COUNTS = [
    pytest.param(1_500, id="some"),
    pytest.param(100_000, id="many", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
]


def content(number: int) -> bytes:
    dice = random.Random(number)
    return b"%d:" % number + dice.randbytes(dice.choice(SIZES))


@dataclass
class Behind:
    """A server that is right; ``seen`` has how often each request has come in full."""

    seen: Counter[str] = field(default_factory=Counter)
    open: int = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            with suppress(OSError, EOFError, asyncio.IncompleteReadError):
                while True:
                    await self._answer(reader, writer)
        finally:
            writer.close()
            self.open -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        method, target = head.split(b" ")[:2]
        number = int(target.rsplit(b"/", 1)[1])
        body = b""
        if b"content-length: " in head:
            size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            body = await reader.readexactly(size)
        elif b"transfer-encoding: chunked" in head:
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        self.seen[f"{method.decode()} {number}"] += 1
        given = content(number)
        if method == b"post":
            assert body == given, f"content of {number} has changed on its way"
        fields = b"x-number: %d\r\nx-digest: %s\r\n" % (
            number,
            hashlib.sha256(given).hexdigest().encode(),
        )
        if number % 3 == 0:
            whole = b"%x\r\n%s\r\n0\r\nx-last: %d\r\n\r\n" % (len(given), given, number)
            fields += b"transfer-encoding: chunked\r\n"
        else:
            whole = given
            fields += b"content-length: %d\r\n" % len(given)
        writer.write(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n" + whole)
        await writer.drain()


@dataclass
class Proxy:
    """Passes bytes on to a port, in pieces of any size, until it cuts the connection at any byte."""

    port: int
    dice: random.Random
    open: int = 0
    cut: int = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            other = await asyncio.open_connection("127.0.0.1", self.port)
            # Each is cut: most within some requests, some within the first one.
            left = [self.dice.randrange(self.dice.choice((400, 120_000, 400_000)))]
            both = [
                asyncio.ensure_future(self._pass(reader, other[1], left)),
                asyncio.ensure_future(self._pass(other[0], writer, left)),
            ]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._end(other[1])
        finally:
            self._end(writer)
            self.open -= 1

    def _end(self, writer: asyncio.StreamWriter) -> None:
        if self.dice.random() < 0.5:
            writer.transport.abort()
        else:
            writer.close()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int]
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                while data:
                    size = min(len(data), self.dice.choice((1, 7, 500, 5_000, 65_536)))
                    is_last = size >= left[0]
                    piece, data = data[: min(size, left[0])], data[size:]
                    left[0] -= len(piece)
                    writer.write(piece)
                    await writer.drain()
                    if is_last:
                        self.cut += 1
                        return
                    if self.dice.random() < 0.05:
                        await asyncio.sleep(self.dice.random() / 500)


async def storm(client: Client, prefix: str, count: int) -> Counter[str]:
    """Sends requests, several at once; what has become of them."""
    numbers = iter(range(count))
    became: Counter[str] = Counter()

    async def some() -> None:
        for number in numbers:
            given = content(number)
            is_post = number % 4 == 1
            try:
                if is_post:
                    response = await client.post(f"{prefix}{number}", content=given)
                else:
                    response = await client.get(f"{prefix}{number}")
            except RequestError as error:
                became[type(error).__name__] += 1
                continue
            became[str(response.status_code)] += 1
            if response.status_code != 200:
                continue
            assert response.headers["x-number"] == str(number)
            assert response.content == given
            assert response.headers["x-digest"] == hashlib.sha256(given).hexdigest()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return became


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("way", ["client", "gateway"])
def test_each_request_gets_its_own_response(serve, way: str, count: int) -> None:
    asyncio.run(all_of_it(serve, way, count))


async def all_of_it(serve, way: str, count: int) -> None:
    behind = Behind()
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: errors.append(about))
    server = await asyncio.start_server(behind, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1], random.Random(count))
    hostile = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = hostile.sockets[0].getsockname()[1]
    prefix, gateway = "/", None
    if way == "gateway":
        env = {"UPSTREAMS": f"http://127.0.0.1:{port}"}
        gateway = await asyncio.to_thread(serve, GATEWAY, "--workers", "1", env=env)
        port, prefix = gateway.port, "/direct/as/"
    client = Client(
        f"http://127.0.0.1:{port}",
        timeout=Timeout(60),
        limits=Limits(connections_per_origin_max=16),
    )
    became = await storm(client, prefix, count)
    assert became.total() == count
    assert became["200"] > count / 3, became
    assert proxy.cut > count / 100, became
    assert set(became) <= {"200", "502", *(one.__name__ for one in LOST)}, became
    # What may not be repeated was not: a request that has come twice was a GET.
    twice = [
        name for name, times in behind.seen.items() if times > 1 and not name.startswith("get")
    ]
    assert twice == []
    stats = client.stats()
    assert (stats["open"], stats["waiting"], stats["connecting"]) == (stats["idle"], 0, 0)
    await client.close()
    if gateway is not None:
        found = await asyncio.to_thread(lambda: gateway.get("/stats").body)
        assert b'"waiting":0' in found
        await asyncio.to_thread(gateway.stop)
    for listener in (hostile, server):
        listener.close()
    async with asyncio.timeout(30):
        while proxy.open or behind.open:
            await asyncio.sleep(0.01)
    assert errors == []
