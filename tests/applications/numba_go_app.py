"""Functions that numba compiles and that use `citius.go`."""

# pyright: basic
import time

import numba
import numpy as np
from citius import App
from citius.go import chan, go, sleep

app = App()
squares, truths, texts = chan(type=int), chan(1, type=bool), chan(1, type=bytes)
arrays, halves, closed = chan(1, type=np.dtype("f8")), chan(type=float), chan(type=int)
gone = chan(2, type=int)
closed.close()


@numba.njit
def square(n, results):
    sleep(0.0005 * (n % 3))
    results.send(n * n)


@numba.njit
def fail(results):
    results.send(1)
    raise ValueError("on purpose")


def add(path, handler):
    app.post(path, compiled=True, serial=True)(handler)
    app.post("/pool" + path, compiled=True, serial=True, pool=True)(handler)


def sum_of_squares(count: int):
    for n in range(count):
        go(square, n, squares)
    total = 0
    for _ in range(count):
        value, _ok = squares.recv()
        total += value
    return total


def slept(ms: int):
    began = time.monotonic()
    sleep(ms / 1000)
    return (time.monotonic() - began) * 1000


def bools():
    truths.send(True)
    value, ok = truths.recv()
    return value and ok


def doubled(body: bytes):
    texts.send(body)
    made, _ok = texts.recv()
    for at in range(len(made)):
        made[at] *= 2
    return made


def mean(n: int):
    values = np.arange(n) * 0.5
    arrays.send(values)
    values[:] = 0.0
    received, _ok = arrays.recv()
    return received.mean()


def ended():
    value, ok = closed.recv()
    return 100 if value == 0 and not ok else 0


def send_closed():
    closed.send(1)
    return 1


def child():
    go(fail, squares)
    value, _ok = squares.recv()
    return value + len(squares)


def leaves():
    try:
        sleep(600.0)
    except Exception:
        gone.send(1)
    return 1


def for_python(n: int):
    halves.send(n / 2)
    return n


for handler in (
    sum_of_squares,
    slept,
    bools,
    doubled,
    mean,
    ended,
    send_closed,
    child,
    leaves,
    for_python,
):
    add("/" + handler.__name__, handler)


@app.post("/received")
async def received() -> float:
    value, _ok = await halves.recv()
    return value


@app.post("/gone")
async def is_gone() -> int:
    value, _ok = await gone.recv()
    return value


@app.post("/turn", compiled=True)
def turn():
    value, _ok = squares.recv()
    return value


@app.get("/alive")
def alive():
    return "yes"
