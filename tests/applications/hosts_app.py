"""Handlers of each kind, for all hosts."""

# pyright: basic

import os
import threading
import time

from citius import App, NotFound

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/blocking/{ms:int}", blocking=True)
def blocking(ms):
    time.sleep(ms / 1000)
    return threading.current_thread().name


@app.get("/until-open", blocking=True)
def until_open():
    open("begun", "w").close()
    while not os.path.exists("open"):
        time.sleep(0.005)


@app.get("/blocking-note", blocking=True)
def blocking_note():
    print("begun", flush=True)
    time.sleep(0.5)
    print("finished", flush=True)


@app.get("/stream")
def stream():
    for number in range(3):
        yield f"{number}"


@app.post("/echo")
def echo(request):
    return request.body()


@app.get("/blocking-stream", blocking=True)
def blocking_stream():
    for _number in range(300):
        yield b"x" * 1000


@app.get("/error")
def error():
    raise NotFound("nothing")


@app.on_startup
def up():
    print("up", flush=True)


@app.on_shutdown
def down():
    print("down", flush=True)
