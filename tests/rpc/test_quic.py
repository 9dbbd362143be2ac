"""Both clients over QUIC: ``quic://``. One call is one stream; calls, errors and ends are those of TCP."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
import trustme
from citius.errors import ConnectionLost, RpcError, RpcTimeout
from citius.rpc import AsyncClient, Client
from pki import Pki
from rig import TIMEOUT_S, application, wait_for

APP = application("session_calls_app")


class Site:
    """A server, and what its clients trust."""

    def __init__(self, serve, authority: trustme.CA, files: tuple[str, str], *more: str) -> None:
        self.authority = authority
        self.start = lambda *options: serve(
            APP, "--ssl-certfile", files[0], "--ssl-keyfile", files[1], "--http", "1,2,3", *more,
            *options,
        )  # fmt: skip

    def rules(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


@pytest.fixture
def site(serve, tmp_path: Path) -> Site:
    authority = trustme.CA()
    return Site(serve, authority, Pki(authority, tmp_path).issue("localhost", "127.0.0.1"))


def told_now(server) -> list[str]:
    trusts_all = ssl._create_unverified_context()
    with urlopen(f"https://127.0.0.1:{server.port}/events", context=trusts_all) as reply:
        return json.loads(reply.read())


async def told(server) -> list[str]:
    return await asyncio.to_thread(told_now, server)


def until_told(server, event: str) -> None:
    wait_for(lambda: event in told_now(server), event)


def test_calls_of_threads(site) -> None:
    server = site.start()
    with Client(f"quic://127.0.0.1:{server.port}", tls=site.rules()) as client:
        assert client.call("math.add", 1, 2) == 3
        assert client.call("math.add", named={"a": 5}) == 6
        assert client.call("math.sum", *[1.5] * 100_000) == 150_000
        assert list(client.map("math.add", [(n, 1) for n in range(2000)])) == [*range(1, 2001)]
        with pytest.raises(RpcError, match="no user 4") as raised:
            client.call("find", 4)
        assert (raised.value.type, raised.value.data) == ("Unknown", {"id": 4})
        client.notify("note", "from a thread")
        until_told(server, "from a thread")
        results: list[int] = []
        threads = [
            threading.Thread(target=lambda n=n: results.append(client.call("math.add", n, n)))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S)
        assert sorted(results) == [2 * n for n in range(8)]


def test_calls_of_coroutines(site) -> None:
    server = site.start()

    async def main() -> None:
        async with AsyncClient(f"quic://127.0.0.1:{server.port}", tls=site.rules()) as client:
            assert await client.call("math.add", 1, 2) == 3
            assert await client.call("math.sum", *[1.5] * 100_000) == 150_000
            calls = [client.call("math.add", n, 1) for n in range(2000)]
            assert await asyncio.gather(*calls) == [*range(1, 2001)]
            with pytest.raises(RpcError, match="no user 4"):
                await client.call("find", 4)
            await client.notify("note", "from a coroutine")
            while "from a coroutine" not in await told(server):
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


def test_a_call_that_is_given_up_is_cancelled_on_the_server(site) -> None:
    server = site.start()
    address = f"quic://127.0.0.1:{server.port}"
    with Client(address, tls=site.rules()) as client:
        with pytest.raises(RpcTimeout):
            client.call("wait", "thread", timeout_s=1)
        until_told(server, "thread is cancelled")

    async def main() -> None:
        async with AsyncClient(address, tls=site.rules()) as client:
            task = asyncio.create_task(client.call("wait", "task"))
            while "task waits" not in await told(server):
                await asyncio.sleep(0.005)
            task.cancel()
            while "task is cancelled" not in await told(server):
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


def test_notifications_leave_before_the_end(site) -> None:
    server = site.start()
    with Client(f"quic://127.0.0.1:{server.port}", tls=site.rules()) as client:
        client.notify("note", "the last word")
    until_told(server, "the last word")


def test_calls_go_on_after_a_restart_of_the_server(site) -> None:
    server = site.start("--workers", "2")
    port = server.port

    async def main() -> None:
        address = f"quic://127.0.0.1:{port}"
        async with AsyncClient(address, tls=site.rules(), timeout_s=TIMEOUT_S) as client:
            with Client(address, tls=site.rules(), timeout_s=TIMEOUT_S) as other:
                assert await client.call("math.add", 1, 2) == 3
                assert other.call("math.add", 1, 2) == 3
                first = await client.call("process")
                server.signal(signal.SIGHUP)
                while await client.call("process") == first:
                    await asyncio.sleep(0.005)
                assert await asyncio.to_thread(other.call, "math.add", 1, 2) == 3

    asyncio.run(asyncio.wait_for(main(), 2 * TIMEOUT_S))


@pytest.mark.parametrize("named", ["localhost", "elsewhere.example"])
def test_the_certificate_is_checked(site, named: str) -> None:
    server = site.start()
    rules = site.rules() if named != "localhost" else ssl.create_default_context()
    started = time.monotonic()
    with (
        Client(f"quic://127.0.0.1:{server.port}", tls=rules, server_name=named) as client,
        pytest.raises(ConnectionLost, match="certificate"),
    ):
        client.call("math.add", 1, 2, timeout_s=3 * TIMEOUT_S)
    # Attempts that are in vain would go on until the call's time is up.
    assert time.monotonic() - started < 3 * TIMEOUT_S


def test_what_does_not_serve_it(site, serve) -> None:
    with (
        Client("quic://127.0.0.1:9", tls=site.rules(), timeout_s=0.5) as client,
        pytest.raises(ConnectionLost, match="cannot connect to quic://127.0.0.1:9"),
    ):
        client.call("math.add", 1, 2)


@pytest.mark.parametrize(
    "address", ["quic://", "quic://unix:/x", "quic://host", "quic://tls://h:1"]
)
def test_addresses(address: str) -> None:
    with pytest.raises(ValueError, match=r"quic://HOST:PORT"):
        Client(address)
