"""Compiled handlers of the library LIBRARY that wait, on the reactor and on threads: test_memcheck.py."""

# pyright: basic

import os

from citius import App, load_handlers
from citius.go import chan, go, share

app = App()
handlers = load_handlers(os.environ["LIBRARY"])
questions, answers = chan(type=int), chan(type=int)
share("questions", questions)
share("answers", answers)

for pool in (False, True):
    for name in os.environ["HANDLERS"].split():
        app.get(f"/{pool}/{name}", compiled=handlers[name], serial=True, pool=pool)
    app.get(f"/{pool}/asks/{{number}}", compiled=handlers["asks"], serial=True, pool=pool)
app.get("/reads_unwritten", compiled=handlers["reads_unwritten"], serial=True)


async def answer() -> None:
    async for question in questions:
        await answers.send(question + 1)


@app.on_startup
async def begin() -> None:
    go(answer)
