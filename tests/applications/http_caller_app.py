"""A server that calls another one; the URL of that is in the variable UPSTREAM."""

# pyright: basic

import os

from citius import App, Request
from citius.http import CircuitOpen, Client, Limits, RequestError, Timeout

client = Client(
    os.environ["UPSTREAM"],
    name="upstream",
    timeout=Timeout(read=20),
    limits=Limits(connections_max=64),
)
broken = Client("http://127.0.0.1:1", name="broken")
app = App(lifespan=client.lifespan)


@app.get("/call/{path:path}")
async def call(path: str) -> str:
    return (await client.get(f"/{path}")).text


@app.get("/thread/{path:path}", blocking=True)
def in_thread(path: str) -> str:
    return client.sync.get(f"/{path}").text


@app.get("/serial/{path:path}", serial=True)
def serial(path: str) -> str:
    return client.sync.get(f"/{path}").text


@app.get("/broken")
async def fails() -> str:
    try:
        return (await broken.get("/")).text
    except RequestError as error:
        return type(error).__name__


@app.get("/open")
async def circuit() -> str:
    raise CircuitOpen("http://secret.internal has failed")


@app.get("/stats")
def stats() -> dict[str, int]:
    return client.stats()


@app.post("/echo")
async def echo(request: Request) -> bytes:
    return request.body()


@app.get("/hello")
def hello(request: Request) -> str:
    return request.headers.get("traceparent") or "hello"
