"""Handlers that keep the thread of the event loop, and applications that take signals."""

import asyncio
import builtins
import ctypes
import multiprocessing
import os
import signal
import threading
import time

from citius import App, Request

app = App()
MODE = os.environ.get("MODE", "")
told: list[int] = []

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
    elif MODE in ("SystemExit", "KeyboardInterrupt", "ValueError"):
        signal.signal(signal.SIGTERM, raising)


def raising(number: int, frame: object) -> None:
    told.append(number)
    raise vars(builtins)[MODE]("told")


@app.get("/")
async def pid(request: Request) -> str:
    return str(os.getpid())


@app.get("/until-told")
async def until_told(request: Request) -> str:
    print("begun", flush=True)
    while not told:
        await asyncio.sleep(0.01)
    return "complete"


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


C = ctypes.PyDLL(None)  # its calls keep the interpreter


def be_deaf() -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number not in (32, 33):  # the C library's own
            signal.signal(number, signal.SIG_IGN)


@app.get("/deaf/{how}")
async def deaf(request: Request, how: str) -> str:
    be_deaf()
    print("stuck", flush=True)
    if how == "sleep":
        time.sleep(600)
    elif how == "interpreter":
        C.sleep(600)
    while True:
        pass


def wsgi(environ: object, start_response: object) -> None:
    if threading.current_thread() is threading.main_thread():
        be_deaf()
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    print("stuck", flush=True)
    while True:
        pass


def fork_in_c() -> int:
    pid = C.fork()
    if pid == 0:
        C.sleep(600)
    return pid


@app.get("/fork/c")
def in_c(request: Request) -> str:
    return str(fork_in_c())


@app.get("/fork/thread", blocking=True)
def in_thread(request: Request) -> str:
    return str(fork_in_c())


@app.get("/fork/double")
def double(request: Request) -> str:
    """A child, and its child."""
    reading, writing = os.pipe()
    pid = C.fork()
    if pid == 0:
        if (child := C.fork()) != 0:
            os.write(writing, str(child).encode())
        C.sleep(600)
    return f"{pid} {os.read(reading, 100).decode()}"


@app.get("/fork/spawn")
def spawn(request: Request) -> str:
    return str(os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ))


@app.get("/fork/back")
def back(request: Request) -> str:
    pid = C.fork()
    if pid == 0:
        return "child"
    return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
