"""Bodies in pieces, both ways. citius serve examples/stream.py

curl -N localhost:8000/ticks?count=3
curl -T big.iso localhost:8000/upload
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from citius import App, Query, Request

app = App()


@app.get("/ticks", content_type="text/event-stream")
async def ticks(
    count: Annotated[int, Query(ge=0, le=20)] = 10,
    pause_ms: Annotated[int, Query(ge=0, le=100)] = 100,
) -> AsyncIterator[str]:
    for number in range(count):
        yield f"data: {number}\n\n"
        await asyncio.sleep(pause_ms / 1000)


class Upload(msgspec.Struct):
    bytes: int
    sha256: str


@app.put("/upload", stream=True)
async def upload(request: Request) -> Upload:
    digest = hashlib.sha256()
    size = 0
    async for piece in request.stream():
        digest.update(piece)
        size += len(piece)
    return Upload(size, digest.hexdigest())
