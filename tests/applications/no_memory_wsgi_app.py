"""Allocations that fail while WSGI is served."""

# pyright: basic

import _testcapi
import threading

both = threading.Barrier(2)


def app(environ, start_response):
    _, what, number = environ["PATH_INFO"].split("/")
    _testcapi.remove_mem_hooks()
    if what == "both":
        both.wait(20)
    if what == "first":
        fail(number)
    start_response("200 OK", [("content-type", "text/plain"), ("x-number", number)])
    if what == "stream":
        return blocks(number)
    if what == "last":
        fail(number)
    return [b"hello"]


def blocks(number):
    yield b"hel"
    fail(number)
    yield b"lo"


def fail(number):
    _testcapi.set_nomemory(int(number), int(number) + 1)
