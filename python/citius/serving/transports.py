"""The portable host: the event loop owns the sockets and carries their bytes to and from the reactor.

Each connection is an ``asyncio.Protocol``. What comes is fed to a connection in the reactor's memory, and
what the reactor writes there goes to the transport; both sides wait for each other by the transports' means.
There is no descriptor but those of the loop. Slower than epoll, and for every system that has asyncio.
Tests: all of the server's with ``--poller asyncio`` (``make test-portable``).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import sys
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from citius._core import LIMITS
from citius.process.turns import TurnScheduler
from citius.serving.listeners import speaks_of
from citius.serving.sockets import is_unix

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from citius._core import Reactor

# Bytes that wait on either side, beyond which the other one waits; as much as a reactor keeps for its owner.
_HELD_BYTES_MAX = 64 * 1024

# How long a loop that is to stop goes on accepting: what is in the queues by then is served.
_ACCEPT_S = 0.05

# What follows the bytes of `Reactor.remote_take`.
_OPEN, _SHUT, _CLOSE, _RESET = range(4)

# How often a connection that is not read is asked whether it is broken, of which its loop does not hear.
_LOOK_S = 1.0

# struct linger with "at once": the connection is reset when it is closed.
_RESET_ON_CLOSE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class SocketHost(TurnScheduler):
    """A loop that owns the sockets of one reactor.

    Args:
        loop: The loop.
        limits: The limits in force, as far as they are set.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Mapping[str, int]) -> None:
        super().__init__(loop, hosted=True)
        stall_ms = limits.get("write_stall_ms", LIMITS["write_stall_ms"])
        self.stall_s = stall_ms / 1000 or None
        self.backlog = 100
        self.connections: dict[int, Connection] = {}
        self.transports: set[asyncio.Transport] = set()
        self._listeners: list[tuple[int, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._reactor: Callable[[], Reactor | None] = lambda: None
        self._on_flushed: Callable[[], object] | None = None

    @property
    def reactor(self) -> Reactor | None:
        """The reactor, while there is one."""
        return self._reactor()

    def take(self, reactor: Reactor, listeners: Sequence[socket.socket], backlog: int) -> None:
        """Have ``reactor`` serve what comes to sockets that listen."""
        self._reactor = weakref.ref(reactor)
        self.backlog = backlog
        for listener in listeners:
            speaks = speaks_of(listener)
            number = reactor.listen_remote(
                rpc=speaks.is_rpc,
                tls=speaks.is_tls,
                http=speaks.http,
                proxied=speaks.is_proxied,
                redirect_port=speaks.redirect_port,
            )
            self._listeners.append((number, listener.dup()))

    async def accept(self) -> None:
        """Accept connections from now on."""
        for number, listener in self._listeners:
            # A function for each, because asyncio gives a protocol no hint where it comes from.
            def make(number: int = number) -> Connection:
                return Connection(self, number)

            listener.setblocking(False)
            if is_unix(listener):
                server = await _unix_server(self.loop, make, listener, self.backlog)
            else:
                server = await self.loop.create_server(make, sock=listener, backlog=self.backlog)
            self._servers.append(server)
        self._listeners.clear()

    def run(self) -> None:
        """Serve on this thread, which the loop has for itself, until ``end``."""
        reactor = self.reactor
        assert reactor is not None, "it was taken"
        asyncio.set_event_loop(self.loop)
        self.start(reactor, reactor.memory_turn)
        self.loop.run_until_complete(self.accept())
        self.loop.run_forever()
        self.stop()
        # The transports' last callbacks.
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def end(self) -> None:
        """Have ``run`` return; callable from any thread."""
        with suppress(RuntimeError):  # it has returned
            self.loop.call_soon_threadsafe(self.loop.stop)

    def drain(self, reactor: Reactor, on_drained: Callable[[], object]) -> None:
        """Drain ``reactor`` once what is queued is accepted; call back when the last byte is written."""

        def stop_accepting() -> None:
            if isinstance(self.loop, asyncio.SelectorEventLoop):
                # It makes the transport of a connection in a task, which fails and loses the connection if
                # the server is closed meanwhile.
                for server in self._servers:
                    for listener in server.sockets:
                        self.loop.remove_reader(listener)
            else:
                self._close_servers()
            # What was accepted at the last moment gets its protocol by then.
            self.loop.call_later(_ACCEPT_S, close_servers)

        def close_servers() -> None:
            self._close_servers()
            reactor.drain(drained)

        def drained() -> None:
            self._on_flushed = on_drained
            self.look_flushed()

        self.loop.call_later(_ACCEPT_S, stop_accepting)

    def look_flushed(self) -> None:
        """Take note that a transport is gone."""
        if not self.transports and self._on_flushed is not None:
            on_flushed, self._on_flushed = self._on_flushed, None
            on_flushed()

    def hear(self) -> None:
        """Do what the reactor wants done with the sockets."""
        reactor = self.reactor
        if reactor is None:
            return
        for number, has_ended in reactor.remote_news():
            connection = self.connections.get(number)
            if connection is not None:
                connection.hear(reactor, has_ended)

    def cut(self) -> None:
        """Close all connections, whatever has not been written."""
        self._close_servers()
        for transport in list(self.transports):
            transport.abort()

    def stop(self) -> None:
        """Let go of everything."""
        self.cut()
        super().stop()

    def _close_servers(self) -> None:
        for server in self._servers:
            server.close()
        for _, listener in self._listeners:
            listener.close()
        self._servers.clear()
        self._listeners.clear()


async def _unix_server(
    loop: Any, make: Callable[[], Connection], listener: socket.socket, backlog: int
) -> asyncio.Server:
    try:
        # asyncio of 3.13 removes the path otherwise, which is the listeners' to remove.
        return await loop.create_unix_server(
            make, sock=listener, backlog=backlog, cleanup_socket=False
        )
    except TypeError:  # before, or another loop
        return await loop.create_unix_server(make, sock=listener, backlog=backlog)


class Connection(asyncio.Protocol):
    """A client's socket."""

    __slots__ = ("_host", "_is_full", "_is_paused", "_listener", "_number", "_timer", "_transport")

    def __init__(self, host: SocketHost, listener: int) -> None:
        self._host = host
        self._listener = listener
        self._number: int | None = None
        self._transport: asyncio.Transport | None = None
        self._is_full = self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None

    # --- what the transport calls ---

    def connection_made(self, transport: Any) -> None:
        """Take the connection up, or close it if the reactor takes no more."""
        self._transport = transport
        reactor = self._host.reactor
        if reactor is None:
            return transport.abort()
        transport.set_write_buffer_limits(high=_HELD_BYTES_MAX)
        self._host.transports.add(transport)
        peer = _address(transport.get_extra_info("peername"))
        local = _address(transport.get_extra_info("sockname"))
        number = reactor.remote_accept(self._listener, peer, local)
        if number is None:
            return transport.abort()
        self._number = number
        self._host.connections[number] = self
        # What the reactor had to say at once, it has said of a number that was not known then.
        self.hear(reactor, has_ended=False)

    def data_received(self, data: bytes) -> None:
        """Feed what has come."""
        reactor, number = self._host.reactor, self._number
        if reactor is None or number is None:
            return
        unread = reactor.remote_feed(number, data)
        if unread > _HELD_BYTES_MAX and not self._is_paused and self._number is not None:
            self._is_paused = True
            assert self._transport is not None, "bytes came from it"
            self._transport.pause_reading()
            self._timer = self._host.loop.call_later(_LOOK_S, self._look)

    def eof_received(self) -> bool:
        """Tell that the client sends no more; the reactor decides when the connection ends."""
        reactor, number = self._host.reactor, self._number
        if reactor is None or number is None:
            return False
        reactor.remote_feed(number, b"")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that nothing comes and goes any more."""
        self._cancel_timer()
        reactor, number = self._host.reactor, self._number
        if number is not None:
            self._forget(number)
            if reactor is not None:
                reactor.remote_lose(number)
        if self._transport is not None:
            self._host.transports.discard(self._transport)
            self._host.look_flushed()

    def pause_writing(self) -> None:
        """Leave what is to be written to the reactor, which bounds it."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Write again."""
        self._is_full = False
        reactor = self._host.reactor
        if reactor is not None and self._number is not None:
            self.hear(reactor, has_ended=False)

    # --- what the reactor wants ---

    def hear(self, reactor: Reactor, has_ended: bool) -> None:
        """Write what there is, and do what follows it."""
        transport, number = self._transport, self._number
        if transport is None or number is None or (self._is_full and not has_ended):
            return
        data, then, unread = reactor.remote_take(number)
        if self._is_paused and unread <= _HELD_BYTES_MAX:
            self._is_paused = False
            self._cancel_timer()
            transport.resume_reading()
        if data:
            transport.write(data)
        if then == _SHUT:
            # A client that is gone already needs no telling.
            with suppress(OSError):
                transport.write_eof()
        elif then != _OPEN:
            self._forget(number)
            self._close(transport, resets=then == _RESET)

    def _close(self, transport: asyncio.Transport, *, resets: bool) -> None:
        """Close behind what is written, and do not wait for a client that takes none of it."""
        self._cancel_timer()
        if resets:
            # Closed so, the client sees a cut instead of an end.
            with suppress(OSError), _socket_of(transport) as copy:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            if self._is_full:
                return transport.abort()
        if not transport.get_write_buffer_size():
            if not resets:
                # A process that a handler has forked may hold the socket open.
                with suppress(OSError), _socket_of(transport) as copy:
                    copy.shutdown(socket.SHUT_RDWR)
        elif self._host.stall_s is not None:
            self._timer = self._host.loop.call_later(self._host.stall_s, transport.abort)
        transport.close()

    def _look(self) -> None:
        """Give up a connection that is broken; while it is not read its loop does not hear of it."""
        transport = self._transport
        if transport is None or not self._is_paused:
            return
        with suppress(OSError), _socket_of(transport) as copy:
            if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return transport.abort()
        self._timer = self._host.loop.call_later(_LOOK_S, self._look)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _forget(self, number: int) -> None:
        self._number = None
        self._host.connections.pop(number, None)


def _address(name: Any) -> tuple[str, int] | None:
    """Address and port of an internet socket."""
    if not isinstance(name, tuple):
        return None  # of a Unix socket
    host, port, *_ = cast("tuple[str, int]", name)
    return host.partition("%")[0], port


def _socket_of(transport: asyncio.Transport) -> socket.socket:
    """A copy of a transport's socket, because loops hand out objects that are none.

    Raises:
        OSError: It is closed.
    """
    held: Any = transport.get_extra_info("socket")
    if held is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return socket.fromfd(held.fileno(), held.family, held.type)
