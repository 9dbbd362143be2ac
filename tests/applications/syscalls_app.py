"""System calls from every kind of thread that a worker has."""

# pyright: basic

import asyncio
import ctypes
import json
import threading
from contextlib import suppress
from typing import Any

from citius import App, Request
from syscall_bodies import Early, how_a_call_of_32_bits_ends, make_calls, make_calls_in_all_threads

with suppress(ImportError):
    import numpy  # noqa: F401  its library of linear algebra starts threads

app = App()
app.executor("threads", threads=2)
early = Early()
of_hook: list[Early] = []


@app.on_startup
def start_a_thread() -> None:
    of_hook.append(Early())


@app.get("/thread")
async def thread() -> int:
    return threading.get_native_id()


@app.post("/loop")
async def on_loop(request: Request) -> list:
    return make_calls(request.json())


@app.post("/blocking", blocking=True)
def blocking(request: Request) -> list:
    return make_calls(json.loads(request.body()))


@app.post("/early")
async def in_early_thread(request: Request) -> list:
    return early.make_calls(request.json())


@app.post("/hook")
async def in_thread_of_hook(request: Request) -> list:
    return of_hook[0].make_calls(request.json())


@app.post("/executor")
async def in_executor(request: Request) -> list:
    executor: Any = app._executors["threads"]._executor
    return await asyncio.wrap_future(executor.submit(make_calls, request.json()))


@app.post("/default")
async def in_default_executor(request: Request) -> list:
    """A thread of the event loop's own pool."""
    return await asyncio.to_thread(make_calls, request.json())


@app.get("/compat")
async def compat() -> int:
    return how_a_call_of_32_bits_ends()


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
