"""Content of a response for code that reads it itself, such as middleware or a transport in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from citius.http.base import Reply


async def pieces(reply: Reply) -> AsyncGenerator[bytes]:
    """The content as it comes."""
    try:
        while piece := await reply.read():
            yield piece
    finally:
        reply.close()
