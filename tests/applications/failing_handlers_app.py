"""Handlers that fail in every way."""

# pyright: basic

import asyncio

from citius import App

app = App()


@app.get("/def")
def raising():
    raise RuntimeError("a defect")


@app.get("/request")
def raising_with_request(request):
    raise RuntimeError("a defect")


@app.get("/async/{id:int}")
async def stepped(id: int):
    raise RuntimeError("a defect")


@app.get("/late")
async def late():
    await asyncio.sleep(0)
    raise RuntimeError("a defect")


@app.get("/blocking", blocking=True)
def threaded():
    raise RuntimeError("a defect")


@app.get("/stream")
def streamed():
    yield b"piece"
    raise RuntimeError("a defect")


@app.get("/async-stream")
async def astreamed():
    yield b"piece"
    raise RuntimeError("a defect")


@app.get("/unencodable")
def unencodable():
    return {"a": object()}


async def value():
    return 1


@app.get("/unawaited")
def unawaited():
    return value()


@app.exception_handler(KeyError)
def bad_error_handler(request, error):
    raise RuntimeError("a defect")


@app.get("/error-handler")
def keyed():
    raise KeyError("k")


@app.websocket("/ws")
async def ws(socket):
    await socket.accept()
    raise RuntimeError("a defect")
