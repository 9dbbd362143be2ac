"""Text and files of every size."""

# pyright: basic

from citius import App, Response

app = App()


@app.get("/text")
def text():
    return Response("word " * 10_000, content_type="text/plain")


@app.get("/pieces")
async def pieces():
    async def parts():
        for _ in range(100):
            yield "word " * 100

    return Response(parts(), content_type="text/plain")


@app.get("/open")
def opened():
    return open("large.bin", "rb")
