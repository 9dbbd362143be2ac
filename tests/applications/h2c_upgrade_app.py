"""Requests that ask for an upgrade."""

# pyright: basic

import asyncio

from citius import App

app = App()


@app.get("/")
def facts(request):
    return {
        "version": request.http_version,
        "headers": [name for name, _ in request.headers.items()],
    }


@app.post("/")
def echo(request):
    return request.body()


@app.get("/pieces")
async def pieces():
    yield b"one"
    await asyncio.sleep(0.01)
    yield b"two"
