"""Allocations that fail while native handlers are called."""

# pyright: basic

import _testcapi

from citius import App

app = App()


@app.get("/alive/{number:int}")
def alive(number: int):
    _testcapi.remove_mem_hooks()
    return "yes"


@app.get("/def/{number:int}")
def plain(number: int):
    fail(number)
    return {"number": [number]}


@app.get("/async/{number:int}")
async def stepped(number: int):
    fail(number)
    return {"number": [number]}


@app.get("/blocking/{number:int}", blocking=True)
def blocking(number: int):
    fail(number)
    return {"number": [number]}


@app.get("/stream/{number:int}")
def blocks(number: int):
    yield "hel"
    fail(number)
    yield "lo"


def fail(number):
    _testcapi.set_nomemory(number, number + 1)
