"""Finds the objects of requests by the garbage collector."""

# pyright: basic

import gc
import json
from typing import Any

from wsgi_parts import answer

hunted, ids = [], set()


def read(found):
    pass


def keep(found):
    hunted.append((found, list(found.items())))
    ids.add(id(found))


def keep_view(found):
    hunted.append((found.items(), list(found.items())))
    ids.add(id(found))


def change(found):
    found.update(PATH_INFO="/hunted", HTTP_X_A="hunted", HTTP_X_LATE="hunted")


def change_back(found):
    method = found["REQUEST_METHOD"]
    found["REQUEST_METHOD"] = "HUNT"
    found["REQUEST_METHOD"] = method


def clear(found):
    found.clear()


def application(environ, start_response):
    shown: dict[str, Any] = {k: v for k, v in environ.items() if isinstance(v, str)}
    shown["is hunted"] = id(environ) in ids
    shown["found is as it was"] = all(list(dict(found).items()) == copy for found, copy in hunted)
    shown["found"] = 0
    if "HTTP_X_HUNT" in environ:
        act = globals()[environ["HTTP_X_HUNT"]]
        for found in gc.get_objects():
            is_environ = (
                type(found) is dict and "wsgi.version" in found and "REQUEST_METHOD" in found
            )
            if is_environ and found is not environ and id(found) not in ids:
                shown["found"] += 1
                act(found)
    return answer(start_response, json.dumps(shown).encode())
