"""Handlers that change their task or their context, and handlers that look at them."""

# pyright: basic, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

import asyncio
import contextvars
import gc
import sys
import types
import weakref

from citius import App
from citius.http import Client
from citius.serving.tasks import RequestTask

app = App()

variable = contextvars.ContextVar("variable", default="unset")
kept, tokens = [], []


class Mine(RequestTask):
    made = 0

    def __init__(self, *arguments, **keywords):
        RequestTask.made += 1
        super().__init__(*arguments, **keywords)


class Other(RequestTask):
    pass


RequestTask.made = 0
sys.modules["citius.serving.tasks"].RequestTask = Mine


def uncancelled(task):
    asyncio.Task.cancel(task)
    asyncio.Task.uncancel(task)


TOUCHES = {
    "nothing": lambda task: None,
    "cancel": lambda task: asyncio.Task.cancel(task),
    "cancel-and-uncancel": uncancelled,
    "message": lambda task: setattr(task, "_cancel_message", "mine"),
    "name": lambda task: asyncio.Task.set_name(task, "mine"),
    "attribute": lambda task: object.__setattr__(task, "mine", 1),
    "class": lambda task: setattr(task, "__class__", Other),
    "callback": lambda task: asyncio.Task.add_done_callback(task, lambda task: None),
    "keep": lambda task: kept.append(task),
    "keep-weakly": lambda task: kept.append(weakref.ref(task)),
    "coroutine": lambda task: kept.append(task.get_coro()),
    "coroutine-weakly": lambda task: kept.append(weakref.ref(task.get_coro())),
    "coroutine-sent": lambda task: task.get_coro().send(None),
    "wake-up": lambda task: kept.extend(
        one for one in gc.get_referents(task.get_coro()) if isinstance(one, types.BuiltinMethodType)
    ),
    "context": lambda task: kept.append(context_of(task)),
    "context-weakly": lambda task: kept.append(weakref.ref(context_of(task))),
    "variable": lambda task: context_of(task).run(variable.set, "mine"),
}


def context_of(task):
    return next(one for one in gc.get_referents(task) if isinstance(one, contextvars.Context))


def is_known(*objects):
    known = [one() if isinstance(one, weakref.ref) else one for one in kept]
    return any(one is other for one in known for other in objects)


@app.get("/touch/{how}")
async def touch(how: str):
    if how == "variable":
        variable.set("mine")
    else:
        TOUCHES[how](asyncio.current_task())
    return "touched"


@app.get("/connect/{port}")
def connect(port: int):
    app.state.client = Client(f"http://127.0.0.1:{port}")
    return "ready"


async def suspend(by):
    """Wait until the loop, or a turn of the reactor, makes the next step."""
    await (asyncio.sleep(0) if by == "loop" else app.state.client.get("/at-once"))


@app.get("/touch/{how}/{when}/{by}")
async def touch_and_suspend(how: str, when: str, by: str):
    if when == "after":
        await suspend(by)
    try:
        await touch(how)
        if when == "before":
            await suspend(by)
    except asyncio.CancelledError:
        pass
    return "touched"


@app.get("/suspends/{by}")
async def suspends(by: str):
    await suspend(by)
    return by


@app.get("/look")
async def look():
    task = asyncio.current_task()
    coroutine = task.get_coro()
    wakeups = [
        one for one in gc.get_referents(coroutine) if isinstance(one, types.BuiltinMethodType)
    ]
    seen = [
        task.get_name(),
        hasattr(task, "mine"),
        task.cancelling(),
        type(task) is Mine,
        variable.get(),
        is_known(task, coroutine, context_of(task), *wakeups),
    ]
    for one in kept:
        if hasattr(one, "close"):
            one.close()
    await asyncio.sleep(0)
    return seen


@app.get("/at-once")
async def at_once():
    return "at once"


@app.get("/made")
def made():
    return str(RequestTask.made)


@app.get("/arrange/{how}")
def arrange(how):
    app.state.is_done = ""
    asyncio.get_running_loop().call_soon(touch_spare, how)
    return "soon"


def spares():
    return [task for task in asyncio.all_tasks() if type(task) is Mine]


@app.get("/spares")
def count_spares():
    return str(len(spares()))


def touch_spare(how):
    for spare in spares():
        TOUCHES[how](spare)
    app.state.is_done = "yes"


@app.get("/cancel-and-wait")
def cancel_and_wait():
    app.state.is_done = ""
    app.state.waiting = asyncio.ensure_future(cancel_spare())
    return "soon"


async def cancel_spare():
    found = spares()
    for spare in found:
        spare.cancel()
    await asyncio.wait(found)
    app.state.is_done = "cancelled" if all(one.cancelled() for one in found) else "ended"


@app.get("/is-done")
def is_done():
    return app.state.is_done


variable.set("start")


@app.get("/token")
def token():
    tokens.append(variable.set(variable.get()))
    return "set"


@app.get("/reset")
def reset():
    try:
        variable.reset(tokens[-1])
    except ValueError:
        return "another context's"
    return "reset"
