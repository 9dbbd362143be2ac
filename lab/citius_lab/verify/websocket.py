"""Sends a server single messages of a WebSocket; frames are those of an independent library, ``websockets``.

It is no part of the measurement.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from citius_lab.definitions.workloads import Response, WrongResponse

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Case


class Connection:
    """One WebSocket per target that is asked.

    Raises:
        OSError: The server does not accept, or breaks off.
        WrongResponse: It does not upgrade the connection, or breaks the protocol.
    """

    def __init__(self, port: int, *, timeout_s: float = 10.0) -> None:
        self._base = f"ws://127.0.0.1:{port}"
        self._timeout_s = timeout_s
        self._stack = ExitStack()
        self._open: dict[str, ClientConnection] = {}

    def close(self) -> None:
        """End the connection."""
        self._stack.close()

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Send the message of a case and wait for the one that comes back; its status is the handshake's."""
        text = b"" if case is None else case.body
        started_at = time.perf_counter()
        try:
            peer = self._connected(target)
            peer.send(text.decode())
            message = peer.recv(self._timeout_s)
        except WebSocketException as error:
            raise WrongResponse(f"{target}: {error or type(error).__name__}") from error
        elapsed_s = time.perf_counter() - started_at
        if not isinstance(message, str):
            raise WrongResponse(f"{target}: expected a text, got {message[:60]!r}")
        return Response(101, "", message.encode(), elapsed_s)

    def _connected(self, target: str) -> ClientConnection:
        if target not in self._open:
            peer = connect(
                self._base + target,
                compression=None,
                proxy=None,
                open_timeout=self._timeout_s,
                close_timeout=CLOSE_S,
            )
            self._open[target] = self._stack.enter_context(peer)
        return self._open[target]


# How long the server may take to answer a close frame; how it does is no part of the check.
CLOSE_S = 1.0
