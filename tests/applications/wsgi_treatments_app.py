"""What applications do to their environ."""

# pyright: basic

import json
from typing import Any

from wsgi_parts import answer

kept = []


def leave(environ):
    pass


def change(environ):
    environ["PATH_INFO"] = "/changed"


def add(environ):
    environ["HTTP_ADDED"] = environ["app.added"] = "added"


def remove(environ):
    del environ["HTTP_HOST"], environ["wsgi.errors"]


def swap(environ):
    environ["HTTP_HOST"] = environ.pop("HTTP_HOST")


def clear(environ):
    environ.clear()


def refill(environ):
    copy = dict(environ)
    environ.clear()
    environ.update(copy, HTTP_X_A="refilled")


def keep(environ):
    kept.append((environ, dict(environ)))


def keep_view(environ):
    kept.append((environ.items(), dict(environ)))


def keep_and_change(environ):
    keep(environ)
    environ["PATH_INFO"] = "/changed"
    kept[-1] = (environ, dict(environ))


def change_kept(environ):
    for known, _ in kept:
        if isinstance(known, dict):
            known["HTTP_X_LATE"] = "late"
    kept[:] = [(known, dict(known)) for known, _ in kept]


def application(environ, start_response):
    shown: dict[str, Any] = {k: v for k, v in environ.items() if isinstance(v, str)}
    shown["objects"] = sorted(k for k, v in environ.items() if not isinstance(v, str))
    shown["body"] = environ["wsgi.input"].read().decode()
    shown["is new"] = not any(environ is known for known, _ in kept)
    shown["kept is as it was"] = all(dict(known) == copy for known, copy in kept)
    globals()[environ.get("HTTP_X_DO", "leave")](environ)
    return answer(start_response, json.dumps(shown).encode())
