"""Where a client lives: the thread that reads and writes its connections, and what that thread waits by.

On an asyncio loop that is the loop (or the reactor that serves on it); under gevent the hub; elsewhere an
event loop in a thread of the client's own. What changes a client's connections runs there, in coroutines that
a home steps: in tasks where there is a loop, under gevent in greenlets, where nothing that they await
suspends.
Tests: ``tests/redis/test_serial.py``.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from citius.databases import silent
from citius.go import chan
from citius.process import homes
from citius.process.homes import tune
from citius.redis.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from citius.redis.calls import Call
    from citius.redis.urls import Address

    Callback = Callable[[], object]

_T = TypeVar("_T")


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
    kind, found = homes.find_kind()
    if kind == "loop":
        return LoopHome(found)
    return HubHome(found) if kind == "hub" else ThreadHome()


class LoopHome(homes.LoopHome):
    """An asyncio loop."""

    async def connect(self, address: Address, timeout_s: float) -> socket.socket:
        """Connect by the loop."""
        failure: OSError = OSError("the host has no address")
        try:
            if address.path:
                return await self._connect(socket.AF_UNIX, address.path, timeout_s)
            async with asyncio.timeout(timeout_s):
                found = await self._loop.getaddrinfo(*address[:2], type=socket.SOCK_STREAM)
            for family, _, _, _, where in silent.in_order(found, lambda one: one[4]):
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
        except TimeoutError:
            silent.note(where)
            made.close()
            raise
        except BaseException:
            made.close()
            raise
        return made

    async def result(self, call: Call[_T] | Promise[_T]) -> _T:
        """Wait in a task."""
        return await call


class ThreadHome(homes.ThreadHome, LoopHome):
    """An asyncio loop in a thread that ends with the client."""

    name = "citius.redis"


class HubHome(homes.HubHome):
    """gevent's hub."""

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
            for family, where in silent.in_order(found, lambda one: one[1]):
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
        except TimeoutError:
            silent.note(where)
            made.close()
            raise
        except BaseException:
            made.close()
            raise
        return made

    async def result(self, call: Call[_T] | Promise[_T]) -> _T:
        """Wait in this greenlet."""
        return call.wait()


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


class NoResponse(ConnectionLost):
    """A connection is not there in time."""


def no_response(address: Address, timeout_s: float) -> NoResponse:
    """The error of a connection that is not there in time."""
    return NoResponse(f"{address}: no response within {timeout_s:g} s")
