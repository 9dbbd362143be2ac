"""A WSGI application for HTTP/2."""

# pyright: basic

import json

events = []


class Pieces:
    def __iter__(self):
        for _ in range(10_000):
            yield b"x" * 16384

    def close(self):
        events.append("closed")


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/environ":
        names = (
            "SERVER_PROTOCOL",
            "REQUEST_METHOD",
            "HTTP_HOST",
            "QUERY_STRING",
            "REMOTE_ADDR",
            "wsgi.url_scheme",
            "CONTENT_LENGTH",
            "HTTP_X_A",
        )
        data = json.dumps({name: environ.get(name) for name in names}).encode()
    elif path == "/echo":
        data = environ["wsgi.input"].read()
    elif path == "/upload":
        events.append("called")
        try:
            environ["wsgi.input"].read()
        except ConnectionResetError:
            events.append("reset")
        data = b""
    elif path == "/events":
        data = json.dumps(events).encode()
    elif path == "/file":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return environ["wsgi.file_wrapper"](open(__file__, "rb"))
    elif path == "/endless":
        start_response("200 OK", [])
        return Pieces()
    else:
        data = path.encode()
    start_response("200 OK", [("Content-Length", str(len(data)))])
    return [data]
