"""Asks a server single requests over HTTP/2; the frames are read by an independent library, ``h2``.

It is no part of the measurement.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from citius_lab.definitions import wires
from citius_lab.definitions.workloads import Response, WrongResponse

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Case


class Connection:
    """One HTTP/2 connection to a server under test.

    Raises:
        OSError: The server does not accept, or breaks off.
        WrongResponse: What comes back is not HTTP/2.
    """

    def __init__(self, port: int, *, timeout_s: float = 10.0, wire: str = wires.H2C) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wires.is_tls(wire):
            wrapped = wires.client_context(wire).wrap_socket(
                self._socket, server_hostname="localhost"
            )
            self._socket = wrapped
            if wrapped.selected_alpn_protocol() != "h2":
                raise WrongResponse("the server does not choose h2 by ALPN")
        self._scheme = "https" if wires.is_tls(wire) else "http"
        self._authority = f"127.0.0.1:{port}"
        self._state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._state.initiate_connection()
        self._flush()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Send one request and wait for its answer; a case adds its method, fields and body."""
        started_at = time.perf_counter()
        method = "GET" if case is None else case.method
        fields = [] if case is None else [(name.lower(), value) for name, value in case.headers]
        body = b"" if case is None else case.body
        stream = self._state.get_next_available_stream_id()
        head = [
            (":method", method),
            (":scheme", self._scheme),
            (":authority", self._authority),
            (":path", target),
        ]
        self._state.send_headers(stream, [*head, *fields], end_stream=not body)
        return self._receive(stream, self._send(stream, body), started_at)

    def _send(self, stream: int, body: bytes) -> bytes:
        """Send as much of a body as the windows have room for; return the rest."""
        while body:
            room = self._state.local_flow_control_window(stream)
            size = min(room, self._state.max_outbound_frame_size, len(body))
            if size <= 0:
                break
            self._state.send_data(stream, body[:size], end_stream=size == len(body))
            body = body[size:]
        self._flush()
        return body

    def _receive(self, stream: int, unsent: bytes, started_at: float) -> Response:
        fields: dict[str, str] = {}
        body = bytearray()
        while True:
            for event in self._events():
                if isinstance(event, h2.events.ConnectionTerminated):
                    raise WrongResponse(f"the server went away: {event.error_code}")
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    fields = {str(name): str(value) for name, value in event.headers or ()}
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data or b""
                    self._state.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                elif isinstance(event, h2.events.StreamReset):
                    raise WrongResponse(f"the server reset the stream: {event.error_code}")
                elif isinstance(event, h2.events.StreamEnded):
                    self._flush()
                    return answer_of(fields, bytes(body), time.perf_counter() - started_at)
            unsent = self._send(stream, unsent)

    def _events(self) -> list[h2.events.Event]:
        data = self._socket.recv(65_536)
        if not data:
            raise WrongResponse("the server closed the connection instead of answering")
        if data.startswith(b"HTTP/1"):
            # Frames of that length are waited for by the library, which does not know HTTP/1.1.
            raise WrongResponse("not HTTP/2: it answers in HTTP/1.1")
        try:
            return self._state.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            raise WrongResponse(f"not HTTP/2: {error or type(error).__name__}") from error

    def _flush(self) -> None:
        if data := self._state.data_to_send():
            self._socket.sendall(data)


def answer_of(fields: dict[str, str], body: bytes, elapsed_s: float) -> Response:
    """Return what header fields and body are as an answer, in HTTP/2 and HTTP/3.

    Raises:
        WrongResponse: There is no status, or another length is declared.
    """
    content_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    declared = fields.get("content-length")
    if declared is not None and declared != str(len(body)):
        raise WrongResponse(f"content-length says {declared}, the body has {len(body)} bytes")
    try:
        status = int(fields[":status"])
    except (KeyError, ValueError):
        raise WrongResponse("a response without a status") from None
    return Response(status, content_type, body, elapsed_s)
