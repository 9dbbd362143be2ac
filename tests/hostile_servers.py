"""What rows of hostile servers have in common (``hostile_h1``, ``hostile_h2``), and how one is checked."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pytest
from citius.http import errors
from http_peer import get

if TYPE_CHECKING:
    from citius._core import HttpOrigin
    from citius.http.transport import Pool
    from http_peer import Talk

WRONG, LARGE, CUT = errors.RemoteProtocolError, errors.TooLarge, errors.ReadError


@dataclass(frozen=True)
class Case:
    """One server.

    Args:
        said: What it sends in response to the first request.
        error: The class of the exception; ``None``: there is a response.
        reason: The rule that it names.
        status: The status of the response.
        body: Its content.
        method: That of the request.
        is_kept: The next request goes over the same connection.
        resets: The server resets the connection behind what it has said.
        streamed: What comes of it where the content is read as it comes, for which there is no limit.
    """

    said: bytes
    error: type[errors.RequestError] | None = None
    reason: str | None = None
    status: int = 200
    body: bytes = b""
    method: str = "POST"
    is_kept: bool = False
    resets: bool = False
    streamed: Self | None = None


def reset(talk: Talk) -> None:
    """Have the socket reset the connection when it is closed."""
    talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def check_first(pool: Pool, origin: HttpOrigin, case: Case, *, is_streamed: bool) -> None:
    """Send the first request: what comes of it is what the case says."""
    expected = case.streamed if is_streamed and case.streamed is not None else case

    async def call() -> tuple[int, bytes]:
        reply = await get(pool, origin, method=case.method, stream=is_streamed)
        body = b"" if is_streamed else reply.body
        while is_streamed and (piece := await reply.read()):
            body += piece
        return reply.status, body

    if expected.error is None:
        assert await call() == (expected.status, expected.body)
        return
    with pytest.raises(expected.error) as caught:
        await call()
    assert type(caught.value) is expected.error
    assert getattr(caught.value, "reason", None) == expected.reason
