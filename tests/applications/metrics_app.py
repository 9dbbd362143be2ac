"""Responses of every kind, for metrics."""

# pyright: basic

import os
import time

from citius import App, Request
from citius.web.execution.background import defer

app = App()


@app.get("/")
def root():
    return "hello"


@app.get("/items/{id:int}")
async def item(id: int):
    return {"id": id}


@app.get("/boom")
def boom():
    raise RuntimeError("as the test wants it")


@app.get("/defer")
def deferring(request: Request, seconds: float):
    defer(request, time.sleep, seconds)


@app.get("/pid")
def pid():
    return str(os.getpid())


@app.get("/slow", blocking=True)
def slow():
    time.sleep(30)


@app.get("/hang")
def hang():
    time.sleep(2)


@app.get("/burn")
def burn():
    while time.process_time() < 1.6:
        pass
    return str(os.getpid())
