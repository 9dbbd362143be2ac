"""What an application sees of TLS."""

# pyright: basic

import asyncio
import os

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/about")
def about(request):
    tls = request.tls
    return {
        "scheme": request.scheme,
        "version": tls and tls.version,
        "cipher": tls and tls.cipher,
        "server_name": tls and tls.server_name,
        "client_name": tls and tls.client_name,
        "chain": tls and len(tls.client_chain),
        "resumed": tls and tls.is_resumed,
        "pid": os.getpid(),
    }


@app.post("/echo")
def echo(request):
    return request.body()


@app.post("/count", stream=True)
async def count(request):
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
    return str(total)


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    await asyncio.sleep(ms / 1000)
    return "slow"


@app.get("/large/{kib:int}")
def large(kib: int):
    return b"x" * (kib * 1024)


@app.get("/stream/{pieces:int}")
async def stream(pieces: int):
    for _ in range(pieces):
        await asyncio.sleep(0)
        yield b"y" * 20000
