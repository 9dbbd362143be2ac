"""An application that calls a server, whose port is in ``PEER``."""

from __future__ import annotations

import asyncio
import os

from citius import App, Request
from citius._core import HttpOrigin
from citius.http.transport import Pool

app = App()
origin = HttpOrigin("http", "127.0.0.1", int(os.environ["PEER"]))
DEADLINES = (5.0, 5.0, 5.0, 5.0, 10.0)
pools: list[Pool] = []


def pool() -> Pool:
    """The pool of this worker's loop."""
    if not pools:
        pools.append(Pool(connections_per_origin_max=8))
    return pools[0]


@app.get("/call/{name}")
async def call(name: str) -> dict[str, object]:
    reply = await pool().send(origin, "GET", f"/{name}", [], None, False, DEADLINES)
    return {"body": reply.body.decode(), "reused": reply.connection_reused}


@app.post("/echo", body_bytes_max=20_000_000)
async def echo(request: Request) -> bytes:
    upload = pool().upload()
    sent = pool().send(origin, "POST", "/echo", [], upload, True, DEADLINES)
    sent.start()
    body = request.body()
    for at in range(0, len(body), 50_000):
        await upload.send(body[at : at + 50_000])
    await upload.end()
    reply = await sent
    pieces: list[bytes] = []
    while piece := await reply.read():
        pieces.append(piece)
    return b"".join(pieces)


@app.get("/thread", blocking=True)
def thread() -> str:
    return pool().send(origin, "GET", "/thread", [], None, False, DEADLINES).wait().body.decode()


@app.get("/many")
async def many() -> int:
    async def one(number: int) -> bool:
        reply = await pool().send(origin, "GET", f"/{number}", [], None, False, DEADLINES)
        return reply.body == b"/%d" % number

    return sum(await asyncio.gather(*(one(number) for number in range(100))))


@app.get("/stats")
async def stats() -> dict[str, int]:
    return pool().stats()
