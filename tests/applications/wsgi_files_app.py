"""Files in every kind of wrapper."""

# pyright: basic

import io
import sys

BYTES = bytes(range(256)) * 2000
with open("data", "wb") as file:
    file.write(BYTES)


class Closing(io.BytesIO):
    def close(self):
        print("closed", file=sys.stderr, flush=True)
        super().close()


class Minimal:
    def __init__(self):
        self.left = 3

    def read(self, size):
        assert size == 7
        self.left -= 1
        return b"piece" if self.left else b""


def application(environ, start_response):
    kind, wrapper = environ["PATH_INFO"][1:], environ["wsgi.file_wrapper"]
    headers = [("Content-Type", "application/octet-stream")]
    if environ["QUERY_STRING"]:
        headers.append(("Content-Length", environ["QUERY_STRING"]))
    start_response("200 OK", headers)
    if kind == "memory":
        return wrapper(Closing(BYTES), 4096)
    if kind == "minimal":
        return wrapper(Minimal(), 7)
    if kind == "text":
        return wrapper(open("data", encoding="latin-1"))
    file = open("data", "rb", buffering=0 if kind == "raw" else -1)  # noqa: SIM115 (the server closes it)
    if kind == "offset":
        assert file.read(100) == BYTES[:100]
    if kind == "seek":
        file.seek(500_000)
    if kind == "end":
        file.seek(0, 2)
    application.file = file
    return wrapper(file)
