"""Contexts of tasks, and who holds them."""

# pyright: basic

import asyncio
import contextvars
import weakref

from citius import App

app = App()

variable = contextvars.ContextVar("variable", default="unset")
known = []


@app.get("/")
async def index():
    mine = asyncio.current_task().get_context()  # pyright: ignore (from Python 3.12 on)
    seen = [one() is mine for one in known]
    known.append(weakref.ref(mine))
    return seen
