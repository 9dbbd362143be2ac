"""Handlers that go on, or are cancelled, when their client has left."""

import asyncio

from citius import App, Request, defer

app = App()
log: list[str] = []
go_on = asyncio.Event()


async def later() -> None:
    log.append("deferred")


async def work(request: Request) -> str:
    log.append("begun")
    if request.query:
        defer(request, later)
    try:
        await go_on.wait()
        log.append("done")
        if "fail" in request.path:
            raise ValueError("written half")
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    return "worked"


app.get("/continues", on_disconnect="continue")(work)
app.get("/fails", on_disconnect="continue")(work)
app.get("/cancelled")(work)


@app.get("/log")
async def taken() -> str:
    return " ".join(log)


@app.get("/go")
async def go() -> str:
    go_on.set()
    return "went"


@app.on_shutdown
def told() -> None:
    print("log:", *log, flush=True)
