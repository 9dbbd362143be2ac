"""Streamed requests and responses."""

# pyright: basic

import asyncio

from citius import App, ClientDisconnected, Forbidden, Response

app = App()

events = []


@app.get("/events")
def seen():
    return events


def pieces():
    try:
        for number in range(5):
            yield f"{number} "
    finally:
        events.append("closed")


@app.get("/def")
def from_def():
    return pieces()


@app.get("/blocking", blocking=True)
def from_thread():
    yield from pieces()


@app.get("/async")
async def from_async():
    for piece in pieces():
        await asyncio.sleep(0)
        yield piece


@app.get("/response")
async def with_response():
    return Response(from_async(), 201, {"x-kind": "stream"}, "text/event-stream")


def endless():
    sent = 0
    try:
        while True:
            sent += 65536
            app.state.sent = sent
            yield b"x" * 65536
    finally:
        events.append("closed")


@app.get("/sent")
def sent():
    return getattr(app.state, "sent", 0)


app.get("/endless/def")(lambda: endless())
app.get("/endless/blocking", blocking=True)(lambda: endless())


@app.get("/endless/async")
async def endless_async():
    iterator = endless()
    try:
        for piece in iterator:
            yield piece
    finally:
        iterator.close()


@app.get("/waits")
async def waits():
    try:
        yield b"first"
        await asyncio.sleep(3600)
    finally:
        events.append("cancelled")


@app.post("/count", stream=True)
async def count(request):
    sizes = []
    async for piece in request.stream():
        sizes.append(len(piece))
    return {"total": sum(sizes), "pieces": len(sizes)}


@app.post("/count-blocking", stream=True, blocking=True)
def count_blocking(request):
    return {"total": sum(len(piece) for piece in request.stream())}


@app.post("/read", stream=True)
async def read(request):
    return {"total": len(await request.read())}


@app.post("/mirror", stream=True)
async def mirror(request):
    async for piece in request.stream():
        yield piece.upper()


@app.post("/refuse", stream=True)
async def refuse(request):
    raise Forbidden("not here")


@app.post("/taken", stream=True)
async def taken(request):
    app.state.taken = 0
    try:
        async for piece in request.stream():
            app.state.taken += len(piece)
            await asyncio.sleep(3600)
    except ClientDisconnected:
        events.append("gone")
        raise
    except asyncio.CancelledError:
        events.append("cancelled")
        raise


@app.get("/taken")
def how_much():
    return getattr(app.state, "taken", -1)


@app.get("/hang")
async def hang():
    events.append("begun")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        events.append("cancelled")
        raise
