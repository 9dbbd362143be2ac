"""Pages and resources for a browser."""

# pyright: basic

import asyncio

from citius import App, Response

app = App()

events = []


@app.get("/")
def page():
    parts = "".join(f"<script src=/part/{n}.js></script>" for n in range(30))
    text = "<!doctype html><title>Hello</title><script>var loaded = 0</script>" + parts
    return Response(text, content_type="text/html")


@app.get("/part/{name}")
def part(name):
    return Response("loaded += 1;", content_type="text/javascript")


@app.post("/echo")
def echo(request):
    return request.body()


@app.post("/count", stream=True)
async def count(request):
    return str(sum([len(chunk) async for chunk in request.stream()]))


@app.get("/ticks")
async def ticks(request):
    first = int(request.header("last-event-id") or 0) + 1

    async def pieces():
        try:
            yield "retry: 10\n\n"
            for n in range(first, first + 3):
                yield f"id: {n}\ndata: tick {n}\n\n"
                await asyncio.sleep(0)
            if first > 1:
                await asyncio.sleep(60)
        finally:
            events.append(f"ticks from {first} ended")

    return Response(pieces(), content_type="text/event-stream")


@app.get("/slow")
async def slow():
    events.append("slow began")
    try:
        await asyncio.sleep(60)
    finally:
        events.append("slow ended")


@app.get("/events")
def seen():
    return events


@app.websocket("/ws")
async def socket(ws):
    await ws.accept(ws.subprotocols[0])
    await ws.send(ws.request.http_version)
    async for message in ws:
        await ws.send(message)
    events.append(f"socket {ws.close_code}")
