"""Bodies in pieces, both ways. citius serve examples/stream.py

curl -N localhost:8000/ticks?count=3
curl -T big.iso localhost:8000/upload
"""

from __future__ import annotations

import asyncio
import hashlib

from citius import App, Request, Response

app = App()


@app.get("/ticks")
def ticks(count: int = 10, pause_ms: int = 100):
    async def events():
        for number in range(count):
            yield f"data: {number}\n\n"
            await asyncio.sleep(pause_ms / 1000)

    return Response(events(), content_type="text/event-stream")


@app.put("/upload", stream=True)
async def upload(request: Request):
    digest = hashlib.sha256()
    size = 0
    async for piece in request.stream():
        digest.update(piece)
        size += len(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}
