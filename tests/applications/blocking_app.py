"""Handlers in threads."""

# pyright: basic

import contextvars
import os
import threading
import time

from citius import App

app = App()

gate = threading.Event()
running = []


@app.get("/wait", blocking=True)
def wait():
    running.append(threading.current_thread().name)
    gate.wait(20)
    return "done"


@app.get("/running")
def how_many():
    return running


@app.get("/open")
def open_gate():
    gate.set()


@app.get("/quick/{name}", blocking=True)
def quick(name):
    return {"name": name, "thread": threading.current_thread().name}


who = contextvars.ContextVar("who", default="nobody")

if "MIDDLEWARE" in os.environ:

    @app.middleware
    def introduce(request, call_next):
        who.set(request.headers.get("who", "nobody"))
        return call_next(request)


@app.get("/who", blocking=True)
def ask_who():
    before = who.get()
    who.set("somebody else")
    return before


@app.get("/who/pieces", blocking=True)
def who_in_pieces():
    def pieces():
        yield who.get() + " "
        time.sleep(0.01)
        yield who.get()

    return pieces()
