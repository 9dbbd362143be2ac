"""The origin server of all gateways: a greeting, a megabyte, and events as fast as they are read or every few ms."""

import asyncio

from citius import App, Response, event_stream

app = App()
BLOCK = b"0123456789abcdef"


@app.get("/")
def hello():
    """A greeting."""
    return "Welcome!\n"


@app.get("/download")
def download():
    """A megabyte."""
    return Response(BLOCK * 62_500, content_type="application/octet-stream")


@app.get("/sse")
def sse(n: int):
    """So many events, as fast as the gateway reads."""
    return event_stream(map(text, range(n)))


@app.get("/sse-paced")
async def sse_paced(n: int):
    """So many events, one every 5 ms."""

    async def events():
        for number in range(n):
            await asyncio.sleep(0.005)
            yield text(number)

    return event_stream(events())


def text(number: int) -> str:
    """58 bytes: an event of 66 with its field name and the lines' ends."""
    return f"{number:08} The quick brown fox jumps over the lazy dog again"
