"""``citius.rpc``: both clients, against a real server and against servers that misbehave."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgpack
import msgspec
import pytest
from citius.rpc import AsyncClient, Client, ConnectionLost, RpcError, RpcTimeout
from citius.rpc.link import Link
from rig import free_port, wait_for
from rpc_rig import rpc_address


class User(msgspec.Struct):
    id: int
    name: str


@pytest.fixture
def client(procedures) -> Iterator[Client]:
    with Client(rpc_address(procedures), timeout_s=10) as client:
        yield client


class Address(str):
    """Where a server listens."""

    closed = 0
    """How many connections it has closed."""


@contextmanager
def misbehaving(*behaviours: Callable[[socket.socket], object]) -> Iterator[Address]:
    """A server that does with each connection in turn what a function says; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(f"127.0.0.1:{listener.getsockname()[1]}")

        def serve() -> None:
            for behave in behaviours:
                made, _ = listener.accept()
                with made:
                    made.settimeout(10)
                    behave(made)
                address.closed += 1

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield address
        finally:
            thread.join(30)
            assert not thread.is_alive()


def answer(made: socket.socket, count: int = 1, result: object = "ok") -> list[object]:
    """Answer so many requests; what they were."""
    unpacker, asked = msgpack.Unpacker(), []
    while len(asked) < count:
        unpacker.feed(made.recv(65536))
        for kind, msgid, *_ in unpacker:
            assert kind == 0
            asked.append(msgid)
            made.sendall(msgpack.packb([1, msgid, None, result]))
    return asked


def hear(made: socket.socket) -> object:
    """One request, which is not answered."""
    unpacker = msgpack.Unpacker()
    while True:
        unpacker.feed(made.recv(65536))
        for message in unpacker:
            return message


GOODBYE = msgpack.packb([2, "$/goodbye", []])


def test_calls(client: Client) -> None:
    assert client.call("hello") == "Hello World!"
    assert client.call("sum", named={"a": 1, "b": 2}) == 3
    assert client.call("users.get", 5, type=User) == User(5, "nobody")
    with pytest.raises(msgspec.ValidationError):
        client.call("hello", type=int)
    with pytest.raises(RpcError) as failed:
        client.call("users.get", 101)
    assert (failed.value.type, failed.value.data) == ("UnknownUser", {"id": 101})
    client.notify("note", "from the client")
    wait_for(lambda: "from the client" in client.call("seen")["noted"], "the notification")


def test_a_notification_before_the_close_arrives(procedures) -> None:
    address = rpc_address(procedures)
    with Client(address) as client:
        client.submit("sleep", 30, "under way")
        client.notify("note_later", 0.1, "before the close of a thread's client")

    async def main() -> None:
        async with AsyncClient(address) as client:
            await client.notify("note_later", 0.1, "before the close of a coroutine's client")

    asyncio.run(main())
    names = {f"before the close of a {which}'s client" for which in ("thread", "coroutine")}
    with Client(address) as client:
        wait_for(lambda: names <= {*client.call("seen")["noted"]}, "the notifications")


def test_many_in_flight_from_one_thread(client: Client) -> None:
    calls = [client.submit("sleep", 0.2, str(n)) for n in range(50)]
    started = time.monotonic()
    assert [call.result() for call in calls] == [str(n) for n in range(50)]
    assert time.monotonic() - started < 9, "one after the other would have taken ten seconds"
    assert list(client.map("sum", ((n, 1) for n in range(1000)))) == list(range(1, 1001))
    with pytest.raises(RpcError):
        list(client.map("users.get", [(1,), (101,), (2,)]))


def test_many_threads_share_a_connection(client: Client) -> None:
    wrong: list[object] = []

    def work(worker: int) -> None:
        for n in range(100):
            got = client.call("sum", worker * 1000, n)
            if got != worker * 1000 + n:
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_who_waits_longer_goes_on_reading(client: Client) -> None:
    results: list[str] = []

    def work(seconds: float) -> None:
        results.append(client.call("sleep", seconds, str(seconds)))

    threads = [threading.Thread(target=work, args=(s,)) for s in (1.5, 0.5, 1.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == ["0.5", "1.0", "1.5"]


def test_more_than_both_sides_buffer(client: Client) -> None:
    # Neither side may wait for the other to read first.
    large = b"x" * 100_000
    calls = [client.submit("echo", large) for _ in range(200)]
    assert all(call.result() == large for call in calls)


def test_a_timeout_cancels_at_the_server(client: Client) -> None:
    with pytest.raises(RpcTimeout, match="no response to sleep in time"):
        client.call("sleep", 30, "timed out", timeout_s=0.1)
    wait_for(lambda: "timed out" in client.call("seen")["cancelled"], "the cancellation")
    call = client.submit("sleep", 30, "taken back")
    call.cancel()
    with pytest.raises(RpcTimeout, match="was cancelled"):
        call.result()
    wait_for(lambda: "taken back" in client.call("seen")["cancelled"], "the cancellation")


def test_nobody_listens() -> None:
    address = f"127.0.0.1:{free_port()}"
    with Client(address) as client, pytest.raises(ConnectionLost, match="cannot connect") as lost:
        client.call("hello", timeout_s=0.2)
    assert not lost.value.was_sent
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Client("nowhere")


def test_a_call_that_may_have_been_executed_is_not_sent_again() -> None:
    with misbehaving(hear, answer) as address, Client(address, timeout_s=5) as client:
        with pytest.raises(ConnectionLost) as lost:
            client.call("pay")
        assert lost.value.was_sent
        assert client.call("pay") == "ok", "the next call connects again"


def test_an_idempotent_call_is_sent_again() -> None:
    with misbehaving(hear, hear, answer) as address, Client(address, timeout_s=5) as client:
        assert client.call("read", idempotent=True) == "ok"


def test_after_a_goodbye_calls_are_sent_again() -> None:
    def leave(made: socket.socket) -> None:
        answer(made)
        hear(made)
        made.sendall(GOODBYE)

    with misbehaving(leave, answer) as address, Client(address, timeout_s=5) as client:
        assert client.call("pay") == "ok"
        assert client.call("pay") == "ok"


def test_an_end_between_two_calls_goes_unnoticed() -> None:
    with misbehaving(answer, answer) as address, Client(address, timeout_s=5) as client:
        assert client.call("pay") == "ok"
        wait_for(lambda: address.closed == 1, "the server to hang up")
        assert client.call("pay") == "ok"


def test_what_is_not_messagepack_breaks_the_connection() -> None:
    def nonsense(made: socket.socket) -> None:
        hear(made)
        made.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with (
        misbehaving(nonsense) as address,
        Client(address, timeout_s=5) as client,
        pytest.raises(ConnectionLost, match="invalid MessagePack-RPC message"),
    ):
        client.call("pay")


def test_notifications_of_a_server_and_errors_of_others() -> None:
    heard: list[object] = []

    def talk(made: socket.socket) -> None:
        _, msgid, *_ = hear(made)  # pyright: ignore
        made.sendall(msgpack.packb([2, "news", [1]]) + msgpack.packb([1, 12345, None, 1]))
        made.sendall(msgpack.packb([1, msgid, "no such thing", None]))

    def listen(name: str, params: object) -> None:
        heard.append((name, params))

    with (
        misbehaving(talk) as address,
        Client(address, timeout_s=5, on_notification=listen) as client,
        pytest.raises(RpcError, match="no such thing"),
    ):
        client.call("pay")
    assert heard == [("news", [1])]


def test_closing_ends_what_waits(procedures) -> None:
    client = Client(rpc_address(procedures))
    before = client.call("seen")["called"]
    errors: list[Exception] = []

    def wait() -> None:
        try:
            client.call("sleep", 30)
        except ConnectionLost as error:
            errors.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    with Client(rpc_address(procedures)) as other:
        wait_for(lambda: other.call("seen")["called"] - before == 3, "three calls")
    client.close()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 3
    with pytest.raises(ConnectionLost, match="closed"):
        client.call("hello")


def test_a_close_is_no_response_to_what_it_takes_back(
    procedures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server responds to calls that are taken back; the caller is told of the close all the same."""
    flush = Link.flush
    has_responded = threading.Event()

    def flush_and_wait(link: Link, *arguments: Any, **more: Any) -> object:
        result = flush(link, *arguments, **more)
        if threading.current_thread() is threading.main_thread():
            has_responded.wait(0.5)  # never set: the response comes meanwhile, if there is one
        return result

    monkeypatch.setattr(Link, "flush", flush_and_wait)
    client = Client(rpc_address(procedures))
    errors: list[Exception] = []

    def wait() -> None:
        try:
            client.call("sleep", 30)
        except Exception as error:
            errors.append(error)

    before = client.call("seen")["called"]
    thread = threading.Thread(target=wait)
    thread.start()
    with Client(rpc_address(procedures)) as other:
        wait_for(lambda: other.call("seen")["called"] - before == 1, "the call")
    client.close()
    thread.join(30)
    assert [type(error) for error in errors] == [ConnectionLost]


# --- coroutines ---------------------------------------------------------------------------------


def run(main: Callable[[AsyncClient], object], address: str, **options: object) -> None:
    async def bounded() -> None:
        async with AsyncClient(address, **options) as client:  # pyright: ignore
            await asyncio.wait_for(main(client), 15)  # pyright: ignore

    asyncio.run(bounded())


def test_async_calls(procedures) -> None:
    async def main(client: AsyncClient) -> None:
        assert await client.call("hello") == "Hello World!"
        assert await client.call("users.get", 5, type=User) == User(5, "nobody")
        with pytest.raises(RpcError, match="there is no user 101"):
            await client.call("users.get", 101)
        results = await asyncio.gather(*(client.call("sum", n, n) for n in range(1000)))
        assert results == [2 * n for n in range(1000)]
        large = b"x" * 100_000
        assert set(await asyncio.gather(*(client.call("echo", large) for _ in range(100)))) == {
            large
        }
        await client.notify("note", "from a coroutine")
        while "from a coroutine" not in (await client.call("seen"))["noted"]:
            await asyncio.sleep(0.01)

    run(main, rpc_address(procedures))


def test_async_timeouts_and_cancellations_reach_the_server(procedures) -> None:
    async def main(client: AsyncClient) -> None:
        with pytest.raises(RpcTimeout):
            await client.call("sleep", 30, "async timeout", timeout_s=0.1)
        before = (await client.call("seen"))["called"]
        task = asyncio.create_task(client.call("sleep", 30, "async cancel"))
        while (await client.call("seen"))["called"] == before:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not {"async timeout", "async cancel"} <= {*(await client.call("seen"))["cancelled"]}:
            await asyncio.sleep(0.01)

    run(main, rpc_address(procedures))


def test_async_connections_that_end() -> None:
    def leave(made: socket.socket) -> None:
        hear(made)
        made.sendall(GOODBYE)

    async def main(client: AsyncClient) -> None:
        with pytest.raises(ConnectionLost) as lost:
            await client.call("pay")
        assert lost.value.was_sent
        assert await client.call("read", idempotent=True) == "ok"
        while address.closed < 3:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)  # the turn of the loop in which the client sees it
        assert await client.call("pay") == "ok"

    with misbehaving(hear, hear, answer, leave, answer) as address:
        run(main, address, timeout_s=5)


def test_async_nobody_listens() -> None:
    async def main(client: AsyncClient) -> None:
        with pytest.raises(ConnectionLost, match="cannot connect"):
            await client.call("hello", timeout_s=0.2)

    address = f"127.0.0.1:{free_port()}"
    run(main, address)


def test_greenlets_share_a_connection(procedures) -> None:
    pytest.importorskip("gevent")
    program = f"""
        from gevent import monkey; monkey.patch_all()
        import gevent, time
        from citius.rpc import Client
        client = Client({rpc_address(procedures)!r}, timeout_s=60)
        started = time.monotonic()
        jobs = [gevent.spawn(client.call, "sleep", 0.5, str(n)) for n in range(20)]
        gevent.joinall(jobs, timeout=60)
        assert [job.value for job in jobs] == [str(n) for n in range(20)], [job.value for job in jobs]
        assert time.monotonic() - started < 9
        client.close()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=90)
