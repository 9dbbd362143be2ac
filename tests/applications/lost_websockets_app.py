"""Handlers that say how they end."""

# pyright: basic

import asyncio

from citius import App

app = App()

seen = []


@app.get("/seen")
def tell():
    return seen


@app.websocket("/waits")
async def waits(ws):
    await ws.accept()
    try:
        async for _message in ws:
            pass
        seen.append(f"ended {ws.close_code}")
    except BaseException as error:
        seen.append(repr(error))


@app.websocket("/elsewhere")
async def elsewhere(ws):
    await ws.accept()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
