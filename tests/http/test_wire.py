"""``Client`` over sockets: connections that servers close, streams in threads, redirects, guards, time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from citius.http import (
    AddressRefused,
    Client,
    ClientClosed,
    ConnectError,
    Limits,
    ReadError,
    ReadTimeout,
    Timeout,
    TooLarge,
    TotalTimeout,
    deadline,
)
from http_peer import OK, Peer, Talk, answering


async def test_connections_that_are_all_closed_at_once_fail_no_get() -> None:
    """A server that closes idle connections closes all of them at about the same time."""
    count = 12
    gate, closing = threading.Barrier(count), threading.Event()

    def act(talk: Talk) -> None:
        if talk.number <= count:
            talk.request()
            gate.wait(10)  # so that each request has a connection of its own
            talk.say(OK)
            closing.wait(10)
            return
        while talk.request() is not None:
            talk.say(OK)

    with Peer(act) as peer:
        async with Client(f"http://127.0.0.1:{peer.port}") as client:
            await asyncio.gather(*(client.get("/") for _ in range(count)))
            assert client.stats()["idle"] == count
            closing.set()
            while peer.open:
                time.sleep(0.001)  # the loop does not see the ends before it sends
            assert (await client.get("/")).content == b"ok"
            assert peer.accepted == count + 1


def test_streams_in_threads() -> None:
    """A head that comes before the content does not make it a response that was given up."""

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            talk.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
            time.sleep(0.002)  # the rest comes later
            talk.say(b"6\r\n world\r\n0\r\n\r\n")

    with Peer(act) as peer, Client(f"http://127.0.0.1:{peer.port}").sync as client:

        def read(_: int) -> bytes:
            with client.stream("GET", "/") as response:
                return response.read()

        assert {read(number) for number in range(150)} == {b"hello world"}
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(read, range(150))) == {b"hello world"}


async def test_redirects() -> None:
    def act(talk: Talk) -> None:
        while request := talk.request():
            if request[0].startswith("POST /old "):
                talk.say(b"HTTP/1.1 308 Moved\r\nlocation: /new\r\ncontent-length: 3\r\n\r\nold")
            else:
                line = f"{request[0]} {request[1].decode()}".encode()
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(line), line))

    with Peer(act) as peer:
        async with Client(f"http://127.0.0.1:{peer.port}", follow_redirects=True) as client:
            response = await client.post("/old", json={"a": 1})
            assert response.text == 'POST /new HTTP/1.1 {"a":1}'
            assert response.history[0].text == "old"
            assert response.is_connection_reused
            assert peer.accepted == 1


async def test_addresses_that_are_not_public() -> None:
    """Also where a redirect leads there, and by whatever name (``localhost``, decimal, IPv6 forms)."""

    def act(talk: Talk) -> None:
        raise AssertionError("nothing is to be connected to")

    with Peer(act) as peer:
        async with Client(allow="public", trust_env=False) as client:
            for host in (
                "127.0.0.1",
                "localhost",
                "2130706433",
                "0x7f.1",
                "0",
                "[::ffff:127.0.0.1]",
            ):
                with pytest.raises(AddressRefused):
                    await client.get(f"http://{host}:{peer.port}/")
        assert peer.accepted == 0

    def leads(talk: Talk) -> None:
        talk.request()
        talk.say(
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2:1/\r\ncontent-length: 0\r\n\r\n"
        )

    with Peer(leads) as peer:
        async with Client(allow=["127.0.0.1/32"], follow_redirects=True, trust_env=False) as client:
            with pytest.raises(AddressRefused, match=r"127\.0\.0\.2"):
                await client.get(f"http://127.0.0.1:{peer.port}/")


async def test_time() -> None:
    leave = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        leave.wait(10)

    with Peer(act) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        async with Client(url) as client:
            with pytest.raises(ReadTimeout, match=r"127\.0\.0\.1.*0\.1 s") as caught:
                await client.get("/", timeout=Timeout(read=0.1))
            assert (caught.value.method, caught.value.url) == ("GET", f"{url}/")
            assert caught.value.after_s is not None
            with pytest.raises(TotalTimeout):
                await client.get("/", timeout=Timeout(total=0.1))
            leave.set()


async def test_ends() -> None:
    with Peer(lambda talk: talk.request()) as peer:
        async with Client(f"http://127.0.0.1:{peer.port}") as client:
            with pytest.raises(ReadError):
                await client.post("/", content=b"x")
            with pytest.raises(ConnectError) as caught:
                await client.get("http://127.0.0.1:1/")
            assert caught.value.is_unsent
    with pytest.raises(ClientClosed):
        await client.get("/")


async def test_a_whole_response_has_a_limit() -> None:
    with Peer(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n" + b"x" * 2000)) as peer:
        limits = Limits(body_bytes_max=1000)
        async with Client(f"http://127.0.0.1:{peer.port}", limits=limits) as client:
            with pytest.raises(TooLarge):
                await client.get("/")


def test_a_client_on_several_loops_and_in_threads() -> None:
    with Peer(answering()) as peer:
        client = Client(f"http://127.0.0.1:{peer.port}")

        async def main() -> bytes:
            return (await client.get("/")).content

        for _ in range(3):
            assert asyncio.run(main()) == b"ok"
            assert client.sync.get("/").content == b"ok"
        client.sync.close()


async def test_many_clients_that_leave_cost_no_place() -> None:
    """httpx's pool is dead for good after that."""
    slow = threading.Event()

    def act(talk: Talk) -> None:
        while request := talk.request():
            if " /slow " in request[0]:
                slow.wait(0.05)
            talk.say(OK)

    with Peer(act) as peer:
        limits = Limits(connections_max=10, connections_per_origin_max=10)
        async with Client(f"http://127.0.0.1:{peer.port}", limits=limits) as client:

            async def left(number: int) -> None:
                task = asyncio.ensure_future(client.get("/slow"))
                await asyncio.sleep(number % 60 / 1000)  # at any moment
                task.cancel()
                await asyncio.wait([task])

            for start in range(0, 240, 40):
                await asyncio.gather(*(left(number) for number in range(start, start + 40)))
            results = await asyncio.gather(*(client.get("/") for _ in range(30)))
            assert {one.content for one in results} == {b"ok"}
            assert client.stats()["open"] <= 10
            assert client.stats()["waiting"] == 0


def first_piece_only(leave: threading.Event) -> Callable[[Talk], None]:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx")
        leave.wait(10)

    return act


async def test_a_deadline_ends_streamed_content() -> None:
    """It ended with the head: a peer that sends a byte at a time kept its caller for ever."""
    leave = threading.Event()
    with Peer(first_piece_only(leave)) as peer:
        async with Client(f"http://127.0.0.1:{peer.port}", timeout=Timeout(60)) as client:
            with deadline(2):
                async with asyncio.timeout(10), client.stream("GET", "/") as response:
                    with pytest.raises(TotalTimeout, match="the whole request"):
                        await response.read()
            # The total is that of the head.
            limit = Timeout(3, total=2)
            async with client.stream("GET", "/", timeout=limit) as response:
                with pytest.raises(ReadTimeout):
                    await response.read()
            leave.set()


def test_a_deadline_ends_streamed_content_in_threads() -> None:
    """Before each piece: one that does not come has the time of ``read``."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        with suppress(OSError):
            for _ in range(1000):
                talk.say(b"x")
                time.sleep(0.02)  # a peer that takes its time

    with Peer(act) as peer:
        client = Client(f"http://127.0.0.1:{peer.port}", timeout=Timeout(60))
        with deadline(2), client.sync.stream("GET", "/") as response, pytest.raises(TotalTimeout):
            response.read()
        client.sync.close()
