"""Responses of every kind, for fields that all of them have."""

# pyright: basic

import asyncio

from citius import App, Response

app = App()


@app.get("/")
def hello():
    return "hello"


@app.get("/own")
def own():
    fields = [("X-Frame-Options", "SAMEORIGIN"), ("Vary", "origin"), ("Server", "mine")]
    return Response("hello", headers=fields)


@app.get("/type")
def typed():
    return Response(b"1,2", content_type="text/csv")


@app.get("/empty")
def empty():
    return Response(None, 204)


@app.get("/stream")
async def stream():
    async def pieces():
        yield b"12"
        await asyncio.sleep(0)
        yield b"34"

    return pieces()


@app.websocket("/socket")
async def chat(ws):
    async for message in ws:
        await ws.send(message)
