"""Every kind of buffer as content."""

# pyright: basic

import asyncio

from citius import App, Response

app = App()


def of(path, make):
    return app.get(path)(make)


of("/bytearray", lambda: bytearray(b"abc"))
of("/memoryview", lambda: memoryview(b"abc"))
of("/strided", lambda: memoryview(b"a-b-c-")[::2])
of("/response/bytearray", lambda: Response(bytearray(b"abc")))
of("/response/memoryview", lambda: Response(memoryview(b"abc")))


@app.get("/async/bytearray")
async def in_async():
    await asyncio.sleep(0)
    return bytearray(b"abc")


app.get("/blocking/memoryview", blocking=True)(lambda: memoryview(bytearray(b"abc")))


def pieces():
    # What counts is what the buffer holds when it is yielded.
    buffer = bytearray(b"a")
    yield memoryview(buffer)
    buffer[:] = b"b"
    yield buffer
    buffer[:] = b"c"
    yield buffer
    buffer[:] = b"d"


@app.get("/stream/def")
def stream_def():
    return pieces()


@app.get("/stream/async")
async def stream_async():
    for piece in pieces():
        yield piece


app.get("/stream/blocking", blocking=True)(lambda: pieces())
