"""Status and headers in every form and order."""

# pyright: basic

import json


class Text(str):
    pass


class Pair(tuple):
    pass


same, tuples = [], {}


def application(environ, start_response):
    kind, status, headers = json.loads(environ["wsgi.input"].read())
    headers = [tuple(header) for header in headers]
    if kind == "same tuples":
        headers = [tuples.setdefault(header, header) for header in headers]
    elif kind == "same list":
        same[:] = headers
        headers = same
    elif kind == "subclasses":
        headers = [Pair(map(Text, header)) for header in headers]
    elif kind == "iterator":
        headers = iter(headers)
    start_response(status, headers)
    return [b"a body"]
