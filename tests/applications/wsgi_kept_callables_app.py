"""Keeps the callables of requests."""

# pyright: basic

import contextlib

kept = []


def application(environ, start_response):
    if environ["PATH_INFO"] == "/abuse":
        for old, write in kept:
            for call in (lambda: old("500 Oops", [("X-Foreign", "1")]), lambda: write(b"foreign")):
                with contextlib.suppress(Exception):
                    call()
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    kept.append((start_response, write))
    return [b"mine"]
