"""Every mistake that an application can make."""

# pyright: basic

import json
import sys

from wsgi_parts import answer


def application(environ, start_response):
    return globals()[environ["PATH_INFO"][1:]](environ, start_response)


def fine(environ, start_response):
    return answer(start_response, b"fine")


def replaced(environ, start_response):
    start_response("200 OK", [("X-First", "1")])
    try:
        raise ValueError("a reason")
    except ValueError:
        start_response("503 Sorry", [("Content-Type", "text/plain")], sys.exc_info())
    return [b"sorry"]


def in_generator(environ, start_response):
    try:
        raise ValueError
    except ValueError:
        start_response("503 Sorry", [("Content-Type", "text/plain")], sys.exc_info())
    yield b"sorry"


def too_late(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"part"
    try:
        raise ValueError("after the head")
    except ValueError:
        start_response("500 Oh", [("Content-Type", "text/plain")], sys.exc_info())
    yield b"never"


def written(environ, start_response):
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    write(b"part")
    try:
        raise ValueError("after the head")
    except ValueError:
        start_response("500 Oh", [], sys.exc_info())


def twice(environ, start_response):
    start_response("200 OK", [])
    start_response("200 OK", [])


def never(environ, start_response):
    return [b"x"]


def never_iterated(environ, start_response):
    return iter([b"x"])


def raises(environ, start_response):
    raise ValueError("a reason")


def exits(environ, start_response):
    raise SystemExit(3)


def text(environ, start_response):
    start_response("200 OK", [])
    return ["text"]


def text_iterated(environ, start_response):
    start_response("200 OK", [])
    return iter(["text"])


def plain_bytes(environ, start_response):
    start_response("200 OK", [])
    return b"ab"


def none(environ, start_response):
    start_response("200 OK", [])


def short(environ, start_response):
    start_response("200 OK", [("Content-Length", "10")])
    return [b"short"]


def short_iterated(environ, start_response):
    start_response("200 OK", [("Content-Length", "10")])
    return iter([b"short"])


def long(environ, start_response):
    start_response("200 OK", [("Content-Length", "4")])
    return [b"long", b"er"]


def long_iterated(environ, start_response):
    start_response("200 OK", [("Content-Length", "4")])
    yield b"lo"
    yield b"nger"
    print("went on", file=sys.stderr, flush=True)


def status(environ, start_response):
    start_response(json.loads(bytes.fromhex(environ["QUERY_STRING"])), [])
    return []


def header(environ, start_response):
    start_response("200 OK", [tuple(json.loads(bytes.fromhex(environ["QUERY_STRING"])))])
    return [b"ok"]
