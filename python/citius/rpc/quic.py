"""RPC over QUIC for both clients: ``quic://HOST:PORT``.

A lost packet delays the calls whose bytes it had, and no others. The protocol is the extension's
(``RpcQuic``): messages go in and come out as over TCP, each on a stream of its own. Here are its datagrams:
``QuicSocket`` has the methods of a socket for the client for threads, ``QuicTransport`` those of a transport
for the one for coroutines. Wire: docs/guides/rpc.md. Tests: tests/rpc/test_quic.py.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import tempfile
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from citius._core import ClientTls, RpcQuic
from citius.rpc.deadlines import is_past, left

if TYPE_CHECKING:
    import ssl

    from citius.rpc.calls import Address

_DATAGRAM_BYTES_MAX = 64 * 1024

_QUEUE_BYTES_MAX = 256 * 1024
"""Bytes of calls that QUIC has not taken; a caller that would add to more waits."""

_CLOSE_S = 1.0
"""How long the end waits until the server has what was sent."""


def rules_of(context: ssl.SSLContext | None) -> ClientTls:
    """What is asked of a server's certificate: what ``context`` asks, or that the system trusts it.

    Raises:
        OSError: No file of the system's authorities can be read.
    """
    if context is None:
        from citius.process.authorities import system_authorities

        found = system_authorities()
        return ClientTls("web", authorities=[found] if found else [])
    import ssl

    if context.verify_mode == ssl.CERT_NONE:
        return ClientTls("off")
    trusted = context.get_ca_certs(binary_form=True)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "authorities.pem")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(map(ssl.DER_cert_to_PEM_cert, trusted))
        return ClientTls("web" if context.check_hostname else "authority", authorities=[path])


def _core_of(address: Address, made: socket.socket, message_bytes_max: int) -> RpcQuic:
    host, port = made.getpeername()[:2]
    remote = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        return RpcQuic(rules_of(address.tls), address.server_name, remote, message_bytes_max)
    except ValueError as error:
        raise OSError(str(error)) from None


def _bound_to(address: Address, found: list[tuple[Any, ...]]) -> socket.socket:
    """A datagram socket for the first address of a name that there is a way to."""
    reason: OSError | None = None
    for family, kind, protocol, _, where in found:
        made = socket.socket(family, kind, protocol)
        try:
            made.connect(where)
        except OSError as error:
            made.close()
            reason = error
            continue
        made.setblocking(False)
        return made
    raise reason or OSError(f"{address.host} has no address")


def _failed(core: RpcQuic) -> OSError:
    """Why there is no connection."""
    reason = core.reason or "the server does not answer"
    if core.is_in_vain:
        import ssl

        return ssl.SSLError(1, reason)
    return ConnectionError(reason)


class QuicSocket:
    """A connection after its handshake; reads and writes whole messages like a non-blocking socket.

    Raises:
        OSError: The handshake failed, or the deadline has passed.
    """

    def __init__(self, address: Address, message_bytes_max: int, deadline: float | None) -> None:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
        self._socket = _bound_to(address, found)
        try:
            self._core = _core_of(address, self._socket, message_bytes_max)
            self._shake_hands(deadline)
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self, deadline: float | None) -> None:
        while not self._core.is_connected:
            self._exchange()
            if self._core.reason is not None:
                raise _failed(self._core)
            if is_past(deadline):
                raise TimeoutError("the server does not answer")
            if not self._core.is_connected:
                self._sleep(select.POLLIN, deadline)

    def _exchange(self) -> None:
        """Take the datagrams that have come, and send what is due.

        Raises:
            ConnectionRefusedError: No server has the port.
        """
        try:
            while True:
                self._core.receive(self._socket.recv(_DATAGRAM_BYTES_MAX))
        except BlockingIOError:
            pass
        # One that the kernel does not take is lost, as on the network.
        with suppress(BlockingIOError):
            for datagram in self._core.datagrams():
                self._socket.send(datagram)

    def _sleep(self, events: int, deadline: float | None) -> None:
        """Wait for a datagram, a timer of QUIC or the deadline."""
        due_s = self._core.due_s
        waits = [one for one in (due_s, left(deadline)) if one is not None and one >= 0]
        poll = select.poll()
        poll.register(self._socket, events)
        poll.poll(min(waits) * 1000 + 1 if waits else None)

    def poll(self, events: int, deadline: float | None) -> int:
        """Wait until there are messages, or room for some; returns which, 0 after the deadline."""
        while True:
            with suppress(OSError):  # `recv` raises it again
                self._exchange()
            ready = select.POLLIN if self._core.has_come else 0
            if self._core.queued_bytes < _QUEUE_BYTES_MAX:
                ready |= select.POLLOUT
            if ready & events or is_past(deadline):
                return ready & events
            self._sleep(select.POLLIN, deadline)

    def recv(self, _size: int) -> bytes:
        """The messages that have come.

        Raises:
            BlockingIOError: There are none yet.
            OSError: The connection is over.
        """
        self._exchange()
        if messages := self._core.take():
            return messages
        reason = self._core.reason
        if reason is not None:
            raise ConnectionResetError(reason)
        raise BlockingIOError

    def send(self, data: memoryview) -> int:
        """Send whole messages; returns how many bytes they have, which is all.

        Raises:
            BlockingIOError: Too many wait.
            OSError: The connection is over.
        """
        if self._core.queued_bytes >= _QUEUE_BYTES_MAX:
            raise BlockingIOError
        self._core.send(bytes(data))
        self._exchange()
        return len(data)

    def shutdown(self, how: int) -> None:
        """End it, when the server has what was sent."""
        until = monotonic() + _CLOSE_S
        with suppress(OSError):
            while self._core.reason is None and not self._core.is_delivered and not is_past(until):
                self._exchange()
                if not self._core.is_delivered:
                    self._sleep(select.POLLIN, until)
            self._core.close()
            self._exchange()
        self._socket.shutdown(how)  # wakes callers that poll it

    def fileno(self) -> int:
        """The descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class QuicTransport(asyncio.DatagramProtocol):
    """A connection that hands messages to a protocol as a transport of TCP hands bytes."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, core: RpcQuic, protocol: asyncio.Protocol
    ) -> None:
        self._loop = loop
        self._core = core
        self._protocol = protocol
        self._endpoint: asyncio.DatagramTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._shaken: asyncio.Future[None] = loop.create_future()
        self._is_paused = self._is_closing = self._is_over = False

    async def shake_hands(self) -> None:
        """Wait until the handshake is over.

        Raises:
            OSError: It failed.
        """
        self._go_on()
        try:
            await self._shaken
        except BaseException:
            self.abort()
            raise
        self._protocol.connection_made(cast("asyncio.BaseTransport", self))

    def write(self, data: bytes) -> None:
        """Send whole messages."""
        if not self._is_over:
            self._core.send(data)
            self._go_on()

    def close(self) -> None:
        """End it when the server has what was sent."""
        self._is_closing = True
        self._go_on()

    def abort(self) -> None:
        """End it now."""
        self._end(None)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.BaseProtocol``."""
        self._endpoint = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        """See ``asyncio.DatagramProtocol``."""
        del addr
        self._core.receive(data)
        self._go_on()

    def error_received(self, exc: Exception) -> None:
        """See ``asyncio.DatagramProtocol``: no server has the port."""
        self._end(exc)

    def _go_on(self) -> None:
        """Send what is due, pass on what has come, and set the timer."""
        if self._is_over or self._endpoint is None:
            return
        for datagram in self._core.datagrams():
            self._endpoint.sendto(datagram)
        reason = self._core.reason
        if not self._shaken.done():
            if reason is not None:
                return self._end(_failed(self._core))
            if self._core.is_connected:
                self._shaken.set_result(None)
        elif messages := self._core.take():
            self._protocol.data_received(messages)
        if reason is not None:
            return self._end(ConnectionResetError(reason))
        if self._is_closing and self._core.is_delivered:
            return self._end(None)
        self._tell_room()
        if self._timer is not None:
            self._timer.cancel()
        due_s = self._core.due_s
        self._timer = None if due_s is None else self._loop.call_later(due_s, self._go_on)

    def _tell_room(self) -> None:
        is_full = self._core.queued_bytes >= _QUEUE_BYTES_MAX
        if is_full != self._is_paused:
            self._is_paused = is_full
            if is_full:
                self._protocol.pause_writing()
            else:
                self._protocol.resume_writing()

    def _end(self, error: Exception | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if not self._shaken.done():
            self._shaken.set_exception(error or ConnectionError("the client was closed"))
            self._shaken.exception()  # there may be none to be told
        self._core.close()
        if self._endpoint is not None:
            for datagram in self._core.datagrams():
                self._endpoint.sendto(datagram)
            self._endpoint.close()
        self._loop.call_soon(self._protocol.connection_lost, error)


async def connect(
    loop: asyncio.AbstractEventLoop,
    address: Address,
    message_bytes_max: int,
    protocol: asyncio.Protocol,
) -> None:
    """Make a connection whose messages are those of ``protocol``.

    Raises:
        OSError: The handshake failed.
    """
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
    made = _bound_to(address, cast("list[tuple[Any, ...]]", found))
    try:
        transport = QuicTransport(loop, _core_of(address, made, message_bytes_max), protocol)
        await loop.create_datagram_endpoint(lambda: transport, sock=made)
    except BaseException:
        made.close()
        raise
    await transport.shake_hands()
