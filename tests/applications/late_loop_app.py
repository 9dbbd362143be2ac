"""Handlers that are all `def`; some ask for an event loop after all. Nothing imports asyncio at the start."""

# pyright: basic

import os
import signal
import sys

from citius import App, Request

app = App()
noted: list[str] = []


@app.get("/plain")
def plain() -> str:
    return "plain"


@app.get("/loaded")
def loaded() -> list[str]:
    return [name for name in ("asyncio", "uvloop") if name in sys.modules]


@app.get("/ssl")
def has_ssl() -> str:
    return str("ssl" in sys.modules)


@app.post("/echo")
def echo(request: Request) -> bytes:
    return request.body()


@app.get("/stream")
def stream():
    for number in range(3):
        yield f"{number}"


@app.get("/blocking", blocking=True)
def blocking() -> str:
    return "blocking"


async def suspend():
    import asyncio

    await asyncio.sleep(0.001)
    yield type(asyncio.get_running_loop()).__module__


@app.get("/suspends")
def suspends():
    return suspend()


@app.post("/suspends")
def suspends_with_a_body(request: Request):
    return suspend()


@app.get("/no-wait")
def no_wait():
    async def pieces():
        yield "no wait"

    return pieces()


@app.get("/forever")
def forever():
    async def wait():
        import asyncio

        noted.append("forever")
        await asyncio.Event().wait()
        yield ""

    return wait()


@app.get("/async-generator")
def async_generator():
    async def pieces():
        import asyncio

        for number in range(3):
            await asyncio.sleep(0)
            yield f"{number}"

    return pieces()


@app.get("/running")
def running() -> list[object]:
    import asyncio

    loop = asyncio.get_running_loop()
    same = loop is asyncio.get_event_loop()
    return [type(loop).__module__, same, asyncio.current_task() is None, loop.is_closed()]


@app.get("/task")
def task() -> str:
    import asyncio

    async def note() -> None:
        await asyncio.sleep(0.001)
        noted.append("task")

    app.state.task = asyncio.get_running_loop().create_task(note())
    return "begun"


@app.get("/defer")
def deferred(request: Request) -> str:
    from citius import defer

    async def note() -> None:
        noted.append("deferred")

    defer(request, note)
    return "begun"


@app.get("/asyncio-run")
def asyncio_run() -> str:
    import asyncio

    async def nothing() -> None:
        pass

    coroutine = nothing()
    try:
        asyncio.run(coroutine)
    except RuntimeError as error:
        return type(error).__name__
    finally:
        coroutine.close()
    return "ran"


@app.get("/from-thread", blocking=True)
def from_thread() -> str:
    import asyncio

    async def nothing() -> str:
        await asyncio.sleep(0)
        return "in a thread"

    return asyncio.run(nothing())


@app.get("/channel")
def channel():
    from citius.go import Chan

    channel = Chan[str](1)

    async def pieces():
        await channel.send("from a channel")
        yield str(await channel.recv())

    return pieces()


@app.get("/channel-of-a-turn")
def channel_of_a_turn() -> str:
    from citius.go import Chan

    return type(Chan[int](1).send(1)).__name__


@app.get("/noted")
def what_was_noted() -> list[str]:
    return noted


@app.get("/own-handler")
def own_handler() -> str:
    before = signal.getsignal(signal.SIGTERM)

    def hear(number, frame) -> None:
        print("heard", flush=True)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, hear)
    return "set"


@app.get("/whole")
def whole() -> list[object]:
    import asyncio
    import asyncio.tasks
    import importlib.util

    spec = asyncio.__spec__
    found = importlib.util.find_spec("asyncio")
    of_file = spec.loader is asyncio.__loader__ and spec.origin == asyncio.__file__
    return [spec.name, of_file, found is spec, asyncio.tasks.Task is asyncio.Task]


@app.get("/child")
def child() -> bytes:
    read, write = os.pipe()
    if os.fork() == 0:
        import asyncio

        async def nothing() -> bytes:
            return b"ran"

        os.write(write, asyncio.run(nothing()))
        os._exit(0)
    os.wait()
    return os.read(read, 10)
