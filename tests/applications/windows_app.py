"""What a server on Windows does."""

# pyright: basic

import asyncio
import sys
import threading
from typing import Annotated

from citius import App, File, UploadFile, file_response

app = App()


@app.get("/")
async def index():
    await asyncio.sleep(0.001)
    return f"{sys.platform} {type(asyncio.get_running_loop()).__name__}"


@app.get("/thread", blocking=True)
def thread():
    return threading.current_thread().name


@app.get("/large")
def large():
    return b"x" * 5_000_000


@app.get("/file")
def file():
    return file_response("large.bin")


@app.get("/pieces")
async def pieces():
    for number in range(3):
        yield f"{number} ".encode()
        await asyncio.sleep(0.01)


@app.post("/upload")
async def upload(file: Annotated[UploadFile, File()]) -> str:
    return str(len(await file.read()))


@app.websocket("/ws")
async def echo(ws):
    async for message in ws:
        await ws.send(message)


app.static("/static", "site")
