"""Responses in one piece with a trailer section."""

# pyright: basic

from citius import App, Response

app = App()
FIELDS = {"x-sum": "7"}


@app.get("/bytes")
async def data():
    return Response(b"whole", 200, None, "text/x-test", trailers=FIELDS)


@app.get("/text")
def text():
    return Response("whole", trailers=lambda: FIELDS.items())


@app.get("/empty")
def empty():
    return Response(b"", 204, trailers=FIELDS)


@app.get("/none")
def none():
    return Response(b"whole", trailers=[])


@app.get("/broken")
def broken():
    return Response(b"whole", trailers=lambda: 1 / 0)  # pyright: ignore[reportArgumentType]
