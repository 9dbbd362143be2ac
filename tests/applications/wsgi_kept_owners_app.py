"""Keeps owners of callables, and weak references."""

# pyright: basic

import contextlib
import weakref

known, owners = weakref.WeakKeyDictionary(), []


def application(environ, start_response):
    for owner in owners:
        with contextlib.suppress(Exception):
            owner.start_response("500 Oops", [("X-Foreign", "1")])
    seen = known.get(start_response, "nobody")
    known[start_response] = environ["PATH_INFO"]
    if environ["PATH_INFO"] == "/own":
        owners.append(start_response.__self__)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [seen.encode()]
