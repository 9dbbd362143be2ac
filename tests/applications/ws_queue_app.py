"""Messages that wait for their handler."""

# pyright: basic

import asyncio

from citius import App

app = App()

go = asyncio.Event()


@app.get("/go")
async def let_go() -> str:
    go.set()
    return "gone"


@app.websocket("/")
async def slow(ws):
    await ws.accept()
    await go.wait()
    n = 0
    async for message in ws:
        assert message == f"{n:04}" + "x" * 996, message[:10]
        n += 1
        if n == 20_000:
            await ws.send("all of them")
