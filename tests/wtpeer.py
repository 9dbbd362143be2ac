"""A client of WebTransport over aioquic: sessions, their streams and datagrams."""

# pyright: basic

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aioquic.buffer import Buffer, encode_uint_var
from aioquic.h3.connection import FrameType
from aioquic.h3.events import DatagramReceived, DataReceived, WebTransportStreamDataReceived
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import StopSendingReceived, StreamReset
from h3peer import H3Client, configuration
from rig import TIMEOUT_S, Server

CLOSE, DRAIN = 0x2843, 0x78AE
FIRST_CODE = 0x52E4A40FA8DB


def to_http3(code: int) -> int:
    """An application's code as HTTP/3 sends it."""
    return FIRST_CODE + code + code // 0x1E


@dataclass
class Stream:
    """What has come of a stream."""

    session: int = -1
    data: bytes = b""
    ended: bool = False
    reset: int | None = None
    stopped: int | None = None


@dataclass
class Session:
    """One session, as its client sees it."""

    client: WtClient
    id: int
    datagrams: list[bytes] = field(default_factory=list)
    capsules: list[tuple[int, bytes]] = field(default_factory=list)

    def open(self, data: bytes = b"", *, uni: bool = False, ends: bool = False) -> int:
        h3 = self.client.h3
        stream = h3.create_webtransport_stream(self.id, is_unidirectional=uni)
        if not uni:
            # aioquic takes what comes back on it for frames.
            with h3._get_or_create_stream(stream) as known:
                known.frame_type, known.session_id = FrameType.WEBTRANSPORT_STREAM, self.id
        self.send(stream, data, ends=ends)
        return stream

    def send(self, stream: int, data: bytes = b"", *, ends: bool = False) -> None:
        self.client._quic.send_stream_data(stream, data, ends)
        self.client.transmit()

    def send_datagram(self, data: bytes) -> None:
        self.client.h3.send_datagram(self.id, data)
        self.client.transmit()

    def capsule(self, kind: int, value: bytes = b"", *, ends: bool = False) -> None:
        data = encode_uint_var(kind) + encode_uint_var(len(value)) + value
        self.client.h3.send_data(self.id, data, ends)
        self.client.transmit()

    def close(self, code: int, reason: str = "") -> None:
        self.capsule(CLOSE, code.to_bytes(4) + reason.encode(), ends=True)

    async def closed(self) -> tuple[int, str]:
        """What the server has closed it with."""
        await self.client.until(lambda: any(kind == CLOSE for kind, _ in self.parse()))
        value = next(value for kind, value in self.parse() if kind == CLOSE)
        return int.from_bytes(value[:4]), value[4:].decode()

    def parse(self) -> list[tuple[int, bytes]]:
        """The capsules that have come."""
        found, buffer = [], Buffer(data=self.client.responses[self.id].body)
        while not buffer.eof():
            kind = buffer.pull_uint_var()
            found.append((kind, buffer.pull_bytes(buffer.pull_uint_var())))
        return found


class WtClient(H3Client):
    """One connection."""

    offers_webtransport = True

    def __init__(self, quic: QuicConnection) -> None:
        super().__init__(quic)
        self.streams: dict[int, Stream] = {}
        self.sessions: dict[int, Session] = {}
        self.has_ended: set[int] = set()
        handle = self.h3.handle_event

        def handled(event):
            others = []
            for one in handle(event):
                if isinstance(one, WebTransportStreamDataReceived):
                    stream = self.streams.setdefault(one.stream_id, Stream())
                    stream.session = one.session_id
                    stream.data += one.data
                    stream.ended |= one.stream_ended
                elif isinstance(one, DatagramReceived):
                    if one.stream_id in self.sessions:
                        self.sessions[one.stream_id].datagrams.append(one.data)
                else:
                    if isinstance(one, DataReceived) and one.stream_ended:
                        self.has_ended.add(one.stream_id)
                    others.append(one)
            return others

        self.h3.handle_event = handled  # pyright: ignore

    def quic_event_received(self, event) -> None:
        if isinstance(event, StreamReset):
            self.streams.setdefault(event.stream_id, Stream()).reset = event.error_code
        elif isinstance(event, StopSendingReceived):
            self.streams.setdefault(event.stream_id, Stream()).stopped = event.error_code
        super().quic_event_received(event)

    async def until(self, condition) -> None:
        async def wait() -> None:
            while not condition():
                self.has_come.clear()
                await self.has_come.wait()

        await asyncio.wait_for(wait(), TIMEOUT_S)

    def ask(self, path: str, *headers: tuple[str, str], protocol: str = "webtransport") -> Session:
        """Ask for a session, and do not wait."""
        stream = self._quic.get_next_available_stream_id()
        fields = {
            ":method": "CONNECT", ":protocol": protocol, ":scheme": "https",
            ":authority": "localhost", ":path": path, "sec-webtransport-http3-draft02": "1",
        }  # fmt: skip
        lines = [(name.encode(), value.encode()) for name, value in (*fields.items(), *headers)]
        self.h3.send_headers(stream, lines)
        self.transmit()
        self.sessions[stream] = Session(self, stream)
        return self.sessions[stream]

    async def status(self, session: Session) -> int:
        await self.until(lambda: session.id in self.responses and self.responses[session.id].status)
        return self.responses[session.id].status

    async def session(
        self, path: str, *headers: tuple[str, str], protocol: str = "webtransport"
    ) -> Session:
        """A session that the server has granted."""
        made = self.ask(path, *headers, protocol=protocol)
        assert await self.status(made) == 200, self.responses[made.id]
        return made

    async def ended(self, stream: int) -> bytes:
        """All of a stream."""
        await self.until(lambda: stream in self.streams and self.streams[stream].ended)
        return self.streams[stream].data


@asynccontextmanager
async def wt_client(server: Server | int, **options) -> AsyncGenerator[WtClient]:
    """A connection to a server, or to a port."""
    port = server if isinstance(server, int) else server.port
    loop = asyncio.get_running_loop()
    config = configuration(max_datagram_frame_size=65536, **options)
    transport, client = await loop.create_datagram_endpoint(
        lambda: WtClient(QuicConnection(configuration=config)), local_addr=("127.0.0.1", 0)
    )
    client.connect(("127.0.0.1", port))
    try:
        await asyncio.wait_for(client.wait_connected(), TIMEOUT_S)
        yield client
    finally:
        client.close()
        transport.close()
