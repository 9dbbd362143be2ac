"""Handlers that leave tasks behind."""

# pyright: basic, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

import asyncio

from citius import App

app = App()


@app.get("/mark")
async def mark():
    asyncio.current_task().secret = "alice"
    return "marked"


@app.get("/marks")
async def marks():
    return getattr(asyncio.current_task(), "secret", "none")


@app.get("/cancel-and-return")
async def cancel_and_return():
    asyncio.current_task().cancel()
    return "returned"


@app.get("/wait")
async def wait():
    await asyncio.sleep(0.001)
    return "waited"


@app.get("/cancelling")
async def cancelling():
    return str(asyncio.current_task().cancelling())


gate = asyncio.Event()


@app.get("/open")
async def open_gate():
    gate.set()


@app.get("/cancel-all")
async def cancel_all():
    me = asyncio.current_task()
    await gate.wait()
    for task in asyncio.all_tasks():
        if task is not me and task.get_name().startswith("citius-request"):
            task.cancel()
    return "cancelled"


@app.get("/cancel/sleep-zero")
async def cancel_and_sleep():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return "not cancelled"


@app.get("/cancel/caught")
async def cancel_and_catch():
    asyncio.current_task().cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return "caught"
    return "not cancelled"


@app.get("/cancel/future")
async def cancelled_future():
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future
