"""WebSockets of every kind: echo, flood, refusal, a room; and how their handlers have ended."""

# pyright: basic

from citius import App, Forbidden

app = App()

seen, ends = [], []


@app.get("/seen")
def tell():
    return seen


@app.get("/ends")
def tell_ends():
    return ends


@app.get("/large")
def large():
    return b"x" * 3_000_000


@app.websocket("/about")
async def about(ws):
    tls = ws.request.tls
    await ws.send_json([ws.request.scheme, ws.request.http_version, tls.version, tls.server_name])


@app.websocket("/echo/{name}")
async def echo(ws, name):
    await ws.accept("b" if "b" in ws.subprotocols else None, {"x-version": ws.request.http_version})
    async for message in ws:
        await ws.send(message)
    seen.append(f"{name} {ws.close_code}")
    ends.append(ws.close_code)


@app.websocket("/echo")
async def echo_without_a_name(ws):
    await echo(ws, "")


@app.websocket("/flood")
async def flood(ws):
    for _ in range(2000):
        await ws.send("x" * 1000)


@app.websocket("/no")
async def no(ws):
    raise Forbidden("no")


room = app.room("all")


@app.websocket("/room")
async def join(ws):
    room.join(ws)
    async for message in ws:
        room.send(message)
