"""Responses of every kind, for the access log."""

# pyright: basic

import asyncio

from citius import App, Request

app = App()


@app.get("/")
def root():
    return "hello"


@app.get("/items/{id:int}")
async def item(id: int):
    return {"id": id}


@app.get("/stream")
async def stream():
    async def pieces():
        for _ in range(3):
            yield b"12345"
            await asyncio.sleep(0.01)

    return pieces()


@app.get("/id")
def ids(request: Request):
    return f"{request.header('x-request-id')} {request.header('traceparent')}"


@app.get("/same")
def same(request: Request):
    return {"id": request.id, "field": request.header("x-request-id")}


@app.websocket("/socket")
async def chat(ws):
    await ws.send(ws.request.id)
