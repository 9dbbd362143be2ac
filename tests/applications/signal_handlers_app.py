"""Requests that set handlers of SIGTERM."""

# pyright: basic

import signal

from citius import App

app = App()


def own(number, frame):
    print("own", flush=True)


@app.get("/ignore")
async def ignore():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@app.get("/own")
async def set_own():
    signal.signal(signal.SIGTERM, own)


@app.get("/handler")
async def handler():
    return {signal.SIG_IGN: "none", own: "own"}.get(signal.getsignal(signal.SIGTERM), "server")


@app.on_shutdown
def down():
    print("down", flush=True)
