"""A block that is made when it is allowed."""

# pyright: basic

import threading
import time

from wsgi_parts import answer

allowed = threading.Event()


def application(environ, start_response):
    if environ["PATH_INFO"] == "/allow":
        allowed.set()
        return answer(start_response, b"")

    def blocks():
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"first"
        while not allowed.is_set():
            time.sleep(0.005)
            yield b""
        yield b"second"

    return blocks()
