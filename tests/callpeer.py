"""Clients of procedures over QUIC: on sessions of WebTransport, and on connections without HTTP/3.

The wire of docs/guides/rpc.md is written here by hand, over aioquic's QUIC.
"""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from rig import TIMEOUT_S
from wtpeer import WtClient


async def sent(client: WtClient, session, message: bytes) -> bytes:
    return await asyncio.wait_for(client.ended(session.open(message, ends=True)), 10)


async def called(client: WtClient, session, method: str, params: object) -> list:
    message = msgspec.msgpack.encode([0, 7, method, params])
    response = msgspec.msgpack.decode(await sent(client, session, message))
    assert response[:2] == [1, 7]
    return response[2:]


async def asked(client: WtClient, session, **request: object) -> dict:
    return json.loads(
        await sent(client, session, json.dumps({"jsonrpc": "2.0"} | request).encode())
    )


async def until_told(client: WtClient, event: str) -> None:
    async def wait() -> None:
        while event not in json.loads((await client.get("/events")).body):
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), 10)


class Peer(QuicConnectionProtocol):
    """A client that knows nothing of HTTP/3."""

    def __init__(self, quic, stream_handler=None) -> None:
        super().__init__(quic, stream_handler)
        self.data: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.reset: dict[int, int] = {}
        self.stopped: dict[int, int] = {}
        self.closed: ConnectionTerminated | None = None
        self.has_come = asyncio.Event()

    def quic_event_received(self, event) -> None:
        """Keep what has come."""
        if isinstance(event, StreamDataReceived):
            self.data[event.stream_id] = self.data.get(event.stream_id, b"") + event.data
            if event.end_stream:
                self.ended.add(event.stream_id)
        elif isinstance(event, StreamReset):
            self.reset[event.stream_id] = event.error_code
        elif isinstance(event, StopSendingReceived):
            self.stopped[event.stream_id] = event.error_code
        elif isinstance(event, ConnectionTerminated):
            self.closed = event
        self.has_come.set()

    async def until(self, is_so) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not is_so():
                self.has_come.clear()
                await self.has_come.wait()

    def open(self, message: bytes, *, ends: bool = True, uni: bool = False) -> int:
        stream = self._quic.get_next_available_stream_id(is_unidirectional=uni)
        self.send(stream, message, ends=ends)
        return stream

    def send(self, stream: int, data: bytes, *, ends: bool = False) -> None:
        self._quic.send_stream_data(stream, data, ends)
        self.transmit()

    async def response(self, stream: int) -> bytes:
        await self.until(lambda: stream in self.ended or self.closed)
        assert stream in self.ended, self.closed
        return self.data[stream]

    async def called(self, method: str, params: object) -> list:
        message = msgspec.msgpack.encode([0, 7, method, params])
        reply = msgspec.msgpack.decode(await self.response(self.open(message)))
        assert reply[:2] == [1, 7]
        return reply[2:]


@asynccontextmanager
async def peer(server) -> AsyncGenerator[Peer]:
    options = QuicConfiguration(is_client=True, alpn_protocols=["citius-rpc"])
    options.verify_mode = ssl.CERT_NONE
    made = connect("127.0.0.1", server.port, configuration=options, create_protocol=Peer)
    async with made as client:
        assert isinstance(client, Peer)
        yield client
