"""Streams of server-sent events whose sources say how far they are."""

# pyright: basic

import asyncio

from citius import App, event_stream

app = App()

states = {"taken": 0, "closed": 0}


@app.get("/states")
def seen():
    return states


def count(numbers):
    try:
        for number in numbers:
            states["taken"] += 1
            yield f"{number:08}{'x' * 1000}"
    finally:
        states["closed"] += 1


async def count_slowly(numbers):
    iterator = count(numbers)
    try:
        for event in iterator:
            yield event
    finally:
        iterator.close()


@app.get("/def/{number:int}")
def from_def(number: int):
    return event_stream(count(range(number)))


@app.get("/async/{number:int}")
async def from_async(number: int):
    return event_stream(count_slowly(range(number)), queue_bytes_max=10_000)


@app.get("/blocking/{number:int}", blocking=True)
def from_thread(number: int):
    return event_stream(count(range(number)))


@app.get("/pauses")
async def pauses():
    async def events():
        for number in range(50):
            if number % 7 == 0:
                await asyncio.sleep(0)
            yield number

    return event_stream(events())


def breaks_off():
    yield "first"
    raise ValueError("breaks off")


@app.get("/broken/def")
def broken_def():
    return event_stream(breaks_off())


@app.get("/broken/cancelled")
async def cancelled():
    async def events():
        yield "first"
        raise asyncio.CancelledError

    return event_stream(events())
