"""Handlers in threads, streams of theirs, and one that holds them up."""

# pyright: basic

import asyncio
import os
import sys
import threading

from citius import App

app = App()

gate = threading.Event()
begun = []
cancelled = []


@app.get("/cancelled")
def how_many():
    return len(cancelled)


@app.get("/wait", blocking=True)
def wait():
    begun.append("wait")
    gate.wait(20)
    return "done"


@app.get("/job/{name}", blocking=True)
def job(name):
    begun.append(name)
    return name


@app.get("/begun")
def how_far():
    return begun


@app.get("/open")
def open_gate():
    gate.set()


if "MIDDLEWARE" in os.environ:

    @app.middleware
    async def pass_on(request, next):
        try:
            return await next(request)
        except asyncio.CancelledError:
            cancelled.append(request.path)
            raise


app.get("/stop", blocking=True)(lambda: next(iter(())))
app.get("/exit", blocking=True)(lambda: sys.exit(3))


@app.get("/later", blocking=True)
def later():
    begun.append("later")
    gate.wait(20)
    return iter([b"one", b"two"])


left = []


@app.get("/endless", blocking=True)
def endless():
    try:
        while True:
            yield b"x" * 65536
    finally:
        left.append(threading.current_thread().name)


@app.get("/left")
def who_left():
    return left
