"""Handlers that wait in greenlets."""

# pyright: basic

import socket
import threading
import time

from citius import App
from citius.go import WaitGroup, after, chan, go, select
from citius.go import sleep as pause

app = App()

values, squares, shut = chan(), chan(3), chan()


@app.get("/alive")
def alive():
    return "yes"


@app.get("/receive")
def receive():
    value, ok = values.recv()
    return f"{value} {ok}"


@app.get("/send/{value}")
def send(value):
    values.send(value)


@app.get("/select/{ms:int}")
def choose(ms: int):
    case, value, _ok = select(values, after(ms / 1000), shut)
    return ["value", "late", "shut"][case or 0] + (f" {value}" if case == 0 else "")


@app.get("/shut")
def close():
    shut.close()


@app.get("/fan/{count:int}")
def fan(count: int):
    group, results = WaitGroup(), chan(count)

    def work(n):
        pause(0.02)
        results.send(n * n)
        group.done()

    group.add(count)
    for n in range(count):
        go(work, n)
    group.wait()
    results.close()
    return sum(results)


@app.get("/thread")
def from_a_real_thread():
    from gevent import monkey

    made = chan()

    def compute():
        monkey.get_original("time", "sleep")(0.3)
        made.send(threading.get_ident())

    monkey.get_original("_thread", "start_new_thread")(compute, ())
    _ident, ok = made.recv()
    return str(ok)


@app.get("/sleep/{ms:int}")
def sleep(ms: int):
    time.sleep(ms / 1000)
    return "slept"


@app.get("/ask/{port:int}")
def ask(port: int):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        return peer.makefile().readline()
