"""A generator that reads a context variable."""

# pyright: basic

import contextvars

from citius import App

app = App()

mark = contextvars.ContextVar("mark", default="none")


@app.get("/{name}")
def blocks(name: str):
    token = mark.set(name)
    try:
        for _ in range(40):
            yield mark.get().encode() * 65536
    finally:
        mark.reset(token)
