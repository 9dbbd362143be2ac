"""Streams that end when the file GATE exists."""

# pyright: basic

import asyncio
import os

from citius import App, Request, Response

app = App()


async def pieces():
    yield b"a"
    while not os.path.exists(os.environ["GATE"]):
        await asyncio.sleep(0.005)
    yield b"b"


@app.get("/stream")
async def stream():
    return pieces()


@app.get("/length")
async def with_length():
    return Response(pieces(), headers={"content-length": "2"})


@app.post("/next")
async def following(request: Request):
    return request.body().decode()
