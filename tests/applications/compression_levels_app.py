"""Routes with levels of compression of their own."""

# pyright: basic

import asyncio
import random as dice

from citius import App, Response

app = App()

dice.seed(7)
WORDS = [bytes(dice.choices(b"abcdefghij", k=dice.randrange(2, 9))).decode() for _ in range(300)]
TEXT = " ".join(dice.choices(WORDS, k=5000))


@app.get("/default")
def default():
    return TEXT


@app.get("/hard", compress="br=11, gzip=9")
def hard():
    return TEXT


@app.get("/hard-late", compress="br=11, gzip=9")
async def hard_late(request):
    await asyncio.sleep(0)
    return TEXT


@app.get("/hard-stream", compress="br=11, gzip=9")
def hard_stream():
    return Response(iter([TEXT]), content_type="text/plain")


@app.get("/stream")
def stream():
    return Response(iter([TEXT]), content_type="text/plain")


@app.get("/never", compress=False)
def never():
    return TEXT
