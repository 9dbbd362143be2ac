"""Bodies that are closed."""

# pyright: basic

import sys


class Body:
    def __init__(self, kind):
        self.kind, self.left = kind, 3

    def __iter__(self):
        if self.kind == "iter":
            raise ValueError
        return self

    def __next__(self):
        self.left -= 1
        if self.kind == "raises":
            raise ValueError
        if self.kind == "text":
            return "text"
        if self.left == 0:
            raise StopIteration
        return b"x" * (10_000_000 if self.kind == "gone" else 1)

    def close(self):
        print("closed", self.kind, file=sys.stderr, flush=True)
        if self.kind == "close":
            raise ValueError("in close")


def application(environ, start_response):
    kind = environ["PATH_INFO"][1:]
    headers = [("Content-Length", "1")] if kind == "length" else []
    if kind != "never":
        start_response("200 OK", headers)
    return Body(kind)
