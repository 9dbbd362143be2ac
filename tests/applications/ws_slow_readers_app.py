"""A handler that sends without end."""

# pyright: basic

from citius import App

app = App()

sent = 0


@app.get("/sent")
def tell() -> int:
    return sent


@app.websocket("/")
async def flood(ws):
    global sent
    for _n in range(100_000):
        await ws.send("x" * 1000)
        sent += 1
