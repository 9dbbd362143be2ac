"""Clients of a service: WebSockets and event streams that come back by themselves, and requests."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import websockets
from bed import Machine
from history import Seen


class Member:
    """A WebSocket in the room `log` that resumes by identifier."""

    def __init__(self, name: str, urls: list[str]) -> None:
        self.seen = Seen(name)
        self._urls = urls
        self._socket: Any = None
        self.joined = asyncio.Event()
        self.closed: list[int | None] = []
        """The codes by which its connections were closed; None: without a close frame."""

    async def run(self) -> None:
        turn = 0
        while True:
            url = self._urls[turn % len(self._urls)]
            turn += 1
            try:
                async with websockets.connect(
                    f"{url}/log?after={known(self)}", open_timeout=5, ping_interval=1,
                    ping_timeout=2, compression=None, max_queue=None,
                ) as socket:  # fmt: skip
                    self._socket = socket
                    self.seen.resumes += self.joined.is_set()
                    self.joined.set()
                    async for message in socket:
                        identifier, _, text = str(message).partition("\n")
                        self.seen.add(identifier, text)
            except websockets.ConnectionClosed as closed:
                self.closed.append(closed.rcvd.code if closed.rcvd is not None else None)
            except (OSError, websockets.WebSocketException, TimeoutError):
                pass  # it could not connect
            self._socket = None
            await asyncio.sleep(random.uniform(0.02, 0.1))  # a client comes back after a pause


def known(client: Member | Follower) -> str:
    """What a client says that it has seen last: if it comes back with nothing, it gets a gap and all."""
    if client.seen.last_id or not client.joined.is_set():
        return client.seen.last_id
    client.seen.gaps_expected += 1
    return "none"


class Present:
    """A WebSocket that makes a member present, and comes back by itself."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def run(self) -> None:
        while True:
            with suppress(OSError, websockets.WebSocketException, TimeoutError):
                async with websockets.connect(
                    self._url, open_timeout=5, compression=None
                ) as socket:
                    async for _ in socket:
                        pass
            await asyncio.sleep(random.uniform(0.02, 0.1))  # a client comes back after a pause


class Follower:
    """A stream of events that resumes by `Last-Event-ID`, as browsers do."""

    def __init__(self, name: str, addresses: list[tuple[str, int]]) -> None:
        self.seen = Seen(name)
        self._addresses = addresses
        self.joined = asyncio.Event()
        self.retry_s = 0.05
        self.retries = 0
        """How often a node has said when to come back."""

    async def run(self) -> None:
        turn = 0
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._follow(self._addresses[turn % len(self._addresses)])
            turn += 1
            await asyncio.sleep(self.retry_s * random.uniform(0.5, 1.0))  # as browsers do

    async def _follow(self, address: tuple[str, int]) -> None:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(*address)
        try:
            head = f"GET /news HTTP/1.1\r\nHost: a\r\nLast-Event-ID: {known(self)}\r\n\r\n"
            writer.write(head.encode())
            async with asyncio.timeout(5):
                head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n")[0]:
                return
            self.seen.resumes += self.joined.is_set()
            self.joined.set()
            waiting = b""
            while True:
                # Proxies cut chunks as they like.
                async with asyncio.timeout(20):  # heartbeats come every 15 s
                    size = int((await reader.readuntil(b"\r\n")).strip(), 16)
                    waiting += (await reader.readexactly(size + 2))[:size]
                if not size:
                    return
                *events, waiting = waiting.split(b"\n\n")
                for event in events:
                    self._take(event.decode())
        finally:
            writer.close()

    def _take(self, text: str) -> None:
        event = dict(line.partition(": ")[::2] for line in text.split("\n"))
        if "retry" in event:
            self.retry_s = int(event["retry"]) / 1000
            self.retries += 1
        if event.get("event") == "gap" or ("data" in event and "id" in event):
            self.seen.add(event.get("id", "gap"), event["data"])


class Requests:
    """Requests one after the other, on kept and on new connections; each has to be answered with 200."""

    def __init__(self, address: tuple[str, int], path: str) -> None:
        self._address = address
        self._path = path
        self.done = 0
        self.failed: list[str] = []
        self.is_over = False

    async def run(self) -> None:
        while not self.is_over:
            try:
                await self._some(random.choice([1, 1, 20]))
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.failed.append(repr(error))

    async def _some(self, count: int) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            for _ in range(count):
                writer.write(f"GET {self._path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                async with asyncio.timeout(20):
                    head = await reader.readuntil(b"\r\n\r\n")
                    status = head.split(b" ", 2)[1]
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
                    body = await reader.readexactly(length)
                if status == b"200":
                    self.done += 1
                else:
                    self.failed.append(f"{status.decode()} {body[:100]!r}")
                if b"connection: close" in head.lower() or self.is_over:
                    return
                await asyncio.sleep(0.001)  # its pace
        finally:
            writer.close()


class Sender:
    """Sends to the room over a WebSocket of its own; what is not confirmed by its echo is sent once more.

    A message counts as sent when it is on its way to a node that lives; the bed kills no node that has one.
    """

    def __init__(self, name: str, url: str, per_s: float) -> None:
        self.name = name
        self.sent = 0
        self._url = url
        self._pause_s = 1 / per_s
        self.is_over = False

    async def run(self) -> None:
        async with websockets.connect(
            f"{self._url}/log", compression=None, max_queue=None
        ) as socket:
            reading = asyncio.ensure_future(self._read(socket))
            while not self.is_over:
                await socket.send(f"{self.name} {self.sent}")
                self.sent += 1
                await asyncio.sleep(self._pause_s)  # its pace
            # What is sent is read by the node before it reads the close frame.
            await socket.close()
            reading.cancel()

    async def _read(self, socket: Any) -> None:
        with suppress(websockets.WebSocketException):
            async for _ in socket:
                pass


class OnMachine:
    """An event loop in a thread whose sockets are a machine's."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.loop = asyncio.new_event_loop()
        self._tasks: list[asyncio.Task[Any]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._machine.inside():
            self.loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = 60) -> Any:
        """The result of a coroutine there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout_s)

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin something that goes on."""

        async def begin() -> None:
            self._tasks.append(asyncio.ensure_future(work()))

        self.call(begin())

    def close(self) -> None:
        async def end() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self.call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(20)
        self.loop.close()
