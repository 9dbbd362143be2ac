"""System calls from every kind of thread that a worker has."""

# pyright: basic

import ctypes
import threading
from contextlib import suppress

from citius import App, Request
from syscall_bodies import Early, make_calls, make_calls_in_all_threads

with suppress(ImportError):
    import numpy  # noqa: F401  its library of linear algebra starts threads

app = App()
early = Early()


@app.post("/loop")
async def on_loop(request: Request) -> list:
    return make_calls(request.json())


@app.post("/blocking", blocking=True)
def blocking(request: Request) -> list:
    import json

    return make_calls(json.loads(request.body()))


@app.post("/early")
async def in_early_thread(request: Request) -> list:
    return early.make_calls(request.json())


@app.post("/later")
async def in_later_thread(request: Request) -> list:
    calls, found = request.json(), []
    thread = threading.Thread(target=lambda: found.append(make_calls(calls)))
    thread.start()
    thread.join()
    return found[0]


@app.post("/all")
async def in_all_threads(request: Request) -> dict:
    return make_calls_in_all_threads(request.json())


@app.get("/address")
def address() -> list:
    """Where a path can be put for calls in other threads."""
    return [ctypes.addressof(PATH), ctypes.sizeof(PATH)]


PATH = ctypes.create_string_buffer(256)


@app.post("/path")
def path(request: Request) -> None:
    PATH.value = request.body()
