"""A WSGI application in greenlets."""

# pyright: basic

import sys
import threading
import time

from citius import App

app = App()

gate = threading.Event()


@app.get("/wait")
def wait():
    print("waits", file=sys.stderr, flush=True)
    try:
        gate.wait()
    finally:
        print("through", file=sys.stderr, flush=True)
    return "waited"


@app.get("/open")
def open_gate():
    gate.set()
    return type(threading.current_thread()).__name__


@app.get("/ticks")
def ticks():
    def pieces():
        try:
            for n in range(1000):
                time.sleep(0.005)
                yield f"{n} "
        finally:
            print("pieces through", file=sys.stderr, flush=True)

    return pieces()


@app.post("/sum", stream=True)
def total(request):
    return str(sum(len(piece) for piece in request.stream()))


@app.get("/fails")
def fails():
    raise ValueError("a reason")
