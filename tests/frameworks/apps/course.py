"""What all applications of this folder do alike: the course that every framework is driven over.

| request | answer |
|---|---|
| `GET /hello` | `Hello, world` |
| `GET /greet/{name}?times=N` | JSON of both, decoded |
| `GET /show` | JSON of what the framework makes of the request: see `SHOWN` |
| `POST /echo` | the body |
| `POST /form` | JSON of an urlencoded form |
| `POST /upload` | JSON of `described()` for the field `title` and the file `file` |
| `GET /stream` | `PIECES`, `PAUSE_S` after each |
| `GET /endless` | `BLOCK` for ever; counts in `left` when the client is gone |
| `GET /left` | JSON of that count |
| `GET /fail` | an exception |
| `GET /fail-later` | an exception after the first piece of the body |
| `GET /cookies` | two cookies |
| `GET /redirect` | to `/hello` |
| `GET /nothing` | 204 |
| `GET /file` | the file `FILE` |
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import time

HELLO = "Hello, world"
PIECES = ("one\n", "two\n", "three\n")
PAUSE_S = 0.15
BLOCK = b"x" * 65536
FILE = os.path.join(os.environ.get("COURSE_DIR", "."), "course.bin")
SHOWN = ("host", "accept", "x-one", "content-type", "cookie")
"""Header fields that `/show` shows, joined with commas where they come more than once."""

_left = 0


class Mistake(RuntimeError):
    """What `/fail` raises."""


def described(title: str, filename: str, content_type: str, data: bytes) -> dict[str, object]:
    """An upload as JSON."""
    return {
        "title": title,
        "filename": filename,
        "content_type": content_type,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def pieces():
    for piece in PIECES:
        yield piece.encode()
        time.sleep(PAUSE_S)


async def async_pieces():
    for piece in PIECES:
        yield piece.encode()
        await asyncio.sleep(PAUSE_S)


def leave() -> None:
    """Count a client that has gone."""
    global _left
    _left += 1


def __getattr__(name: str) -> int:
    if name != "left":
        raise AttributeError(name)
    # Where a send fails, Starlette leaves its iterator suspended in a cycle of an exception and its frames:
    # it ends when that is collected.
    gc.collect()
    return _left


def endless():
    try:
        while True:
            yield BLOCK
            time.sleep(0.001)
    finally:
        leave()


async def async_endless():
    try:
        while True:
            yield BLOCK
            await asyncio.sleep(0.001)
    finally:
        leave()


def fail_later():
    yield b"begun\n"
    time.sleep(0.05)
    raise Mistake("later")


async def async_fail_later():
    yield b"begun\n"
    await asyncio.sleep(0.05)
    raise Mistake("later")
