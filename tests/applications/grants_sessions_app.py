"""``grants_app``, with sessions at the paths of its WebSockets."""

# pyright: basic

from __future__ import annotations

import sys
from pathlib import Path

from citius import Response, WebTransportSession

sys.path.insert(0, str(Path(__file__).parent))
from grants_app import app, refusing  # pyright: ignore[reportMissingImports]

__all__ = ["app"]


@app.webtransport("/text")
async def text_of_session(session: WebTransportSession) -> str:
    """Return a value without an acceptance."""
    return "SECRET"


@app.webtransport("/success")
async def success_of_session(session: WebTransportSession) -> Response:
    """Refuse, with a status that grants."""
    return Response(b"", 204)


@refusing.webtransport("/member")
async def session_member(session: WebTransportSession) -> None:
    """What is protected."""
    await session.accept()
