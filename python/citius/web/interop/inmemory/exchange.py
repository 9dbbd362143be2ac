"""A response over a connection in memory, as it comes: what the test clients and ``Client(app=…)`` share.

Tests: ``tests/interop/test_async_client.py``, ``tests/interop/test_transport.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from citius.web.interop.inmemory.http1 import ProtocolError, ResponseReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from citius.web.interop.inmemory.memory import MemoryConnection


class Exchange:
    """Reads the response to a request that is sent on ``connection``.

    Args:
        connection: The connection, which carries this request alone.
        method: That of the request.
        timeout_s: Seconds that each wait for the application may take; ``None``: any.
    """

    def __init__(
        self, connection: MemoryConnection, method: str, timeout_s: float | None = None
    ) -> None:
        self.connection = connection
        self.reader = ResponseReader(method)
        self._timeout_s = timeout_s

    async def read_head(self) -> int:
        """Wait for status and fields of the response; returns the status.

        Raises:
            BaseException: What the handler has raised unexpectedly.
        """
        while self.reader.status is None:
            await self.receive()
        self._raise_error()
        return self.reader.status

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while True:
            if piece := self.reader.take_body():
                yield piece
            elif self.reader.complete:
                return
            else:
                await self.receive()

    async def receive(self) -> None:
        """Wait for more.

        Raises:
            TimeoutError: Nothing came.
        """
        async with asyncio.timeout(self._timeout_s):
            data = await self.connection.receive()
        try:
            self.reader.receive(data, not data)
        except ProtocolError:
            self._raise_error()
            raise

    def _raise_error(self) -> None:
        """Raise what the handler has raised unexpectedly."""
        error, self.connection.error = self.connection.error, None
        if error is not None:
            raise error
