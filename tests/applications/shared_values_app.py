"""Values that other threads change while they are sent."""

# pyright: basic

import sys
import threading
import time

from citius import App, Response

app = App()

sys.setswitchinterval(1e-6)
shared = Response("shared", headers={"a": "b"})
is_over = threading.Event()


@app.get("/")
def hello():
    return "Hello"


@app.get("/hammer", blocking=True)
def hammer():
    until = time.monotonic() + 60
    while not is_over.is_set() and time.monotonic() < until:
        for _ in range(1000):
            shared.headers
            shared.status_code = 200
    return "over"


@app.get("/stop")
def stop():
    is_over.set()
    return "stopping"


@app.get("/def")
def from_def():
    return shared


@app.get("/async")
async def from_async():
    return shared


app.get("/blocking", blocking=True)(lambda: shared)
