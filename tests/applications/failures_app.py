"""Handlers that fail in many ways."""

# pyright: basic

import asyncio
import sys

from citius import App, Response

app = App()


@app.get("/")
def hello():
    return "Hello"


def of(path, make):
    app.get(path)(make)


of("/bad-status-0", lambda: Response("x", 0))
of("/bad-status-99", lambda: Response("x", 99))
of("/bad-status-1000", lambda: Response("x", 1000))
of("/bad-status-102", lambda: Response("x", 102))
of("/crlf-value", lambda: Response("x", headers=[("a", "b\r\nc: d")]))
of("/crlf-name", lambda: Response("x", headers=[("a\r\nb", "c")]))
of("/nul-value", lambda: Response("x", headers={"a": "b\0"}))
of("/crlf-type", lambda: Response("x", content_type="text/plain\r\na: b"))
of("/two-lengths", lambda: Response("x", headers={"content-length": "7"}))
of("/unencodable", lambda: object())
of("/unencodable-inside", lambda: {"a": object()})
of("/lone-surrogate", lambda: "\ud800")
of("/exception", lambda: 1 // 0)
of("/base-exception", lambda: (_ for _ in ()).throw(BaseException("odd")))
of("/system-exit", lambda: sys.exit(7))
of("/keyboard-interrupt", lambda: (_ for _ in ()).throw(asyncio.CancelledError()))


@app.get("/async-exception")
async def async_exception():
    await asyncio.sleep(0)
    raise KeyError("late")


@app.get("/async-base-exception")
async def async_base_exception():
    await asyncio.sleep(0)
    raise BaseException("late and odd")


@app.get("/recursion")
def recursion():
    return recursion()


@app.get("/blocking-exception", blocking=True)
def blocking_exception():
    raise KeyError("in a thread")


@app.get("/blocking-unencodable", blocking=True)
def blocking_unencodable():
    return object()


@app.get("/stream-exception")
def stream_exception():
    yield b"begun"
    raise KeyError("in the middle")


@app.get("/stream-wrong-type")
def stream_wrong_type():
    yield b"begun"
    yield {"not": "bytes"}


@app.get("/async-stream-exception")
async def async_stream_exception():
    yield b"begun"
    await asyncio.sleep(0)
    raise KeyError("in the middle")


@app.get("/blocking-stream-exception", blocking=True)
def blocking_stream_exception():
    yield b"begun"
    raise KeyError("in the middle")
