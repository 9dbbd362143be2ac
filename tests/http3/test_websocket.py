"""WebSockets over HTTP/3 (RFC 9220): a stream is the tunnel, and handlers see no difference."""

# pyright: basic

from __future__ import annotations

import asyncio

from h3peer import H3Client, h3_client
from rig import TIMEOUT_S
from wspeer import CLOSE, TEXT, frame

APP = """
@app.websocket("/echo")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
"""


class Tunnel:
    """One stream that is a WebSocket."""

    def __init__(self, client: H3Client) -> None:
        self.client = client
        self.taken = 0
        quic = client._quic
        self.stream = quic.get_next_available_stream_id()
        fields = {
            ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https",
            ":authority": "localhost", ":path": "/echo", "sec-websocket-version": "13",
        }  # fmt: skip
        lines = [(name.encode(), value.encode()) for name, value in fields.items()]
        client.h3.send_headers(self.stream, lines)
        client.transmit()

    def send(self, data: bytes, *, ends: bool = False) -> None:
        self.client.h3.send_data(self.stream, data, ends)
        self.client.transmit()

    async def until(self, condition) -> None:
        async def wait() -> None:
            while not condition():
                self.client.has_come.clear()
                await self.client.has_come.wait()

        await asyncio.wait_for(wait(), TIMEOUT_S)

    async def status(self) -> int:
        await self.until(lambda: self.stream in self.client.responses)
        return self.client.responses[self.stream].status

    async def read(self, count: int) -> bytes:
        await self.until(lambda: len(self.client.responses[self.stream].body) >= self.taken + count)
        body = self.client.responses[self.stream].body
        self.taken += count
        return body[self.taken - count : self.taken]


def test_a_socket_echoes_and_closes(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with h3_client(server) as client:
            tunnel = Tunnel(client)
            assert await tunnel.status() == 200
            for size in (3, 1000, 70_000):
                tunnel.send(frame(TEXT, b"x" * size))
                header = {3: 2, 1000: 4, 70_000: 10}[size]
                assert (await tunnel.read(header + size))[header:] == b"x" * size
            tunnel.send(frame(CLOSE, b"\x03\xe8"))
            assert await tunnel.read(4) == b"\x88\x02\x03\xe8"
            assert (await client.get("/nowhere")).status == 404

    asyncio.run(main())


def test_two_sockets_and_a_drain(serve_h3) -> None:
    import signal

    server = serve_h3(app=APP)

    async def main() -> None:
        async with h3_client(server) as client:
            tunnels = [Tunnel(client), Tunnel(client)]
            for tunnel in tunnels:
                assert await tunnel.status() == 200
            server.signal(signal.SIGTERM)
            for tunnel in tunnels:
                # 1012, service restart.
                assert (await tunnel.read(4))[2:4] == b"\x03\xf4"
                tunnel.send(frame(CLOSE, b"\x03\xf4"), ends=True)
            await asyncio.wait_for(client.wait_closed(), TIMEOUT_S)

    asyncio.run(main())
    assert server.wait() == 0
