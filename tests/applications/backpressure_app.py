"""How much a handler has sent, and how much it has taken."""

# pyright: basic

import asyncio

from citius import App

app = App()

app.state.sent = app.state.taken = 0


@app.get("/sent")
async def sent():
    while True:
        app.state.sent += 1000
        yield b"x" * 1000


@app.post("/taken", stream=True)
async def taken(request):
    async for piece in request.stream():
        app.state.taken += len(piece)
        app.state.gate = asyncio.get_running_loop().create_future()
        await app.state.gate
    return "done"


@app.get("/counts")
def counts():
    return {"sent": app.state.sent, "taken": app.state.taken}


@app.get("/go")
def go():
    app.state.gate.set_result(None)
