"""Routes for limits on requests and responses."""

# pyright: basic

import asyncio

from citius import App

app = App()
app.state.running = app.state.at_once = 0


@app.get("/")
def hello():
    return "Hello"


@app.post("/echo")
def echo(request):
    return request.body()


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    app.state.running += 1
    app.state.at_once = max(app.state.at_once, app.state.running)
    await asyncio.sleep(ms / 1000)
    app.state.running -= 1
    return "slow"


@app.get("/at-once")
def at_once():
    return app.state.at_once


@app.post("/ignore", stream=True)
async def ignore(request):
    return "ignored"


@app.get("/endless")
def endless():
    try:
        while True:
            yield b"x" * 65536
    finally:
        app.state.closed = True


@app.get("/closed")
def closed():
    return getattr(app.state, "closed", False)
