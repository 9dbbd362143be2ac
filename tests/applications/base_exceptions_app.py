"""Code of each kind that raises a BaseException."""

# pyright: basic

import asyncio
import threading

from citius import App, ClientDisconnected, event_stream
from citius.cluster import Cluster

cluster = Cluster()
app = App(cluster=cluster)
values = cluster.cache("values", type=str)
mcp = app.mcp("/mcp")


def breaking(error):
    yield b"begun"
    raise error


def stubborn():
    try:
        for _ in range(2):
            yield b"begun"
            raise KeyError("in the middle")
    finally:
        raise SystemExit("while it is closed")


class Closed:
    def __iter__(self):
        return self

    def __next__(self):
        raise KeyError("first")

    def close(self):
        raise KeyboardInterrupt("while it is closed")


ERRORS = {
    "exit": SystemExit("odd"),
    "interrupt": KeyboardInterrupt("odd"),
    "cancelled": asyncio.CancelledError("odd"),
    "base": BaseException("odd"),
    "gone": ClientDisconnected("odd"),
}

app.get("/def/{name}")(lambda name: breaking(ERRORS[name]))
app.get("/blocking/{name}", blocking=True)(lambda name: breaking(ERRORS[name]))
app.get("/closed")(lambda: Closed())
app.get("/closed-blocking", blocking=True)(lambda: Closed())


@app.get("/async/{name}")
async def from_async(name):
    yield b"begun"
    await asyncio.sleep(0)
    raise ERRORS[name]


@app.get("/raise/{name}", blocking=True)
def raises(name):
    raise ERRORS[name]


@app.get("/thread", blocking=True)
def thread():
    return threading.current_thread().name


async def leave(name):
    await asyncio.sleep(0.001)
    raise ERRORS[name]


@app.get("/events/{name}")
async def events(name):
    async def source():
        yield "begun"
        await leave(name)

    return event_stream(source(), heartbeat_s=60)


@app.get("/cached/{name}")
async def cached(name):
    return await values.get_or_make(name, lambda: leave(name))


@mcp.tool
async def tool(name: str) -> str:
    await leave(name)
    return "not reached"


@mcp.tool(blocking=True)
def blocking_tool(name: str) -> str:
    raise ERRORS[name]


async def asgi(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    await leave(scope["path"].rpartition("/")[2])


app.mount("/asgi", asgi)
