"""Requests that set handlers of SIGTERM and SIGINT."""

# pyright: basic

import asyncio
import signal

from citius import App

app = App()
NUMBERS = (signal.SIGTERM, signal.SIGINT)


def own(number, frame):
    print("own", flush=True)


def set_all(handler):
    for number in NUMBERS:
        signal.signal(number, handler)


@app.get("/ignore")
def ignore():
    set_all(signal.SIG_IGN)


@app.get("/default")
def default():
    set_all(signal.SIG_DFL)


@app.get("/own")
def set_own():
    set_all(own)


@app.get("/block")
def block():
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)


@app.get("/loop")
def of_loop():
    for number in NUMBERS:
        asyncio.get_running_loop().add_signal_handler(number, own, number, None)


@app.get("/gevent")
def of_gevent():
    import gevent

    for number in NUMBERS:
        gevent.signal_handler(number, own, number, None)


@app.get("/handler")
def handler():
    if set(NUMBERS) & signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return "blocked"
    owners = [getattr(signal.getsignal(number), "__self__", None) for number in NUMBERS]
    is_of_server = all(type(owner).__module__.startswith("citius.") for owner in owners)
    return "server" if is_of_server else "other"


@app.on_shutdown
def down():
    print("down", flush=True)
