"""A streamed response that reads a context variable."""

# pyright: basic

import contextvars
import itertools
import json
import time

from wsgi_parts import answer

mark = contextvars.ContextVar("mark", default="none")
closed = []


def blocks(name):
    token = mark.set(name)
    try:
        for _ in range(20):
            yield mark.get().encode() + b" "
            time.sleep(0.002)
        yield b"end"
    finally:
        mark.reset(token)
        closed.append(name)


def application(environ, start_response):
    if environ["PATH_INFO"] == "/closed":
        return answer(start_response, json.dumps(sorted(closed)).encode())
    before = mark.get()
    mark.set("called")
    start_response("200 OK", [])
    return itertools.chain([before.encode() + b" "], blocks(environ["PATH_INFO"][1:]))
