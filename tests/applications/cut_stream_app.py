"""A stream that says when it is closed."""

# pyright: basic

import sys
import time

from citius import App

app = App()


def pieces():
    try:
        while True:
            yield b"x" * 1000
    finally:
        print("in finally", file=sys.stderr, flush=True)
        time.sleep(0.3)
        sum(range(10))


app.get("/")(lambda: pieces())
