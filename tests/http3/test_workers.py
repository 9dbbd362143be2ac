"""Several workers under HTTP/3: which one gets a packet, and what a restart, an end or a port changes."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from h3peer import Broken, H3Client, h3_client
from rig import Server, children, wait_for

CLIENTS = 8


async def worker_of(client: H3Client) -> int:
    return json.loads((await client.get("/about")).body)["pid"]


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(600):
        if await condition():
            return
        await asyncio.sleep(0.05)  # between two looks
    raise AssertionError(f"waited in vain for {what}")


class Load:
    """Clients that ask again and again; their connections are replaced, so that each worker has some."""

    def __init__(self, server: Server, *, rebinds: bool = False) -> None:
        self.server = server
        self.rebinds = rebinds
        self.ends = False
        self.answered = 0
        self.failures: list[str] = []
        self.workers: set[int] = set()

    async def run_one(self) -> None:
        while not self.ends:
            try:
                async with h3_client(self.server) as client:
                    await self.ask(client)
            except (TimeoutError, ConnectionError) as error:
                self.failures.append(f"no connection: {error!r}")

    async def ask(self, client: H3Client) -> None:
        asked = 0
        while not self.ends and asked < 100:
            stream = client.begin("/about")
            try:
                response = await client.response(stream)
            except Broken as error:
                # RFC 9114 §5.2: what comes behind a GOAWAY, or with it, was not accepted.
                if not str(error).startswith("0x100"):
                    self.failures.append(f"{asked}: {error}")
                return
            self.workers.add(json.loads(response.body)["pid"])
            self.answered += 1
            asked += 1
            if self.rebinds and asked % 20 == 0:
                await client.rebind()
            await asyncio.sleep(0.005)  # a load, not a flood


async def under_load(server: Server, act: Callable[[Load], Awaitable[None]], **options) -> Load:
    load = Load(server, **options)
    tasks = [asyncio.create_task(load.run_one()) for _ in range(CLIENTS)]
    try:
        await until(lambda: _is(load.answered > 50), "first responses")
        await act(load)
        before = load.answered
        await until(lambda: _is(load.answered > before + 50), "more responses")
    finally:
        load.ends = True
        await asyncio.gather(*tasks)
    return load


async def _is(value: bool) -> bool:
    return value


def test_clients_are_spread_and_stay(serve_h3) -> None:
    server = serve_h3("--workers", "3")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(h3_client(server)) for _ in range(24)]
            first = [await worker_of(client) for client in clients]
            assert len(set(first)) == 3
            for client in clients:
                await client.rebind()
            assert [await worker_of(client) for client in clients] == first

    asyncio.run(main())


def test_a_restart_loses_no_request(serve_h3) -> None:
    server = serve_h3("--workers", "2")

    async def act(load: Load) -> None:
        before = set(children(server))
        await until(lambda: _is(load.workers == before), "responses of both workers")
        server.signal(signal.SIGHUP)
        await until(lambda: _is("all workers are new" in server.err), "the restart")
        await until(lambda: _is(not before & set(children(server))), "the end of the old workers")
        await until(
            lambda: _is(load.workers == before | set(children(server))), "both new workers'"
        )

    load = asyncio.run(under_load(server, act))
    assert load.failures == []


def test_a_restart_while_ports_change(serve_h3) -> None:
    server = serve_h3("--workers", "2")

    async def act(load: Load) -> None:
        server.signal(signal.SIGHUP)
        await until(lambda: _is("all workers are new" in server.err), "the restart")

    load = asyncio.run(under_load(server, act, rebinds=True))
    assert load.failures == []


def test_a_long_response_survives_the_restart(serve_h3) -> None:
    """Its packets come to the new worker, which hands them on to the one that drains."""
    server = serve_h3("--workers", "1", "--supervisor")

    async def main() -> None:
        async with h3_client(server) as client:
            old = await worker_of(client)
            slow = client.begin("/slow/4000")
            await client.get("/")
            server.signal(signal.SIGHUP)
            await until(lambda: _is("all workers are new" in server.err), "the restart")
            await client.rebind()
            client._quic.send_ping(1)
            client.transmit()
            async with h3_client(server) as other:
                assert await worker_of(other) != old
            assert (await client.response(slow)).body == b"slow"

    asyncio.run(main())


def test_a_worker_more_and_a_worker_less(serve_h3) -> None:
    server = serve_h3("--workers", "2")

    async def act(load: Load) -> None:
        for number, count in ((signal.SIGTTIN, 3), (signal.SIGTTOU, 2), (signal.SIGTTIN, 3)):
            before = load.answered
            server.signal(number)
            await until(lambda count=count: _is(len(children(server)) == count), f"{count} workers")
            await until(lambda before=before: _is(load.answered > before + 50), "more responses")

    load = asyncio.run(under_load(server, act))
    assert load.failures == []


def test_a_place_that_is_taken_again_while_its_worker_drains(serve_h3) -> None:
    server = serve_h3("--workers", "2")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(h3_client(server)) for _ in range(16)]
            streams = [client.begin("/slow/4000") for client in clients]
            before = {await worker_of(client) for client in clients}
            assert len(before) == 2
            server.signal(signal.SIGTTOU)
            await until(lambda: _is("one worker less" in server.err), "a worker less")
            server.signal(signal.SIGTTIN)
            await until(lambda: _is(len(set(children(server)) - before) == 1), "a new worker")
            for client, stream in zip(clients, streams, strict=True):
                assert (await client.response(stream)).body == b"slow"
        async with AsyncExitStack() as stack:
            for _ in range(16):
                client = await stack.enter_async_context(h3_client(server))
                assert (await client.get("/")).status == 200

    asyncio.run(main())


def test_reactor_threads_have_sockets_of_their_own(serve_h3) -> None:
    server = serve_h3("--reactor-threads", "2")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(8):
                client = await stack.enter_async_context(h3_client(server))
                assert (await client.get("/large/100")).status == 200
                await client.rebind()
                assert (await client.get("/")).status == 200

    asyncio.run(main())


def test_workers_in_the_sandbox(serve_h3) -> None:
    server = serve_h3("--workers", "2", "--sandbox", "--sandbox-connect", "udp")

    async def main() -> None:
        async with h3_client(server) as client:
            assert (await client.get("/large/100")).status == 200

    asyncio.run(main())


def test_the_connections_of_a_killed_worker_are_reset_at_once(serve_h3) -> None:
    server = serve_h3("--workers", "1", "--supervisor")

    async def main() -> None:
        async with h3_client(server) as client:
            pid = await worker_of(client)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: pid not in children(server) and children(server), "a new worker")
            stream = client.begin("/")
            with pytest.raises(Broken, match="stateless reset"):
                await asyncio.wait_for(client.response(stream), 10)
            async with h3_client(server) as other:
                assert (await other.get("/")).status == 200

    asyncio.run(main())


def test_a_new_server_takes_over(serve_h3) -> None:
    server = serve_h3("--workers", "2")

    async def act(load: Load) -> None:
        old = set(load.workers)
        server.signal(signal.SIGUSR2)
        await until(lambda: _is(len(load.workers - old) >= 1), "a new worker")
        await until(lambda: _is(server.process.poll() is not None), "the end of the old server")

    load = asyncio.run(under_load(server, act))
    try:
        assert load.failures == []
    finally:
        for pid in load.workers:
            _end_server_of(pid)


def _end_server_of(pid: int) -> None:
    """The new server is nobody's child here; its workers name it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return
    if parent > 1 and parent != os.getpid():
        os.kill(parent, signal.SIGTERM)
