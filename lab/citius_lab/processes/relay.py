"""Adds a round-trip time between the load generator and a server, or loses packets: relays.

The kernel's netem would delay and lose packets; many kernels are built without it. A relay of TCP delays
what is read from either side by half of the round trip, in order and at any bandwidth. Connecting to it
takes no round trip, so that first requests of a connection are one round trip early.

Where packets are to be lost, ``packets.py`` relays those, of TCP and of UDP alike.

Run as ``python relay.py OWN_PORT PORT RTT_MS``.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable


@contextlib.contextmanager
def to(port: int, rtt_ms: float, loss: float, cpus: Iterable[int]) -> Generator[str]:
    """Yield the address to connect to instead of ``port``: a relay's, or the same for no delay and no loss.

    Raises:
        LaunchError: The relay does not start.
        LoadError: The system does not allow the device that packets are lost by.
    """
    if loss:
        # Not for the relay itself, which runs this file alone.
        from citius_lab.processes import packets

        with packets.relayed(rtt_ms, loss, cpus) as host:
            yield f"{host}:{port}"
        return
    if not rtt_ms:
        yield f"127.0.0.1:{port}"
        return
    from citius_lab.errors import LaunchError
    from citius_lab.processes import launch

    own = launch.free_port()
    words = [sys.executable, "-S", __file__, str(own), str(port), str(rtt_ms)]
    process = launch.Guarded(words, cpus=cpus)
    try:
        if not launch.accepts(own, RELAY_START_S):
            raise LaunchError(f"the relay of {rtt_ms:g} ms does not listen on port {own}")
        yield f"127.0.0.1:{own}"
    finally:
        process.stop()


class Side(asyncio.Protocol):
    """One side of a relayed connection.

    Args:
        connect_to: The port that the other side is connected to; ``None`` for that other side.
    """

    def __init__(self, half_s: float, connect_to: int | None = None) -> None:
        self._half_s = half_s
        self._connect_to = connect_to
        self._loop = asyncio.get_running_loop()
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the server if this is the client's side."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._connect_to is not None:
            self._connecting = self._loop.create_task(self._connect(self._connect_to))

    async def _connect(self, port: int) -> None:
        other = Side(self._half_s)
        other.other = self
        try:
            await self._loop.create_connection(lambda: other, "127.0.0.1", port)
        except OSError:
            self.close()
            return
        self.other = other
        for data in self._early:
            self.data_received(data)
        if self.transport is None or self.transport.is_closing():
            self.connection_lost(None)  # the client left while this side was connecting

    def data_received(self, data: bytes) -> None:
        """Hand bytes to the other side after half of the round trip."""
        if self.other is None:
            self._early.append(data)
        else:
            self._loop.call_later(self._half_s, self.other.write, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side after the bytes that are on their way."""
        if self.other is not None:
            self._loop.call_later(self._half_s, self.other.close)

    def write(self, data: bytes) -> None:
        """Send bytes that have travelled."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Close this side."""
        if self.transport is not None:
            self.transport.close()


async def serve(own: int, port: int, rtt_ms: float) -> None:
    """Relay connections to ``own`` to the server on ``port`` until the process is ended."""
    half_s = rtt_ms / 2000
    server = await asyncio.get_running_loop().create_server(
        lambda: Side(half_s, port), "127.0.0.1", own
    )
    await server.serve_forever()


# The relay is a Python process that imports asyncio alone.
RELAY_START_S = 10.0

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
