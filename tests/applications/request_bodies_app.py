"""Handlers that read request bodies in pieces, twice, or not at all."""

# pyright: basic

import asyncio

from citius import App

app = App()


def lengths(*pieces):
    return [len(piece) for piece in pieces]


@app.post("/again", stream=True)
async def again(request):
    first = await request.read()
    streamed = b"".join([piece async for piece in request.stream()])
    return [first == streamed == await request.read() == request.body(), len(first)]


@app.post("/json", stream=True)
async def as_json(request):
    await request.read()
    return [request.json(), request.json()]


@app.post("/plain")
async def plain(request):
    pieces = [[len(piece) async for piece in request.stream()] for _ in range(2)]
    return [
        *pieces,
        len(await request.read()),
        len(request.body()),
        [len(p) for p in request.stream()],
    ]


@app.post("/cut-off", stream=True)
async def cut_off(request):
    for _ in range(2):
        try:
            await asyncio.wait_for(request.read(), 0.05)
        except TimeoutError:
            print("timeout", flush=True)
    return lengths(await request.read(), request.body())


@app.post("/cut-off-stream", stream=True)
async def cut_off_stream(request):
    try:
        await asyncio.wait_for(request.read(), 0.05)
    except TimeoutError:
        print("timeout", flush=True)
    return lengths(b"".join([piece async for piece in request.stream()]))


@app.post("/impatient", stream=True)
async def impatient(request):
    pieces, total = aiter(request.stream()), 0
    while True:
        try:
            total += len(await asyncio.wait_for(anext(pieces), 0.05))
        except TimeoutError:
            print("timeout", flush=True)
        except StopAsyncIteration:
            return [total]


async def refused(awaitable):
    try:
        await awaitable
    except RuntimeError as error:
        return str(error)


@app.post("/twice", stream=True)
async def twice(request):
    stream = request.stream()
    total = sum([len(piece) async for piece in stream])
    return [
        total,
        await refused(anext(aiter(request.stream()))),
        await refused(anext(aiter(stream))),
        await refused(request.read()),
    ]


@app.post("/partly", stream=True)
async def partly(request):
    stream = request.stream()
    async for piece in stream:  # noqa: B007  the first piece is counted below
        break
    said = [await refused(anext(aiter(request.stream()))), await refused(request.read())]
    rest = [len(piece) async for piece in stream]
    return [len(piece) + sum(rest), *said]


@app.post("/twice-blocking", stream=True, blocking=True)
def twice_blocking(request):
    total = sum(len(piece) for piece in request.stream())
    try:
        next(iter(request.stream()))
    except RuntimeError as error:
        return [total, str(error)]


@app.post("/both", stream=True)
async def both(request):
    first = asyncio.ensure_future(request.read())
    await asyncio.sleep(0)
    said = [await refused(request.read()), await refused(anext(aiter(request.stream())))]
    print("refused", flush=True)
    return [len(await first), *said]


@app.post("/empty", stream=True)
async def empty(request):
    return [[len(piece) async for piece in request.stream()] for _ in range(2)]


@app.get("/kept")
def kept():
    import gc

    from citius.web.binding import bodies

    gc.collect()
    return len(bodies._intakes)
