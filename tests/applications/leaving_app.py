"""Requests whose work in threads and processes does not end, by MODE; they are answered before it has."""

# pyright: basic

import asyncio
import concurrent.futures
import multiprocessing
import sys
import threading
import time
from pathlib import Path

from citius import App

app = App()


def stuck():
    print("stuck", flush=True)
    time.sleep(600)


def short(path):
    time.sleep(0.3)
    Path(path).write_text("done")


kept = []


@app.get("/default")
async def default():
    asyncio.get_running_loop().run_in_executor(None, stuck)


@app.get("/to-thread")
async def to_thread():
    kept.append(asyncio.ensure_future(asyncio.to_thread(stuck)))


@app.get("/threads")
async def threads():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    kept.append([pool.submit(stuck), pool.submit(time.sleep, 0)])


@app.get("/processes")
async def processes():
    context = multiprocessing.get_context("fork")
    kept.append(concurrent.futures.ProcessPoolExecutor(1, context).submit(stuck))


@app.get("/thread")
async def thread():
    threading.Thread(target=stuck).start()


@app.get("/process")
async def process():
    multiprocessing.get_context("fork").Process(target=stuck).start()


@app.get("/short")
async def short_work(path: str):
    asyncio.get_running_loop().run_in_executor(None, short, path)


@app.get("/idle")
async def idle():
    return await asyncio.to_thread(str, "idle")


if __name__ == "__main__":
    from citius import Config, serve

    code = serve(app, Config(port=0, drain_s=0.2, workers=1))
    print("served", flush=True)
    sys.exit(code)
