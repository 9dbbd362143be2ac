"""A native application for tests of HTTP/2."""

# pyright: basic

import asyncio
import time

from citius import App, Response

app = App()

events = []


@app.get("/")
def hello():
    return "Hello"


@app.get("/facts")
def facts(request):
    return {
        "version": request.http_version,
        "host": request.header("host"),
        "path": request.path,
        "query": request.raw_query.decode(),
        "cookies": dict(request.cookies),
        "target": request.target.decode(),
    }


@app.post("/echo")
def echo(request):
    return request.body()


@app.post("/trailers")
def trailers(request):
    return {"body": request.body().decode(), "trailers": list(request.trailers.items())}


@app.get("/digest")
async def digest():
    async def pieces():
        for piece in ("abc", "de"):
            yield piece

    return Response(pieces(), trailers=lambda: {"x-total": "5"})


@app.post("/upper", stream=True)
async def upper(request):
    async for piece in request.stream():
        yield piece.upper()


@app.post("/lazy", stream=True)
async def lazy(request):
    await app.state.gate.wait()
    return str(len(await request.read()))


@app.get("/open")
async def open_gate():
    app.state.gate.set()
    return "open"


@app.post("/ignore", stream=True)
async def ignore(request):
    return "ignored"


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    events.append("began")
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        events.append("cancelled")
        raise
    return "slow"


@app.get("/late/{ms:int}", blocking=True)
def late(ms: int):
    time.sleep(ms / 1000)
    return "late"


def endless_pieces():
    app.state.sent = 0
    try:
        while True:
            app.state.sent += 16384
            yield b"x" * 16384
    finally:
        events.append("closed")


app.get("/endless")(lambda: endless_pieces())


@app.get("/ticks")
async def ticks():
    async def pieces():
        try:
            for number in range(1000):
                yield f"data: {number}\n\n"
                await asyncio.sleep(0.01)
        finally:
            events.append("silent")

    return Response(pieces(), content_type="text/event-stream")


@app.get("/large/{kib:int}")
def large(kib: int):
    return bytes([65 + kib % 26]) * (kib * 1024)


@app.get("/broken")
def broken():
    raise ValueError("on purpose")


@app.get("/half")
def half():
    yield "half"
    raise ValueError("on purpose")


@app.get("/events")
def seen():
    return events


@app.get("/sent")
def sent():
    return getattr(app.state, "sent", 0)


@app.on_startup
async def begin():
    app.state.gate = asyncio.Event()
