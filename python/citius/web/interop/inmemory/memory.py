"""A native application on a running event loop, called through connections in memory.

``MemoryServer`` is the reactor of the application, ``MemoryConnection`` one request's connection to it:
bytes in, bytes out, with the waiting that sockets would bring. The reactor may be in the middle of a turn
while code here runs, and a coroutine's step is no place for a turn; so everything that touches it is
scheduled on the loop. Tests: ``tests/interop/``.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from citius._core import Reactor
from citius.observability import logging
from citius.process.turns import TurnScheduler, is_hosted
from citius.web.routing.static import mounts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Native, Request
    from citius.settings.config import Config
    from citius.web.application.app import App
    from citius.web.execution.thread_pool import BlockingPool

# Seconds that blocking handlers get when the application stops.
_CLOSE_S = 10.0


class MemoryServer:
    """An application's gateway and reactor on the running loop.

    Args:
        app: The application.
        config: Limits, threads and compression; settings of sockets, workers and logs have no effect.
        report: Called with exceptions that no handler expects; the log is where they go otherwise.
        development: Serve the documentation, unless the application says otherwise.
    """

    def __init__(
        self,
        app: App,
        config: Config,
        report: Callable[[Request, BaseException], object] | None = None,
        *,
        development: bool = False,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._app = app
        self._config = config
        self._pool: BlockingPool | None = None
        self._started = False
        self._reactor: Reactor | None = None
        self._host = TurnScheduler(self.loop, hosted=is_hosted(config.poller))
        self._connections: dict[int, MemoryConnection] = {}
        self._gateway: Native | None = app.freeze(
            self._make_pool,
            report,
            compiled_threads=config.compiled_threads,
            compiled_queue_max=config.compiled_queue_max,
            interpret_compiled=config.interpret_compiled,
            development=development,
        )

    async def start(self) -> None:
        """Enter the lifespan and call the start-up hooks; then requests are served."""
        await self._app.start()
        self._started = True

    def open(self) -> Reactor:
        """The reactor; made when it is first needed, after the start-up hooks, whose context it has."""
        if self._reactor is not None:
            return self._reactor
        config, gateway = self._config, self._gateway
        assert gateway is not None, "not closed yet"
        # Weak, for the reactor keeps it: a server that is dropped is to take the reactor's descriptors along.
        this = weakref.ref(self)

        def told() -> None:
            server = this()
            if server is not None:
                server.hear()

        reactor = self._reactor = Reactor(
            gateway,
            limits=config.limits_in_force,
            server_header=None,
            date_header=False,
            headers=config.default_response_headers,
            loop=self.loop,
            log=logging.log,
            mounts=mounts_of(config, self._app),
            compress=config.codings,
            compress_types=config.compress_types,
            http="1",
            h2c_upgrade=False,
            on_memory=told,
            host=self._host.host,
        )
        self._host.start(reactor, reactor.memory_turn)
        return reactor

    @property
    def reactor(self) -> Reactor | None:
        """The reactor, while there is one."""
        return self._reactor

    async def close(self) -> None:
        """Cut what is open, and call the shutdown hooks if the start-up hooks were called."""
        reactor, self._reactor, self._gateway = self._reactor, None, None
        if reactor is not None:
            await self.call(reactor.close)
            self._host.stop()
            for connection in list(self._connections.values()):
                connection.close()
        if self._pool is not None:
            await asyncio.to_thread(self._pool.close, _CLOSE_S)
        if self._started:
            self._started = False
            await self._app.stop()

    def abandon(self) -> None:
        """Forget a server whose loop is closed."""
        self._host.forget()
        if self._pool is not None:
            self._pool.close(0.0)

    def connect(
        self, client: tuple[str, int] | None = None, scheme: str = "http", root_path: str = ""
    ) -> MemoryConnection:
        """A connection for one request, opened when it is first fed."""
        return MemoryConnection(self, client, scheme, root_path)

    def connection_of(self, request: Request) -> MemoryConnection | None:
        """The connection that a request has come by, if it is one of this server's."""
        number = None if self._reactor is None else self._reactor.memory_of(request)
        return None if number is None else self._connections.get(number)

    def call(self, function: Callable[..., object], *args: object) -> asyncio.Future[None]:
        """Call ``function`` where no turn and no coroutine's step is under way."""
        done: asyncio.Future[None] = self.loop.create_future()

        def run() -> None:
            try:
                function(*args)
            except BaseException as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(None)

        self.loop.call_soon(run)
        return done

    def hear(self) -> None:
        """Tell connections that something new is there for them."""
        reactor = self._reactor
        if reactor is None:
            return
        for number in reactor.memory_news():
            connection = self._connections.get(number)
            if connection is None:
                reactor.memory_take(number)
            else:
                connection.hear(reactor)

    def enter(self, connection: MemoryConnection, number: int) -> None:
        """Know a connection by its number."""
        self._connections[number] = connection

    def leave(self, number: int) -> None:
        """Forget a connection."""
        self._connections.pop(number, None)

    def _make_pool(self) -> BlockingPool:
        from citius.web.execution.thread_pool import BlockingPool

        config = self._config
        threads = config.threads or config.blocking_threads
        self._pool = BlockingPool(threads, config.blocking_queue_max)
        return self._pool


class MemoryConnection:
    """One request's connection: what a client's socket is elsewhere."""

    __slots__ = (
        "_client", "_closed", "_drained", "_number", "_root_path", "_scheme", "_server", "_waiter",
        "error", "is_complete", "scope",
    )  # fmt: skip

    def __init__(
        self, server: MemoryServer, client: tuple[str, int] | None, scheme: str, root_path: str
    ) -> None:
        self._server = server
        self._client = client
        self._scheme = scheme
        self._root_path = root_path
        self._number: int | None = None
        self._closed = False
        self._waiter: asyncio.Future[bytes] | None = None
        self._drained: asyncio.Future[None] | None = None
        self.is_complete = False
        """The whole response has been received."""
        self.scope: Any = None
        """The scope of the request, if it came by ASGI."""
        self.error: BaseException | None = None
        """What its handler has raised unexpectedly, for a transport that raises it."""

    def feed(self, data: bytes) -> None:
        """Send ``data``; returns at once, for a head or a small body."""
        self._server.loop.call_soon(self._feed, data)

    async def send(self, data: bytes) -> None:
        """Send ``data``, and wait until the application has read it."""
        if not data or self._closed:
            return
        self._drained = self._server.loop.create_future()
        self.feed(data)
        await self._drained

    async def receive(self) -> bytes:
        """What the application has sent since the last call; ``b""`` at the end."""
        waiter = self._waiter = self._server.loop.create_future()
        self._server.loop.call_soon(self._deliver)
        return await waiter

    def close(self) -> None:
        """Leave: a handler that is under way hears that its client is gone."""
        if not self._closed:
            self._closed = True
            self._server.loop.call_soon(self._end)

    def hear(self, reactor: Reactor) -> None:
        """Something new is there: bytes to take, room for more, or the end."""
        self._deliver()
        drained = self._drained
        number = self._number
        if drained is not None and number is not None and not reactor.memory_feed(number, b""):
            self._drained = None
            if not drained.done():
                drained.set_result(None)

    def _feed(self, data: bytes) -> None:
        reactor = self._server.open()
        if self._number is None:
            self._number = reactor.memory_open(self._client, self._scheme, self._root_path)
            self._server.enter(self, self._number)
        reactor.memory_feed(self._number, data)
        self._server.hear()
        self.hear(reactor)

    def _deliver(self) -> None:
        """Hand on what there is, if it is waited for: what is not stays in the reactor, which bounds it."""
        waiter, number, reactor = self._waiter, self._number, self._server.reactor
        if waiter is None or waiter.done() or number is None:
            return
        data, closed = (b"", True) if reactor is None else reactor.memory_take(number)
        if data or closed:
            self._waiter = None
            waiter.set_result(data)

    def _end(self) -> None:
        number, reactor = self._number, self._server.reactor
        if number is not None and reactor is not None:
            self._server.leave(number)
            reactor.memory_eof(number)
            self._server.hear()
        for future, value in ((self._waiter, b""), (self._drained, None)):
            if future is not None and not future.done():
                future.set_result(value)  # pyright: ignore[reportArgumentType]
