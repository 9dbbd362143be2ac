"""What a client sees of the poller: bodies large and small, handlers that wait, threads."""

# pyright: basic

import asyncio
import threading

from citius import App

app = App()


@app.get("/large")
def large():
    return b"x" * 8_000_000


@app.get("/plain")
def plain():
    return "plain"


@app.get("/slow")
async def slow():
    print("begun", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("left", flush=True)


@app.get("/thread", blocking=True)
def thread():
    return threading.current_thread().name
