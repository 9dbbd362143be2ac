"""Responses that are files."""

# pyright: basic

import asyncio
import os

from citius import App, Response

app = App()


def opened(name, position=0):
    file = open(name, "rb")  # noqa: SIM115  the response closes it
    file.seek(position)
    app.state.last = file
    return file


@app.get("/def/{name}")
def from_def(name):
    return opened(name)


@app.get("/async/{name}")
async def from_async(name):
    await asyncio.sleep(0)
    return Response(opened(name), 201, {"x-kind": "file"}, "text/plain")


@app.get("/blocking/{name}", blocking=True)
def from_thread(name):
    return opened(name)


@app.get("/from/{position:int}/{name}")
def rest(position: int, name):
    return opened(name, position)


@app.get("/unbuffered/{name}")
def unbuffered(name):
    return open(name, "rb", buffering=0)


@app.get("/proc")
def unknown_length():
    return open("/proc/self/status", "rb")


@app.get("/pipe", blocking=True)
def pipe():
    ours, theirs = os.pipe()
    os.write(theirs, b"out of\na pipe")
    os.close(theirs)
    return open(ours, "rb")


@app.get("/closed")
def closed():
    return app.state.last.closed


@app.get("/descriptors")
def descriptors():
    return len(os.listdir("/proc/self/fd"))
