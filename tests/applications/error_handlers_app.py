"""Error handlers that return nothing; with MIDDLEWARE and with LAST_RESORT behind and before them."""

# pyright: basic

import asyncio
import os

from citius import App

app = App()


class Quiet(Exception):
    pass


class Later(Exception):
    pass


@app.exception_handler(Quiet)
def quiet(request, error):
    return None if request.path != "/answered" else "told"


@app.exception_handler(Later)
async def later(request, error):
    await asyncio.sleep(0)
    return None if request.path != "/answered" else "told"


@app.get("/def")
def plain():
    raise Quiet


@app.get("/async")
async def stepped():
    raise Quiet


@app.get("/late")
async def late():
    await asyncio.sleep(0)
    raise Later


@app.get("/async-handler")
def to_async():
    raise Later


@app.get("/blocking", blocking=True)
def blocking():
    raise Quiet


if "MIDDLEWARE" in os.environ:

    @app.middleware
    async def around(request, next):
        return await next(request)


if "LAST_RESORT" in os.environ:

    @app.exception_handler(Exception)
    def last(request, error):
        return None if error.args else "unreachable"


@app.get("/last")
def unexpected():
    raise KeyError("unexpected")
