"""Handlers whose bodies run on executors."""

# pyright: basic

import os
import threading
import time
from pathlib import Path

import msgspec
from citius import App
from citius.web.executors import JobCancelled, Progress

app = App()
app.executor("threads", threads=2, calls_max=4, deadline_s=20)
app.executor("processes", processes=2, calls_max=4, deadline_s=20)
app.executor("hasty", processes=1, deadline_s=0.3)


class Size(msgspec.Struct):
    width: int
    height: int


def where(n: int = 1) -> dict:
    return {"n": n, "pid": os.getpid(), "thread": threading.current_thread().name}


def area(size: Size) -> int:
    return size.width * size.height


def fail(text: str) -> None:
    raise KeyError(text)


def wait_for_file(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return "there"


def steps(path: str, progress: Progress) -> str:
    """Reports until the file is there, or it is cancelled; leaves a mark."""
    number = 0
    try:
        while not Path(path).exists():
            number += 1
            progress(min(1.0, number / 1000), {"step": number})
            time.sleep(0.01)
    except JobCancelled:
        Path(path + ".cancelled").touch()
        raise
    return "done"


for name in ("threads", "processes", "hasty"):
    app.get(f"/{name}/where/{{n:int}}", executor=name)(where)
    app.post(f"/{name}/area", executor=name)(area)
    app.get(f"/{name}/fail", executor=name)(fail)
    app.get(f"/{name}/wait", executor=name)(wait_for_file)
    app.get(f"/{name}/steps", executor=name)(steps)


@app.get("/pid")
def pid() -> int:
    return os.getpid()
