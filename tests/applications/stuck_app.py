"""Handlers that keep the thread of the event loop, and applications that take signals."""

import asyncio
import multiprocessing
import os
import signal
import time

from citius import App, Request

app = App()
MODE = os.environ.get("MODE", "")

if MODE == "fork":
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)).start()


@app.on_startup
async def take_signals() -> None:
    loop = asyncio.get_running_loop()
    if MODE == "loop":
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, os.write, 1, b"told")
    elif MODE == "python":
        signal.signal(signal.SIGTERM, lambda number, frame: print("told", flush=True))
    elif MODE == "ignore":
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if number < 32:
                signal.signal(number, signal.SIG_IGN)
    elif MODE == "block":
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@app.get("/")
async def pid(request: Request) -> str:
    return str(os.getpid())


@app.get("/sleep")
async def sleep(request: Request) -> str:
    print("stuck", flush=True)
    time.sleep(600)
    return "never"


@app.get("/loop")
def loop(request: Request) -> str:
    print("stuck", flush=True)
    while True:
        pass


@app.get("/fork")
def fork(request: Request) -> str:
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    return str(child.pid)
