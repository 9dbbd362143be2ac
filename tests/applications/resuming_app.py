"""Members that resume while messages come: in the step in which they join, and from a thread all the time."""

# pyright: basic

import os
import threading

from citius import App, Event, Request, SerialWebSocket, WebSocket
from citius.cluster import Cluster

engine = os.environ.get("ENGINE")
app = App(cluster=Cluster(None if engine == "workers" else engine) if engine else None)
log = app.room("log", history=10_000)
news = app.broadcast("news", history=10_000)
plain = app.room("plain")


@app.websocket("/step")
async def in_one_step(ws: WebSocket, after: str = "", steps: str = ""):
    """``steps``: what is done in the step of the request, in which the acceptance has not left."""
    for step in steps:
        match step:
            case "a":
                await ws.accept()
            case "s":
                await ws.send("own")
            case "j":
                log.join(ws, after=after or None)
            case "r":
                log.send("room")
            case "p":
                plain.join(ws)
            case "q":
                plain.send("plain")
    async for message in ws:
        log.send(message)


@app.websocket("/thread")
def in_a_thread(ws: SerialWebSocket, after: str = ""):
    log.join(ws.socket, after=after or None)
    log.send("room")
    ws.send("own")
    for message in ws:
        log.send(message)


@app.get("/news")
async def follow(request: Request):
    response = news.response(request)
    for number in range(int(request.query.get("send", "0"))):
        news.send(Event(f"at once {number}"))
    return response


@app.post("/send")
async def send(text: str, times: int = 1, first: int = 0, count: int = 1):
    for number in range(first, first + count):
        log.send(f"{number} {text * times}")
        news.send(Event(f"{number} {text * times}"))


is_flooding = threading.Event()
sent = 0


@app.post("/flood/{state}")
async def flood(state: str):
    if state == "stop":
        is_flooding.clear()
        return sent
    is_flooding.set()
    threading.Thread(target=_flood, daemon=True).start()
    return 0


def _flood():
    global sent
    while is_flooding.is_set():
        sent += 1
        log.send(str(sent))
        news.send(Event(str(sent)))
        if sent % 10 == 0:
            threading.Event().wait(0.002)
