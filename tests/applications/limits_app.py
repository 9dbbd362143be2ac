"""Routes for limits on requests and responses."""

# pyright: basic

import asyncio

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.post("/echo")
def echo(request):
    return request.body()


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    app.state.running = getattr(app.state, "running", 0) + 1
    await asyncio.sleep(ms / 1000)
    return "slow"


@app.get("/running")
def running():
    return getattr(app.state, "running", 0)


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
