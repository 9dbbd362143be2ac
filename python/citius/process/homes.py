"""Where a client lives: the thread that reads and writes its connections, and what that thread waits by.

On an asyncio loop that is the loop (or the reactor that serves on it); under gevent the hub; elsewhere an
event loop in a thread of the client's own. What changes a client's connections runs there, in coroutines that
a home steps: in tasks where there is a loop, under gevent in greenlets, where nothing that they await
suspends.
Tests: ``tests/redis/test_serial.py``, ``tests/http/``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from citius.observability import logging
from citius.threads import Thread, run_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    Callback = Callable[[], object]

_T = TypeVar("_T")
_READ, _WRITE = 1, 2


def find_kind() -> tuple[str, Any]:
    """What there is here: ``loop`` and the one that runs, ``hub`` and gevent's, or ``thread``: neither."""
    try:
        return "loop", asyncio.get_running_loop()
    except RuntimeError:
        pass
    if (monkey := sys.modules.get("gevent.monkey")) is not None and monkey.is_module_patched(
        "threading"
    ):
        import gevent

        return "hub", gevent.get_hub()
    local = sys.modules.get("gevent._hub_local")
    hub = local.get_hub_if_exists() if local is not None else None
    return ("thread", None) if hub is None else ("hub", hub)


def find() -> LoopHome | HubHome:
    """The home for a client that is opened here."""
    kind, found = find_kind()
    if kind == "loop":
        return LoopHome(found)
    return HubHome(found) if kind == "hub" else ThreadHome()


class LoopHome:
    """An asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop | None = loop
        self._loop = loop
        self._thread = threading.get_ident()
        self._tasks: set[asyncio.Task[None]] = set()

    def is_here(self) -> bool:
        """Whether this is the loop's thread."""
        return threading.get_ident() == self._thread

    def run(self, callback: Callback) -> None:
        """Call ``callback`` on the loop."""
        if self.is_here():
            self._loop.call_soon(callback)
        else:
            # A loop that is closed serves no connection any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback)

    def later(self, delay_s: float, callback: Callback) -> Callback:
        """Call ``callback`` after ``delay_s``."""
        return self._loop.call_later(delay_s, callback).cancel

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Callback:
        """Step a coroutine in a task."""
        task = self._loop.create_task(coroutine)
        # The loop keeps tasks weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task.cancel

    def watch(
        self, made: socket.socket, on_readable: Callback | None, on_writable: Callback | None
    ) -> None:
        """Watch a socket."""
        if on_readable is None:
            self._loop.remove_reader(made)
        else:
            self._loop.add_reader(made, on_readable)
        if on_writable is None:
            self._loop.remove_writer(made)
        else:
            self._loop.add_writer(made, on_writable)

    async def resolve(self, host: str, port: int) -> list[tuple[int, Any]]:
        """The addresses of a name: families and what sockets connect to; in another thread."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(one[0], one[4]) for one in found]

    async def connect_to(self, family: int, where: Any) -> socket.socket:
        """A connected socket that does not block."""
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            await self._loop.sock_connect(made, where)
        except BaseException:
            made.close()
            raise
        return made

    async def send_all(self, made: socket.socket, data: bytes) -> None:
        """Send on a socket that is not watched."""
        await self._loop.sock_sendall(made, data)

    async def receive(self, made: socket.socket, size: int) -> bytes:
        """Read from a socket that is not watched; empty at its end."""
        return await self._loop.sock_recv(made, size)

    async def within(self, timeout_s: float | None, work: Awaitable[_T]) -> _T:
        """The result of ``work``.

        Raises:
            TimeoutError: It took longer.
        """
        async with asyncio.timeout(timeout_s):
            return await work

    async def race(
        self,
        tries: list[Callable[[], Awaitable[_T]]],
        apart_s: float,
        discard: Callable[[_T], object],
    ) -> _T:
        """The first result of several tries; each begins when the one before fails, or ``apart_s`` later.

        Results that come too late are discarded.

        Raises:
            OSError: That of the last one that failed.
        """
        waiting, running = list(tries), set[asyncio.Future[_T]]()
        failure: OSError = OSError("there is no address")
        try:
            while waiting or running:
                if waiting:
                    running.add(asyncio.ensure_future(waiting.pop(0)()))
                done, running = await asyncio.wait(
                    running,
                    timeout=apart_s if waiting else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                results = list[_T]()
                for one in done:
                    error = one.exception()
                    if error is None:
                        results.append(one.result())
                    elif isinstance(error, OSError):
                        failure = error
                    else:
                        raise error
                for late in results[1:]:
                    discard(late)
                if results:
                    return results[0]
            raise failure
        finally:
            for one in running:
                if not one.cancel() and not one.cancelled() and one.exception() is None:
                    discard(one.result())

    async def sleep(self, delay_s: float) -> None:
        """Wait in a task."""
        await asyncio.sleep(delay_s)

    def close(self) -> None:
        """Do nothing: the loop is the application's."""


class ThreadHome(LoopHome):
    """An asyncio loop in a thread that ends with the client."""

    name = "citius.client"
    """What the thread is called."""

    _is_closed = False

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        # No task of the application's runs there.
        self.loop: asyncio.AbstractEventLoop | None = None
        started = threading.Event()
        thread = Thread(target=self._serve, args=(started,), name=self.name, daemon=True)
        thread.start()
        started.wait()

    def _serve(self, started: threading.Event) -> None:
        self._thread = threading.get_ident()
        asyncio.set_event_loop(self._loop)
        started.set()
        run_on(self._loop, lambda: self._is_closed, logging.log_exception)
        self._loop.close()

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self.run(self._loop.stop)


class HubHome:
    """gevent's hub, which runs callbacks, that may not wait; coroutines run in greenlets, which may."""

    def __init__(self, hub: Any) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._hub = hub
        self._thread = threading.get_ident()
        self._watchers: dict[socket.socket, list[Any]] = {}

    def is_here(self) -> bool:
        """Whether this is the hub's thread."""
        return threading.get_ident() == self._thread

    def run(self, callback: Callback) -> None:
        """Call ``callback`` on the hub."""
        if self.is_here():
            self._hub.loop.run_callback(callback)
        else:
            self._hub.loop.run_callback_threadsafe(callback)

    def later(self, delay_s: float, callback: Callback) -> Callback:
        """Call ``callback`` after ``delay_s``."""
        timer = self._hub.loop.timer(delay_s)

        def cancel() -> None:
            timer.stop()
            timer.close()

        def fire() -> None:
            cancel()
            callback()

        timer.start(fire)
        return cancel

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Callback:
        """Step a coroutine in a greenlet; nothing that it awaits suspends."""
        import gevent

        def step() -> None:
            with contextlib.suppress(StopIteration):
                coroutine.send(None)

        # The hub itself may not wait for the end.
        return partial(gevent.spawn(step).kill, block=False)

    def watch(
        self, made: socket.socket, on_readable: Callback | None, on_writable: Callback | None
    ) -> None:
        """Watch a socket."""
        for watcher in self._watchers.pop(made, ()):
            watcher.stop()
            watcher.close()
        for events, callback in ((_READ, on_readable), (_WRITE, on_writable)):
            if callback is not None:
                watcher = self._hub.loop.io(made.fileno(), events)
                watcher.start(callback)
                self._watchers.setdefault(made, []).append(watcher)

    async def resolve(self, host: str, port: int) -> list[tuple[int, Any]]:
        """The addresses of a name, by gevent's resolver."""
        from gevent import socket as cooperative

        found = cooperative.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(one[0], one[4]) for one in found]

    async def connect_to(self, family: int, where: Any) -> socket.socket:
        """A connected socket that does not block."""
        from gevent import socket as cooperative

        made: Any = cooperative.socket(family, socket.SOCK_STREAM)
        try:
            made.connect(where)
            made.setblocking(False)
        except BaseException:
            made.close()
            raise
        return made

    async def send_all(self, made: socket.socket, data: bytes) -> None:
        """Send on a socket that is not watched."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[made.send(rest) :]
            except BlockingIOError:
                self._wait(made, _WRITE)

    async def receive(self, made: socket.socket, size: int) -> bytes:
        """Read from a socket that is not watched; empty at its end."""
        while True:
            try:
                return made.recv(size)
            except BlockingIOError:
                self._wait(made, _READ)

    def _wait(self, made: socket.socket, events: int) -> None:
        watcher = self._hub.loop.io(made.fileno(), events)
        try:
            self._hub.wait(watcher)
        finally:
            watcher.close()

    async def within(self, timeout_s: float | None, work: Awaitable[_T]) -> _T:
        """The result of ``work``, in this greenlet.

        Raises:
            TimeoutError: It took longer.
        """
        from gevent import Timeout

        with Timeout(timeout_s, TimeoutError):
            return await work

    async def race(
        self,
        tries: list[Callable[[], Awaitable[_T]]],
        apart_s: float,
        discard: Callable[[_T], object],
    ) -> _T:
        """The first result of several tries, one after the other.

        Raises:
            OSError: That of the last one.
        """
        failure: OSError = OSError("there is no address")
        for one in tries:
            try:
                return await one()
            except OSError as error:
                failure = error
        raise failure

    async def sleep(self, delay_s: float) -> None:
        """Wait in this greenlet."""
        import gevent

        gevent.sleep(delay_s)

    def close(self) -> None:
        """Do nothing: the hub is the application's."""


def tune(made: socket.socket) -> None:
    """Have a peer that has silently gone be noticed, whether or not something is under way to it.

    A peer whose process stands still, and whose machine does not, is not gone.
    """
    if made.family == socket.AF_UNIX:
        return
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000),
    ):  # fmt: skip
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
