"""Handlers that set context variables."""

# pyright: basic, reportArgumentType=false

import asyncio
import contextvars

from citius import App

app = App()

user = contextvars.ContextVar("user", default="nobody")
flag = contextvars.ContextVar("flag", default=None)
flag.set(0)


@app.get("/login/def")
def login_def():
    before = user.get()
    user.set("somebody")
    return before


@app.get("/login/async")
async def login_async():
    return login_def()


@app.get("/login/suspended")
async def login_suspended():
    before = user.get()
    user.set("somebody")
    await asyncio.sleep(0.001)
    return before


@app.get("/login/sleep-zero")
async def login_sleep_zero():
    before = login_def()
    await asyncio.sleep(0)
    return before


app.get("/login/blocking", blocking=True)(login_def)


@app.get("/flag/def")
def flag_def():
    return repr(flag.get())


@app.get("/flag/async")
async def flag_async():
    return repr(flag.get())


@app.get("/set-flag/def")
def set_flag_def():
    flag.set(False)


@app.get("/set-flag/async")
async def set_flag_async():
    flag.set(False)
