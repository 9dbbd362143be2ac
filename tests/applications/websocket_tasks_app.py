"""Tasks and contexts of WebSocket handlers."""

# pyright: basic

import asyncio
import contextvars

from citius import App, ConnectionClosed

app = App()

who = contextvars.ContextVar("who", default="nobody")


@app.websocket("/{name}")
async def talk(ws, name):
    who.set(name)
    task = asyncio.current_task()
    while True:
        try:
            async with asyncio.timeout(0.3 if name == "late" else 10):
                message = await ws.receive()
        except TimeoutError:
            await ws.send("too late")
            continue
        except ConnectionClosed:
            break
        assert asyncio.current_task() is task
        assert who.get() == name
        if message == "nap":
            await asyncio.sleep(0.01)
            assert asyncio.current_task() is task
            assert who.get() == name
        if message == "group":
            async with asyncio.TaskGroup() as group:
                made = [group.create_task(asyncio.sleep(0, n)) for n in range(3)]
            message = str([task.result() for task in made])
        await ws.send(f"{name}: {message}")
