"""Handlers that have not accepted yet when their client leaves."""

# pyright: basic

import asyncio

from citius import App, SerialWebSocket

app = App()

ended = []


@app.get("/ended")
async def tell_ended():
    return len(ended)


@app.get("/pool")
def pool() -> str:
    return "a thread is free"


@app.websocket("/serial")
def serial(ws: SerialWebSocket):
    try:
        ws.receive()
    finally:
        ended.append("serial")


@app.websocket("/async")
async def before_accepting(ws):
    try:
        await asyncio.sleep(600)
    finally:
        ended.append("async")


@app.websocket("/late")
async def accepts_too_late(ws):
    try:
        while ws.close_code is None:
            await asyncio.sleep(0.001)
    except asyncio.CancelledError:
        pass
    try:
        await ws.accept()
    finally:
        ended.append("late")
