"""Asks a server single calls on streams of QUIC; ``aioquic`` reads packets and ``msgpack`` messages.

It is no part of the measurement.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Response, WrongResponse
from citius_lab.verify import http3, rpc

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Case

with contextlib.suppress(ImportError):  # the connection says so
    from aioquic.quic.events import StreamDataReceived


class Connection(http3.Quic):
    """One connection to a server's procedures, without HTTP/3.

    Raises:
        OSError: The server does not answer.
        WrongResponse: What comes back is not the response of a call.
        LabError: The library is not installed.
    """

    def __init__(self, port: int, *, timeout_s: float = 10.0) -> None:
        super().__init__(port, PROTOCOL, timeout_s=timeout_s)

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Call the procedure that does the work of a case on a stream of its own, and wait for its result.

        Args:
            target: What a request of HTTP would be for: the procedure's name, without a case.
            case: Whose workload is the name.
        """
        started_at = time.perf_counter()
        name = target.strip("/") if case is None else case.workload
        stream = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(stream, rpc.packed((0, 1, name, ())), end_stream=True)
        data = self._receive(stream)
        elapsed_s = time.perf_counter() - started_at
        try:
            message = rpc.msgpack.unpackb(data)
        except (ValueError, rpc.msgpack.UnpackException) as error:
            raise WrongResponse(f"not MessagePack: {error or type(error).__name__}") from error
        return rpc.response_of(name, 1, message, elapsed_s)

    def _receive(self, stream: int) -> bytes:
        data = b""
        for happened in self._events(stream):
            if isinstance(happened, StreamDataReceived) and happened.stream_id == stream:
                data += happened.data
                if happened.end_stream:
                    return data
        raise AssertionError("the events end by an exception")


# The ALPN of calls without HTTP/3.
PROTOCOL = "citius-rpc"
