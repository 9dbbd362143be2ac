"""Responses for clients of HTTP/2 that are not ours."""

# pyright: basic

import asyncio

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/version")
def version(request):
    return request.http_version


@app.post("/echo")
def echo(request):
    return request.body()


@app.get("/pieces")
async def pieces():
    for number in range(100):
        await asyncio.sleep(0)
        yield str(number) * 1000
