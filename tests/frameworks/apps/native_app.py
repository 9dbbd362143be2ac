"""A native application with a bit of everything, as itself (`app`) and as an ASGI application (`asgi`)."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from citius import (
    App,
    Event,
    EventStream,
    Header,
    HTTPError,
    NotFound,
    Query,
    Request,
    Response,
    WebSocket,
    file_response,
)

FOLDER = Path(os.environ.get("COURSE_DIR", "."))
noticed: list[str] = []


class Item(msgspec.Struct):
    name: str
    price: float
    tags: list[str] = []


@asynccontextmanager
async def lifespan(app: App):
    app.state.started = "yes"
    yield
    print("the lifespan has ended", flush=True)


app = App(lifespan=lifespan)


@app.get("/")
def hello():
    return "Hello, wörld"


@app.get("/state")
def state(request: Request):
    return request.app.state.started


@app.get("/items/{id:int}")
def item(id: int, q: str = "", limit: Annotated[int, Query(ge=1, le=100)] = 10):
    return {"id": id, "q": q, "limit": limit}


@app.post("/items")
async def make(item: Item) -> Item:
    return item


@app.get("/show/{rest:path}")
def show(request: Request, rest: str, agent: Annotated[str, Header(alias="user-agent")]):
    return {
        "rest": rest,
        "path": request.path,
        "raw": request.raw_path.decode(),
        "query": request.raw_query.decode(),
        "method": request.method,
        "http": request.http_version,
        "scheme": request.scheme,
        "client": request.client and request.client[0],
        "root_path": request.root_path,
        "cookies": dict(request.cookies),
        "agent": agent,
        "twice": request.headers.getlist("x-twice"),
    }


@app.get("/cookies")
def cookies():
    response = Response("set", headers=[("x-own", "ä"), ("x-twice", "1"), ("x-twice", "2")])
    response.headers.set_cookie("a", "1")
    response.headers.set_cookie("b", "2")
    return response


@app.get("/nothing")
def nothing():
    return None


@app.get("/teapot")
def teapot():
    raise HTTPError(418, "short and stout")


@app.get("/broken")
def broken():
    raise ValueError("a defect of the application")


@app.get("/missing")
async def missing():
    raise NotFound("no such thing")


@app.get("/blocking", blocking=True)
def blocking():
    time.sleep(0.01)
    return {"blocking": True}


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(5):
            yield f"{number} " * 1000
            await asyncio.sleep(0)

    return Response(pieces(), content_type="text/plain")


@app.get("/large")
def large():
    return Response(iter([b"x" * 65_536] * 100), content_type="application/octet-stream")


@app.get("/cut")
async def cut():
    async def pieces():
        yield "the beginning"
        await asyncio.sleep(0)
        raise RuntimeError("no end")

    return Response(pieces(), content_type="text/plain")


@app.get("/events")
async def events() -> EventStream:
    async def made():
        for number in range(3):
            yield Event({"number": number}, event="count", id=str(number))

    return EventStream(made())


@app.get("/file")
def file():
    return file_response(FOLDER / "course.bin", filename="course.bin")


@app.post("/count", stream=True)
async def count(request: Request):
    total = 0
    async for piece in request.stream():
        total += len(piece)
    return total


@app.post("/echo", stream=True)
async def echo(request: Request):
    async def pieces():
        async for piece in request.stream():
            yield piece

    return Response(pieces(), content_type="application/octet-stream")


@app.post("/unread", stream=True)
async def unread():
    return Response("I do not want it", 413)


@app.post("/form")
def form(request: Request):
    data = request.form()
    return {name: data[name] for name in data}


@app.get("/until-gone")
async def until_gone():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        noticed.append("handler")
        raise


@app.get("/endless")
async def endless():
    async def pieces():
        try:
            while True:
                yield "x" * 1000
                await asyncio.sleep(0.01)
        finally:
            noticed.append("stream")

    return Response(pieces(), content_type="text/plain")


@app.get("/noticed")
def shown():
    return noticed


app.static("/files", FOLDER)


@app.websocket("/talk")
async def talk(socket: WebSocket):
    await socket.accept("chat" if "chat" in socket.subprotocols else None, [("x-own", "yes")])
    await socket.send_json({"path": socket.path, "offered": socket.subprotocols})
    async for message in socket:
        if message == "close":
            await socket.close(4001, "as you wish")
            return
        if message == "break":
            raise ValueError("a defect of the WebSocket")
        await socket.send(message)
    noticed.append(f"closed {socket.close_code}")


@app.websocket("/refused")
async def refused(socket: WebSocket):
    return Response("not you", 403, {"x-why": "because"})


asgi = app.asgi()
