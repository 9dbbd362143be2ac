"""Limits whose consequence an application could change, with WSGI."""

# pyright: basic

import json

seen = []


def endless():
    try:
        while True:
            yield b"x" * 65536
    finally:
        seen.append("end")


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path != "/seen":
        seen.append(path)
    start_response("200 OK", [])
    if path == "/endless":
        return endless()
    if path == "/unread":
        return [b""]
    try:
        body = environ["wsgi.input"].read()
    except OSError:
        seen.append("gone")
        return [b""]
    return [json.dumps(seen).encode() if path == "/seen" else body]
