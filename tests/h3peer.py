"""A client of HTTP/3 (aioquic) that tests run in their event loop: requests, ports that change, packets."""

# pyright: basic

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

pytest.importorskip("aioquic")

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, StreamReset
from aioquic.tls import SessionTicket
from rig import TIMEOUT_S, Server


@dataclass
class Response:
    """What has come of a response."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    informational: list[int] = field(default_factory=list[int])
    body: bytes = b""
    trailers: dict[str, str] = field(default_factory=dict[str, str])


class Broken(Exception):
    """The stream or the connection has ended without a whole response; has the error code."""


class H3Client(QuicConnectionProtocol):
    """One connection."""

    offers_webtransport = False

    def __init__(self, quic: QuicConnection) -> None:
        super().__init__(quic)
        self.h3 = H3Connection(quic, enable_webtransport=self.offers_webtransport)
        self.responses: dict[int, Response] = {}
        self.waiters: dict[int, asyncio.Future[Response]] = {}
        self.has_come = asyncio.Event()
        self.terminated: ConnectionTerminated | None = None
        self.is_reset = False

    def quic_event_received(self, event) -> None:
        """Collect what has come."""
        if isinstance(event, ConnectionTerminated):
            self.terminated = event
            for waiter in self.waiters.values():
                if not waiter.done():
                    waiter.set_exception(Broken(f"{event.error_code:#x} {event.reason_phrase}"))
        elif isinstance(event, StreamReset):
            waiter = self.waiters.get(event.stream_id)
            if waiter is not None and not waiter.done():
                waiter.set_exception(Broken(f"{event.error_code:#x}"))
        for one in self.h3.handle_event(event):
            response = self.responses.setdefault(one.stream_id, Response())
            if isinstance(one, HeadersReceived):
                fields = {name.decode(): value.decode("latin-1") for name, value in one.headers}
                status = int(fields.pop(":status", "0"))
                if not status:
                    response.trailers = fields
                elif status < 200:
                    response.informational.append(status)
                else:
                    response.status, response.headers = status, fields
            elif isinstance(one, DataReceived):
                response.body += one.data
            waiter = self.waiters.get(one.stream_id)
            if getattr(one, "stream_ended", False) and waiter is not None and not waiter.done():
                waiter.set_result(response)
        self.has_come.set()

    def datagram_received(self, data, addr) -> None:
        """Take a datagram. aioquic does not know stateless resets (RFC 9000 §10.3.1).

        It tells of a CONNECTION_CLOSE some time after that has come: what follows meanwhile says nothing.
        """
        tokens = {one.stateless_reset_token for one in self._quic._peer_cid_available}
        tokens.add(self._quic._peer_cid.stateless_reset_token)
        if self._quic._close_event is None and data[-16:] in tokens:
            self.is_reset = True
            for waiter in self.waiters.values():
                if not waiter.done():
                    waiter.set_exception(Broken("stateless reset"))
            return
        super().datagram_received(data, addr)

    def begin(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Iterable[tuple[str, str]] = (),
        *,
        ends: bool = True,
    ) -> int:
        """Send a request; returns its stream."""
        stream = self._quic.get_next_available_stream_id()
        fields = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path}
        lines = [(name.encode(), value.encode()) for name, value in (*fields.items(), *headers)]
        self.waiters[stream] = asyncio.get_running_loop().create_future()
        self.h3.send_headers(stream, lines, end_stream=body is None and ends)
        if body is not None:
            self.h3.send_data(stream, body, ends)
        self.transmit()
        return stream

    async def response(self, stream: int) -> Response:
        """The whole response of a stream."""
        return await asyncio.wait_for(self.waiters[stream], TIMEOUT_S)

    async def get(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> Response:
        """One request and its response."""
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return await self.response(self.begin(path, method, body, lines))

    async def rebind(self, host: str = "127.0.0.1") -> None:
        """Go on from another port, as behind a NAT that has forgotten, or from another address."""
        before = self._transport
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=(host, 0))
        assert self._transport is not before
        before.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """A port that is given up is no end."""


def configuration(**options) -> QuicConfiguration:
    """That of a client that trusts every certificate."""
    return QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost",
        **options,
    )  # fmt: skip


@asynccontextmanager
async def h3_client(
    server: Server | int,
    config: QuicConfiguration | None = None,
    *,
    is_connected: bool = True,
    take_ticket: Callable[[SessionTicket], None] | None = None,
) -> AsyncGenerator[H3Client]:
    """A connection to a server, or to a port."""
    port = server if isinstance(server, int) else server.port
    loop = asyncio.get_running_loop()
    quic = QuicConnection(
        configuration=config or configuration(), session_ticket_handler=take_ticket
    )
    transport, client = await loop.create_datagram_endpoint(
        lambda: H3Client(quic), local_addr=("127.0.0.1", 0)
    )
    client.connect(("127.0.0.1", port))
    try:
        if is_connected:
            await asyncio.wait_for(client.wait_connected(), TIMEOUT_S)
        yield client
    finally:
        client.close()
        transport.close()
        client._transport.close()
