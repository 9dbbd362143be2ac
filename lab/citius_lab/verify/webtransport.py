"""Sends a server single messages of a WebTransport session; ``aioquic`` reads what comes back.

It is no part of the measurement.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import Response, WrongResponse
from citius_lab.verify import http3

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Case

with contextlib.suppress(ImportError):  # the connection says so
    from aioquic.h3.connection import FrameType, H3Connection
    from aioquic.h3.events import DatagramReceived, DataReceived, HeadersReceived
    from aioquic.h3.events import WebTransportStreamDataReceived as StreamData


class Connection(http3.Quic):
    """One HTTP/3 connection with a session for each target that is asked.

    Args:
        is_datagrams: Whether a message is a datagram; else it is a bidirectional stream.

    Raises:
        OSError: The server does not answer.
        WrongResponse: It refuses a session, or breaks the protocol.
        LabError: The library is not installed.
    """

    def __init__(self, port: int, *, is_datagrams: bool, timeout_s: float = 10.0) -> None:
        super().__init__(port, "h3", timeout_s=timeout_s, datagram_bytes_max=DATAGRAM_BYTES_MAX)
        self._authority = f"127.0.0.1:{port}"
        self._is_datagrams = is_datagrams
        self._http: Any = H3Connection(self._quic, enable_webtransport=True)
        self._sessions: dict[str, tuple[int, int]] = {}

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Send the message of a case and wait for the one that comes back; its status is the session's."""
        message = b"" if case is None else case.body
        started_at = time.perf_counter()
        if target not in self._sessions:
            self._sessions[target] = self._open(target)
        session, status = self._sessions[target]
        answer = self._datagram if self._is_datagrams else self._stream
        body = answer(session, message)
        return Response(status, "", body, time.perf_counter() - started_at)

    def _open(self, target: str) -> tuple[int, int]:
        """Wait for the server's settings and ask for a session; return its id and its status."""
        for happened in self._events():
            self._http.handle_event(happened)
            if self._http.received_settings is not None:
                break
        allowed: Any = self._http.received_settings
        if not (allowed.get(ENABLE_CONNECT) == 1 and allowed.get(H3_DATAGRAM) == 1):
            raise WrongResponse(f"the settings allow no session: {allowed}")
        stream = self._quic.get_next_available_stream_id()
        head = {
            ":method": "CONNECT", ":protocol": "webtransport", ":scheme": "https",
            ":authority": self._authority, ":path": target, "sec-webtransport-http3-draft02": "1",
        }  # fmt: skip
        encoded = [(name.encode(), value.encode()) for name, value in head.items()]
        self._http.send_headers(stream, encoded)
        for happened in self._events(stream):
            for event in self._http.handle_event(happened):
                if isinstance(event, HeadersReceived) and event.stream_id == stream:
                    status = int(dict(event.headers)[b":status"])
                    if status != 200:
                        raise WrongResponse(f"{target}: no session, but status {status}")
                    return stream, status
        raise AssertionError("the events end by an exception")

    def _stream(self, session: int, message: bytes) -> bytes:
        stream = self._http.create_webtransport_stream(session)
        # The library takes what comes back on it for frames of HTTP/3.
        with self._http._get_or_create_stream(stream) as known:
            known.frame_type, known.session_id = FrameType.WEBTRANSPORT_STREAM, session
        self._quic.send_stream_data(stream, message, end_stream=True)
        received = bytearray()
        for event in self._of_session(session, stream):
            if isinstance(event, StreamData) and event.stream_id == stream:
                received += event.data
                if event.stream_ended:
                    return bytes(received)
        raise AssertionError("the events end by an exception")

    def _datagram(self, session: int, message: bytes) -> bytes:
        self._http.send_datagram(session, message)
        for event in self._of_session(session):
            if isinstance(event, DatagramReceived) and event.stream_id == session:
                return bytes(event.data)
        raise AssertionError("the events end by an exception")

    def _of_session(self, session: int, *streams: int) -> Any:
        for happened in self._events(session, *streams):
            for event in self._http.handle_event(happened):
                is_over = isinstance(event, DataReceived) and event.stream_ended
                if is_over and event.stream_id == session:
                    raise WrongResponse("the server ended the session")
                yield event


DATAGRAM_BYTES_MAX = 65_536
ENABLE_CONNECT, H3_DATAGRAM = 0x8, 0x33
