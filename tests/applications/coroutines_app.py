"""Tasks, contexts, timeouts and cancellation in handlers that suspend and handlers that do not."""

# pyright: basic, reportOptionalMemberAccess=false

import asyncio
import contextvars
import json

import anyio
from citius import App

app = App()

variable = contextvars.ContextVar("variable", default="unset")


def identity():
    task = asyncio.current_task()
    return {
        "name": task.get_name(),
        "id": id(task),
        "in_all": task in asyncio.all_tasks(),
        "coro": task.get_coro() is not None,
        "done": task.done(),
        "cancelling": task.cancelling(),
    }


async def pause(how):
    if how == "suspends":
        await asyncio.sleep(0.001)  # suspends


@app.get("/task/{how}")
async def task(how: str):
    before = asyncio.current_task()
    first = identity()
    await pause(how)
    assert asyncio.current_task() is before, "the task changed under the handler"
    await pause(how)
    return [first, identity()]


@app.get("/timeout/{how}")
async def timeout(how: str):
    await pause(how)
    try:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)
    except TimeoutError:
        return "timed out"


@app.get("/timeout-unused/{how}")
async def timeout_unused(how: str):
    async with asyncio.timeout(60):
        await pause(how)
    return "in time"


@app.get("/wait-for/{how}")
async def wait_for(how: str):
    await pause(how)
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.02)
    except TimeoutError:
        return "timed out"


@app.get("/group/{how}")
async def group(how: str):
    await pause(how)

    async def double(x):
        await asyncio.sleep(0.001)
        return 2 * x

    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(double(x)) for x in range(3)]
    return [task.result() for task in made]


@app.get("/group-fails/{how}")
async def group_fails(how: str):
    await pause(how)

    async def fail():
        raise KeyError("in the group")

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            await asyncio.sleep(60)
    except* KeyError:
        outcome = "cancelled and collected"
    return outcome


@app.get("/anyio/{how}")
async def with_anyio(how: str):
    await pause(how)
    with anyio.move_on_after(0.02) as scope:
        await anyio.sleep(60)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep, 60)
        tasks.cancel_scope.cancel()
    with anyio.CancelScope() as inner:
        inner.cancel()
        await anyio.sleep(60)
    return {
        "cancelled": scope.cancelled_caught,
        "inner": inner.cancelled_caught,
        "thread": await anyio.to_thread.run_sync(lambda: "ran"),
    }


@app.get("/cancel-oneself/{how}")
async def cancel_oneself(how: str):
    await pause(how)
    asyncio.current_task().cancel()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        asyncio.current_task().uncancel()
        return "cancelled"


@app.get("/context/{how}/{value}")
async def context(how: str, value: str):
    before = variable.get()
    variable.set(value)
    await pause(how)
    after = variable.get()
    child = await asyncio.create_task(read_variable())
    return [before, after, child]


async def read_variable():
    return variable.get()


@app.get("/context-def/{value}")
def context_def(value):
    before = variable.get()
    variable.set(value)
    return before


@app.get("/keeps-its-task/{how}")
async def keeps_its_task(how: str):
    app.state.kept = asyncio.current_task()
    await pause(how)
    return "kept"


@app.get("/the-kept-task")
async def the_kept_task():
    return {"done": app.state.kept.done(), "mine": app.state.kept is asyncio.current_task()}


@app.get("/awaited-task")
async def awaited_task():
    task = asyncio.create_task(read_variable())
    return await task


@app.get("/callback/{how}")
async def callback(how: str):
    asyncio.current_task().add_done_callback(lambda task: setattr(app.state, "called", how))
    await pause(how)
    return "ok"


@app.get("/called")
def called():
    return getattr(app.state, "called", "")


@app.get("/generator/{how}")
async def generator(how: str):
    yield json.dumps(identity())
    await pause(how)
    async with asyncio.timeout(60):
        yield "\n" + json.dumps(identity())


@app.get("/hang/{how}")
async def hang(how: str):
    await pause(how)
    try:
        app.state.hanging = how
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        app.state.cancelled = how
        raise


@app.get("/state/{name}")
def state(name):
    return str(getattr(app.state, name, ""))


@app.get("/swallows")
async def swallows():
    app.state.hanging = "swallows"
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            app.state.cancelled = "swallowed"
            return "too late"
