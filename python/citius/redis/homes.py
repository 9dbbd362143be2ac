"""Where a client lives: the thread that reads and writes its connections, and what that thread waits by.

On an asyncio loop that is the loop (or the reactor that serves on it); under gevent the hub; elsewhere an
event loop in a thread of the client's own. What changes a client's connections runs there, in coroutines that
a home
steps: in tasks where there is a loop, under gevent in greenlets, where nothing that they await suspends.
Tests: ``tests/redis/test_serial.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from citius.go import chan
from citius.redis.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from citius.redis.calls import Call
    from citius.redis.urls import Address

    Callback = Callable[[], object]

_T = TypeVar("_T")
_READ, _WRITE = 1, 2


class Home(Protocol):
    """A thread and what it waits by. All methods but ``run`` and ``is_here`` are called on that thread."""

    loop: asyncio.AbstractEventLoop | None
    """The loop whose tasks may await commands; ``None`` if there is none."""

    def is_here(self) -> bool:
        """Whether this is the thread."""
        ...

    def run(self, callback: Callback) -> None:
        """Call ``callback`` there soon, from any thread."""
        ...

    def later(self, delay_s: float, callback: Callback) -> Callback:
        """Call ``callback`` after ``delay_s``; returns what cancels it."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Callback:
        """Step a coroutine of the client's own to its end; returns what cancels it."""
        ...

    def watch(
        self, made: socket.socket, on_readable: Callback | None, on_writable: Callback | None
    ) -> None:
        """Call these when the socket is ready, in place of those before."""
        ...

    async def connect(self, address: Address, timeout_s: float) -> socket.socket:
        """A connected socket that does not block; each address of a name has ``timeout_s``.

        Raises:
            ConnectionLost: It cannot be connected, or not in time.
        """
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        ...

    async def result(self, call: Call[_T] | Promise[_T]) -> _T:
        """The result of a command, or the value of a promise."""
        ...

    def close(self) -> None:
        """The client needs it no more; from any thread."""
        ...


def find() -> Home:
    """The home for a client that is opened here."""
    try:
        return LoopHome(asyncio.get_running_loop())
    except RuntimeError:
        pass
    if (monkey := sys.modules.get("gevent.monkey")) is not None and monkey.is_module_patched(
        "threading"
    ):
        import gevent

        return HubHome(gevent.get_hub())
    local = sys.modules.get("gevent._hub_local")
    hub = local.get_hub_if_exists() if local is not None else None
    return ThreadHome() if hub is None else HubHome(hub)


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

    async def connect(self, address: Address, timeout_s: float) -> socket.socket:
        """Connect by the loop."""
        failure: OSError = OSError("the host has no address")
        try:
            if address.path:
                return await self._connect(socket.AF_UNIX, address.path, timeout_s)
            async with asyncio.timeout(timeout_s):
                found = await self._loop.getaddrinfo(*address[:2], type=socket.SOCK_STREAM)
            for family, _, _, _, where in found:
                try:
                    return await self._connect(family, where, timeout_s)
                except OSError as error:
                    failure = error
            raise failure
        except TimeoutError:
            raise no_response(address, timeout_s) from None
        except OSError as error:
            raise ConnectionLost(f"Redis at {address}: {error.strerror or error}") from error

    async def _connect(self, family: int, where: Any, timeout_s: float) -> socket.socket:
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            async with asyncio.timeout(timeout_s):
                await self._loop.sock_connect(made, where)
            tune(made)
        except BaseException:
            made.close()
            raise
        return made

    async def sleep(self, delay_s: float) -> None:
        """Wait in a task."""
        await asyncio.sleep(delay_s)

    async def result(self, call: Call[_T] | Promise[_T]) -> _T:
        """Wait in a task."""
        return await call

    def close(self) -> None:
        """Do nothing: the loop is the application's."""


class ThreadHome(LoopHome):
    """An asyncio loop in a thread that ends with the client."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        # No task of the application's runs there.
        self.loop: asyncio.AbstractEventLoop | None = None
        started = threading.Event()
        thread = threading.Thread(
            target=self._serve, args=(started,), name="citius.redis", daemon=True
        )
        thread.start()
        started.wait()

    def _serve(self, started: threading.Event) -> None:
        self._thread = threading.get_ident()
        asyncio.set_event_loop(self._loop)
        started.set()
        self._loop.run_forever()
        self._loop.close()

    def close(self) -> None:
        """End the thread."""
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

        return gevent.spawn(step).kill

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

    async def connect(self, address: Address, timeout_s: float) -> socket.socket:
        """Connect in this greenlet."""
        from gevent import Timeout
        from gevent import socket as cooperative

        failure: OSError = OSError("the host has no address")
        try:
            found: list[tuple[int, Any]] = [(socket.AF_UNIX, address.path)]
            if not address.path:
                with Timeout(timeout_s):
                    said = cooperative.getaddrinfo(*address[:2], type=socket.SOCK_STREAM)
                found = [(one[0], one[4]) for one in said]
            for family, where in found:
                try:
                    return self._connect(family, where, timeout_s)
                except OSError as error:
                    failure = error
            raise failure
        except (Timeout, TimeoutError):
            raise no_response(address, timeout_s) from None
        except OSError as error:
            raise ConnectionLost(f"Redis at {address}: {error.strerror or error}") from error

    def _connect(self, family: int, where: Any, timeout_s: float) -> socket.socket:
        from gevent import Timeout
        from gevent import socket as cooperative

        made: Any = cooperative.socket(family, socket.SOCK_STREAM)
        try:
            with Timeout(timeout_s, TimeoutError):
                made.connect(where)
            made.setblocking(False)
            tune(made)
        except BaseException:
            made.close()
            raise
        return made

    async def sleep(self, delay_s: float) -> None:
        """Wait in this greenlet."""
        import gevent

        gevent.sleep(delay_s)

    async def result(self, call: Call[_T] | Promise[_T]) -> _T:
        """Wait in this greenlet."""
        return call.wait()

    def close(self) -> None:
        """Do nothing: the hub is the application's."""


class Promise(Generic[_T]):
    """A value, or an exception, that comes once; awaited on the home's loop, waited for elsewhere."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._futures: list[asyncio.Future[None]] = []
        self._done: Any = chan()
        self._value: _T | None = None
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has come."""
        return self._done.closed

    def resolve(self, value: _T | None = None, error: BaseException | None = None) -> None:
        """Say what it is, on the home's thread; the first time counts."""
        if self.is_done:
            return
        self._value, self._error = value, error
        self._done.close()
        for future in self._futures:
            if not future.done():
                future.set_result(None)
        self._futures.clear()

    def __await__(self) -> Generator[Any, None, _T]:
        """The value, on the home's thread."""
        if not self.is_done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._futures.append(future)
            try:
                yield from future
            finally:
                if future in self._futures:
                    self._futures.remove(future)
        return self._result()

    def wait(self) -> _T:
        """The value, in a thread or a greenlet."""
        if not self.is_done:
            self._done.recv()
        return self._result()

    def _result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


def no_response(address: Address, timeout_s: float) -> ConnectionLost:
    """The error of a connection that is not there in time."""
    return ConnectionLost(f"{address}: no response within {timeout_s:g} s")


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
