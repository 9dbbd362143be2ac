"""Serial handlers; the path of an SQLite file is in DATABASE."""

# pyright: basic

import contextvars
import os
import threading

from citius import App, Request, WebSocket, sqlite
from citius.go import WaitGroup, chan, go, select, sleep
from citius.serial import wait
from citius.web.execution.background import defer

pool = sqlite.Pool(os.environ["DATABASE"], readers=2)
app = App(lifespan=pool.lifespan)
name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
never = chan()
ended: list[str] = []
open_now = 0


@app.get("/thread", serial=True)
def thread() -> dict:
    before = threading.get_ident()
    sleep(0.001)
    return {"same": before == threading.get_ident()}


@app.get("/fan-out", serial=True)
def fan_out(n: int) -> int:
    results, group = chan(), WaitGroup()

    def square(i: int) -> None:
        sleep(0.001)
        results.send(i * i)
        group.done()

    for i in range(n):
        group.add()
        go(square, i)
    total = sum(results.recv()[0] for _ in range(n))
    group.wait()
    return total


@app.get("/select", serial=True)
def selects() -> list:
    first, second = chan(), chan()
    go(second.send, 7)
    case, value, ok = select(first, second)
    return [case, value, ok, select(first, default=True).case]


@app.get("/iterates", serial=True)
def iterates() -> list:
    values = chan()

    def produce() -> None:
        with values:
            for n in range(5):
                values.send(n)

    go(produce)
    return list(values)


@app.get("/joins", serial=True)
def joins() -> list:
    def fails() -> None:
        sleep(0)
        raise LookupError("lost")

    async def doubles(n: int) -> int:
        return 2 * n

    try:
        go(fails).join()
    except LookupError as error:
        return [str(error), go(doubles, 4).join(), wait(doubles(5))]
    return []


@app.get("/rows", serial=True)
def rows(n: int) -> list:
    with pool.sync.transaction() as tx:
        found = tx.fetch("SELECT $1 + 1", n)
    return [*found, pool.sync.fetch_value("SELECT 5")]


@app.get("/name/{value}", serial=True)
def named(value: str) -> str:
    name.set(value)
    sleep(0.002)
    return f"{name.get()} {go(name.get).join()}"


@app.get("/raises", serial=True)
def raises() -> None:
    sleep(0)
    raise ZeroDivisionError("where it parks")


@app.get("/parks", serial=True)
def parks(who: str = "") -> None:
    global open_now
    open_now += 1
    try:
        never.recv()
    finally:
        open_now -= 1
        ended.append(who)


@app.get("/state")
def state() -> dict:
    return {"open": open_now, "ended": ended}


# --- waits where none is possible ---


@app.get("/wrong/plain")
def wrong_plain() -> None:
    _value, _ok = never.recv()


@app.get("/wrong/async")
async def wrong_async() -> None:
    pool.sync.fetch_value("SELECT 1")


@app.get("/wrong/wait")
async def wrong_wait() -> None:
    wait(pool.fetch_value("SELECT 1"))


@app.rpc
def wrong_rpc() -> None:
    _value, _ok = never.recv()


@app.websocket("/wrong/socket")
async def wrong_socket(ws: WebSocket) -> None:
    await ws.accept()
    pool.sync.fetch_value("SELECT 2")


@app.get("/wrong/deferred")
async def wrong_deferred(request: Request) -> str:
    async def later() -> None:
        pool.sync.fetch_value("SELECT 3")

    defer(request, later)
    return "deferred"


async def asgi(scope, receive, send) -> None:
    if scope["type"] == "http":
        go(never.recv).join()


def wsgi(environ, start_response) -> list[bytes]:
    never.send(1)
    return []
