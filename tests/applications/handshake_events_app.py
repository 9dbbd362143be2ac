"""Handlers that say how they end."""

# pyright: basic

import asyncio

from citius import App, Response

app = App()

ended = []


@app.get("/ticks/{name}")
def ticks(name):
    async def pieces():
        try:
            for number in range(100_000):
                yield f"data: {number}\n\n"
                await asyncio.sleep(0.05)
        finally:
            ended.append(name)

    return Response(pieces(), content_type="text/event-stream")


@app.get("/ends")
def ends():
    return ended
