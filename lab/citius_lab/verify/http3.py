"""Asks a server single requests over HTTP/3; an independent library, ``aioquic``, reads what comes back.

It is no part of the measurement.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import Response, WrongResponse
from citius_lab.errors import LabError
from citius_lab.verify.http2 import answer_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from citius_lab.definitions.workloads import Case

try:
    from aioquic.h3.connection import H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
    from aioquic.quic.events import ConnectionTerminated, StreamReset
except ImportError:
    QuicConnection = None


class Quic:
    """One connection of QUIC to a server under test, on which ``protocol`` is spoken (ALPN).

    Args:
        datagram_bytes_max: What it takes of datagrams; ``None`` for none.

    Raises:
        OSError: The server does not answer.
        LabError: The library is not installed.
    """

    def __init__(
        self,
        port: int,
        protocol: str,
        *,
        timeout_s: float = 10.0,
        datagram_bytes_max: int | None = None,
    ) -> None:
        if QuicConnection is None:
            raise LabError(
                "responses over QUIC are verified by aioquic: pip install citius-lab[http3]"
            )
        self._timeout_s = timeout_s
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(("127.0.0.1", port))
        configuration = QuicConfiguration(
            is_client=True,
            alpn_protocols=[protocol],
            server_name="localhost",
            # The lab's own certificate proves nothing, so none is asked for.
            verify_mode=ssl.CERT_NONE,
            max_datagram_frame_size=datagram_bytes_max,
        )
        self._address = ("127.0.0.1", port)
        # Any: the library is optional, so its classes may be unbound to a type checker.
        self._quic: Any = QuicConnection(configuration=configuration)
        self._quic.connect(self._address, now=time.monotonic())

    def close(self) -> None:
        """End the connection."""
        self._quic.close()
        self._flush()
        self._socket.close()

    def _turn(self, deadline: float) -> None:
        """Send what is due, and wait for a datagram or for a timer."""
        self._flush()
        now = time.monotonic()
        if now >= deadline:
            raise TimeoutError("no response over QUIC in time")
        timer = self._quic.get_timer()
        until = deadline if timer is None else min(deadline, timer)
        self._socket.settimeout(max(until - now, 0.001))
        try:
            datagram = self._socket.recv(65_536)
        except TimeoutError:
            self._quic.handle_timer(now=time.monotonic())
            return
        self._quic.receive_datagram(datagram, self._address, now=time.monotonic())

    def _events(self, *streams: int) -> Generator[Any]:
        """What happens on the connection, until the caller has the response of ``streams``.

        Raises:
            WrongResponse: The server ended the connection or the stream.
            TimeoutError: Nothing came in time.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            self._turn(deadline)
            while (happened := self._quic.next_event()) is not None:
                if isinstance(happened, ConnectionTerminated):
                    raise WrongResponse(
                        f"the server went away: {happened.error_code:#x} {happened.reason_phrase}"
                    )
                if isinstance(happened, StreamReset) and happened.stream_id in streams:
                    raise WrongResponse(f"the server reset the stream: {happened.error_code:#x}")
                yield happened

    def _flush(self) -> None:
        for datagram, _ in self._quic.datagrams_to_send(now=time.monotonic()):
            self._socket.send(datagram)


class Connection(Quic):
    """One HTTP/3 connection to a server under test.

    Raises:
        OSError: The server does not answer.
        WrongResponse: What comes back is not HTTP/3.
        LabError: The library is not installed.
    """

    def __init__(self, port: int, *, timeout_s: float = 10.0) -> None:
        super().__init__(port, "h3", timeout_s=timeout_s)
        self._authority = f"127.0.0.1:{port}"
        self._http: Any = H3Connection(self._quic)

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Send one request and wait for its answer; a case adds its method, fields and body."""
        started_at = time.perf_counter()
        method = "GET" if case is None else case.method
        fields = [] if case is None else case.headers
        body = b"" if case is None else case.body
        stream = self._quic.get_next_available_stream_id()
        head = [
            (":method", method),
            (":scheme", "https"),
            (":authority", self._authority),
            (":path", target),
            *((name.lower(), value) for name, value in fields),
        ]
        encoded = [(name.encode(), value.encode()) for name, value in head]
        self._http.send_headers(stream, encoded, end_stream=not body)
        if body:
            self._http.send_data(stream, body, end_stream=True)
        return self._receive(stream, started_at)

    def _receive(self, stream: int, started_at: float) -> Response:
        fields: dict[str, str] = {}
        body = bytearray()
        for happened in self._events(stream):
            for event in self._http.handle_event(happened):
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, HeadersReceived) and not fields:
                    fields = _decoded(event.headers)
                elif isinstance(event, DataReceived):
                    body += event.data
                if event.stream_ended:
                    elapsed_s = time.perf_counter() - started_at
                    return answer_of(fields, bytes(body), elapsed_s)
        raise AssertionError("the events end by an exception")


def _decoded(headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {name.decode(): value.decode("latin-1") for name, value in headers}
