"""Streams without an end, and what becomes of their generators."""

# pyright: basic

from citius import App, Response

app = App()

made = [0]


def endless():
    while True:
        made[0] += 1
        yield b"x" * 1000


async def endless_async():
    while True:
        made[0] += 1
        yield b"x" * 1000


app.get("/def")(lambda: endless())
app.get("/async")(endless_async)
app.get("/blocking", blocking=True)(lambda: endless())
app.get("/204/def")(lambda: Response(endless(), status_code=204))
app.get("/204/async")(lambda: Response(endless_async(), status_code=204))


@app.get("/304/async")
async def not_modified():
    return Response(endless_async(), status_code=304)


app.get("/204/blocking", blocking=True)(lambda: Response(endless(), status_code=204))


@app.get("/made")
def how_many():
    return made[0]
