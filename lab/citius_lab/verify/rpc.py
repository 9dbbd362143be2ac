"""Asks a server single calls by MessagePack-RPC; an independent library, ``msgpack``, reads the messages.

It is no part of the measurement.
"""

from __future__ import annotations

import socket
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import Response, WrongResponse

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Case


# It has no types.
msgpack: Any = import_module("msgpack")


class Connection:
    """One connection to a server's procedures.

    Raises:
        OSError: The server does not accept, or breaks off.
        WrongResponse: What comes back is not the answer of a call.
    """

    def __init__(self, port: int, *, timeout_s: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unpacker = msgpack.Unpacker()
        self._msgid = 0

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Call the procedure that does the work of a case, and wait for its result.

        Args:
            target: What a request of HTTP would be for: the procedure's name, without a case.
            case: Whose workload is the name.
        """
        started_at = time.perf_counter()
        name = target.strip("/") if case is None else case.workload
        self._msgid += 1
        self._socket.sendall(packed((0, self._msgid, name, ())))
        message = self._receive()
        return response_of(name, self._msgid, message, time.perf_counter() - started_at)

    def _receive(self) -> Any:
        while True:
            try:
                for message in self._unpacker:
                    return message
            except (ValueError, msgpack.UnpackException) as error:
                raise WrongResponse(f"not MessagePack: {error or type(error).__name__}") from error
            data = self._socket.recv(65_536)
            if not data:
                raise WrongResponse("the server closed the connection instead of answering")
            self._unpacker.feed(data)


def response_of(name: str, msgid: int, message: Any, elapsed_s: float) -> Response:
    """Return the response that a message is to the call ``msgid`` of ``name``.

    Raises:
        WrongResponse: It is none.
    """
    match message:
        case [1, number, None, str() as text] if number == msgid:
            # What a procedure returns has no type but its own: a text is a text.
            return Response(200, "text/plain", text.encode(), elapsed_s, packed(text))
        case [1, number, None, result] if number == msgid:
            raise WrongResponse(f"{name}: expected a text as result, got {str(result)[:100]}")
        case [1, number, error, _] if number == msgid:
            raise WrongResponse(f"{name}: the call failed: {str(error)[:200]}")
        case _:
            raise WrongResponse(f"{name}: not the answer of a call: {str(message)[:100]}")


def packed(value: object) -> bytes:
    """Return a value in MessagePack."""
    encoded: bytes = msgpack.packb(value)
    return encoded
