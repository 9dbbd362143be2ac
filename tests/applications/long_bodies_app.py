"""Applications whose responses begin before their requests' bodies end, and end when these are too long."""

# pyright: basic

import asyncio

from citius import App, ContentTooLarge, Response

app = App()
PIECE = b"p" * 50_000
begun: set[str] = set()


@app.get("/begun/{name}")
def has_begun(name: str) -> bool:
    return name in begun


@app.post("/native", stream=True)
async def native(request):
    async def pieces():
        begun.add("native")
        yield b"begun "
        try:
            async for _ in request.stream():
                pass
        except ContentTooLarge:
            yield PIECE
            yield b" ended"

    return Response(pieces())


@app.post("/blocking", stream=True, blocking=True)
def blocking(request):
    def pieces():
        yield b"begun "
        try:
            for _ in request.stream():
                pass
        except ContentTooLarge:
            yield PIECE
            yield b" ended"

    return Response(pieces())


@app.post("/unread", stream=True)
async def unread(request):
    """Reads no more of the body, whatever comes."""
    stream = aiter(request.stream())
    await anext(stream)

    async def pieces():
        begun.add("unread")
        yield b"begun "
        await asyncio.sleep(0.2)
        yield PIECE
        yield b" ended"

    return Response(pieces())


@app.post("/fails", stream=True)
async def fails(request):
    async def pieces():
        yield b"begun "
        async for _ in request.stream():
            pass

    return Response(pieces())


async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass
    await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": b" ended"})


def wsgi(environ, start_response):
    start_response("200 OK", [])
    yield b"begun "
    try:
        while environ["wsgi.input"].read(1000):
            pass
    except OSError:
        yield PIECE
        yield b" ended"
