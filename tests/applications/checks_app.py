"""Checks of readiness that can fail."""

# pyright: basic

import asyncio
import os

from citius import App

app = App()

healthy = True


@app.readiness
async def database():
    if not healthy:
        raise ConnectionError("refused")


@app.readiness
def disk():
    return True


@app.get("/break")
def break_it():
    global healthy
    healthy = False
    return "broken"


@app.get("/wait/{path}")
async def wait(path):
    print("begun", flush=True)
    while not os.path.exists(path):
        await asyncio.sleep(0.01)
    return "done"
