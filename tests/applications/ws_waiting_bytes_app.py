"""A handler that takes its first message when it is told to."""

# pyright: basic

import asyncio

from citius import App

app = App()

go, waiting = asyncio.Event(), []


@app.get("/go")
async def let_go() -> str:
    go.set()
    return "gone"


@app.get("/waiting")
async def count() -> int:
    return len(waiting)


@app.websocket("/slow")
async def slow(ws):
    await ws.accept()
    waiting.append(ws)
    try:
        await go.wait()
    finally:
        waiting.remove(ws)
    async for message in ws:
        await ws.send(str(len(message)))


@app.websocket("/fast")
async def fast(ws):
    async for message in ws:
        await ws.send(str(len(message)))
