"""Clients that leave while their content is read."""

# pyright: basic

import sys
import time

from wsgi_parts import answer


def application(environ, start_response):
    body, how = environ["wsgi.input"], environ["PATH_INFO"]
    print(environ["QUERY_STRING"], "begun", file=sys.stderr, flush=True)
    try:
        if how == "/read":
            body.read()
        elif how == "/pieces":
            while body.read(1000):
                pass
        elif how == "/lines":
            list(body)
        elif how == "/slow":
            while body.read(1000):
                time.sleep(0.001)
        print("complete", file=sys.stderr, flush=True)
    except ConnectionError as error:
        print(environ["QUERY_STRING"], "told:", error, file=sys.stderr, flush=True)
    return answer(start_response, b"")
