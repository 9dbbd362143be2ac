"""Sends messages of WebTransport back, by aioquic: ``server.py PORT WORKERS CERT KEY``."""

# pyright: basic, reportMissingImports=false

import asyncio
import os
import socket
import sys

import uvloop
from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated


class Echo(QuicConnectionProtocol):
    """One connection, with any number of sessions."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._http = None
        self._streams = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic, enable_webtransport=True)
        if self._http is not None:
            for one in self._http.handle_event(event):
                self._take(one)

    def _take(self, event):
        if isinstance(event, HeadersReceived):
            self._answer(event.stream_id, dict(event.headers))
        elif isinstance(event, DatagramReceived):
            self._http.send_datagram(event.stream_id, event.data)
        elif isinstance(event, WebTransportStreamDataReceived):
            message = self._streams.pop(event.stream_id, b"") + event.data
            if event.stream_ended:
                self._quic.send_stream_data(event.stream_id, message, end_stream=True)
            else:
                self._streams[event.stream_id] = message

    def _answer(self, stream, fields):
        is_session = fields.get(b":protocol") in (b"webtransport", b"webtransport-h3")
        if is_session and fields[b":path"] == b"/echo":
            version = (b"sec-webtransport-http3-draft", b"draft02")
            self._http.send_headers(stream, [(b":status", b"200"), version])
        else:
            self._http.send_headers(stream, [(b":status", b"404")], end_stream=True)


async def serve(port, cert, key):
    """Listen, together with the other workers."""
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=False, max_datagram_frame_size=65536
    )
    configuration.load_cert_chain(cert, key)
    receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    receiving.bind(("127.0.0.1", port))
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(
        lambda: QuicServer(configuration=configuration, create_protocol=Echo), sock=receiving
    )
    await loop.create_future()


def main():
    """Fork into as many workers as asked for; the kernel spreads connections over their sockets."""
    port, workers, cert, key = sys.argv[1:]
    for _ in range(int(workers) - 1):
        if os.fork() == 0:
            break
    uvloop.run(serve(int(port), cert, key))


if __name__ == "__main__":
    main()
