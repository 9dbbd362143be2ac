"""Responses of every length for hostile clients of HTTP/2."""

# pyright: basic

import asyncio

from citius import App

app = App()

large = b"x" * (256 * 1024)


@app.get("/")
def hello():
    return "Hello"


@app.get("/wait")
async def wait():
    await asyncio.sleep(60)


@app.get("/large")
def whole():
    return large


@app.get("/endless")
def endless():
    while True:
        yield large


@app.post("/echo")
def echo(request):
    return request.body()
