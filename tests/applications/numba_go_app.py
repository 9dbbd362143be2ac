"""Functions that numba compiles and that use `citius.go`."""

# pyright: basic
import time

import numba
import numpy as np
from citius import App
from citius.go import after, chan, go, select, sleep

app = App()
squares, truths, texts = chan(type=int), chan(1, type=bool), chan(1, type=bytes)
arrays, halves, closed = chan(1, type=np.dtype("f8")), chan(type=float), chan(type=int)
gone = chan(2, type=int)
evens, odds, never, one = (chan(n, type=int) for n in (0, 0, 0, 1))
truth_or_not = chan(100, type=bool)
for _ in range(100):
    truth_or_not.send(True)
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


@numba.njit
def feed(first, results):
    for n in range(first, 100, 2):
        results.send(n)


def selected(count: int):
    """All that two goroutines send, whichever is ready."""
    go(feed, 0, evens)
    go(feed, 1, odds)
    total = 0
    for _ in range(count):
        _case, value, _ok = select(evens, None, odds)
        total += value
    return total


def waits_for_a_time(ms: int):
    """2: the time comes first."""
    began = time.monotonic()
    case, _value, ok = select(never, (never, 1), after(ms / 1000))
    if time.monotonic() - began < ms / 1000 or not ok:
        return -1
    return case


def sends_or_not():
    """A send that is possible, one that is not, a closed channel, and one that is closed while it sends."""
    case, _value, ok = select(never, (one, 7), default=True)
    if case is None or case != 1 or not ok:
        return 1
    case, _value, ok = select((one, 8), never, default=True)
    if case is not None or ok:
        return 2
    case, value, ok = select(never, one, default=False)
    if case != 1 or value != 7 or not ok:
        return 3
    case, value, ok = select(never, closed)
    if case != 1 or value != 0 or ok:
        return 4
    case, truth, ok = select(truth_or_not, after(60))
    return 5 if case != 0 or not truth or not ok else 0


def select_closed():
    select((closed, 1), never)
    return 1


for handler in (
    selected,
    waits_for_a_time,
    sends_or_not,
    select_closed,
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
