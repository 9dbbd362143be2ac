"""Streams whose client leaves, in every way a handler can stream."""

# pyright: basic

import sys
import threading

from citius import App

app = App()

gate = threading.Event()
events = []


@app.get("/events")
def seen():
    return events


@app.get("/open")
def open_gate():
    gate.set()
    return "open"


@app.get("/late", blocking=True)
def late():
    events.append("running")
    gate.wait(20)

    def pieces():
        try:
            for _ in range(300):
                yield b"x" * 1000
        finally:
            events.append("closed")

    return pieces()


@app.get("/exit", blocking=True)
def leave():
    yield b"begun"
    sys.exit(3)


@app.get("/quick", blocking=True)
def quick():
    return "quick"


@app.post("/echo")
def echo(request):
    return request.body()
