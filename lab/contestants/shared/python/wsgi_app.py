"""The contract as a raw WSGI application: a dict of paths, no framework.

`wsgi_msgspec` and `wsgi_stdlib` give it their records.
"""

import time

import work

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


def application(records):
    """Return the WSGI application that decodes and encodes with ``records``."""

    def hello(environ):
        return b"Welcome!\n", TEXT

    def parse_msgpack(environ):
        is_varied = work.is_varied(environ["QUERY_STRING"])
        return records.parse_msgpack(is_varied).encode(), TEXT

    def encode_json(environ):
        return records.encode_json().encode(), TEXT

    def transfer_data(environ):
        return records.JSON_ARRAY, JSON

    def million_loop(environ):
        return str(work.million_loop(work.seed_of(environ["QUERY_STRING"]))).encode(), TEXT

    def sleep(environ):
        # Blocks the worker, unless the server runs it in a greenlet; see the definitions.
        time.sleep(0.002)
        return b"OK", TEXT

    def fibonacci(environ):
        return work.fibonacci_answer(work.first_of(environ["QUERY_STRING"])).encode(), TEXT

    def classify(environ):
        return work.classify(environ["PATH_INFO"].encode("latin-1")), TEXT

    routes = {
        "/": hello,
        "/parse-msgpack": parse_msgpack,
        "/encode-json": encode_json,
        "/transfer-data": transfer_data,
        "/million-loop": million_loop,
        "/async": sleep,
        "/fibonacci": fibonacci,
    }

    def app(environ, start_response):
        path = environ["PATH_INFO"]
        handler = routes.get(path)
        status = "200 OK"
        if handler is not None:
            body, content_type = handler(environ)
        elif path.startswith("/classify/"):
            body, content_type = classify(environ)
        else:
            status, body, content_type = "404 Not Found", b"no such page\n", TEXT
        start_response(
            status, [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        )
        return [body]

    return app
