"""Responses that are worth compressing, and responses that are not."""

# pyright: basic

import asyncio
import os

from citius import App, Response

app = App()

TEXT = "all work and no play makes jack a dull boy\n" * 200


@app.get("/text")
def text():
    return TEXT


@app.post("/text")
def posted():
    return Response(TEXT, 201)


@app.get("/json")
async def json_():
    return {"text": TEXT}


@app.get("/blocking", blocking=True)
def blocking():
    return TEXT


@app.get("/late")
async def late():
    await asyncio.sleep(0)
    return TEXT


@app.get("/size/{count:int}")
def sized(count: int):
    return "x" * count


@app.get("/random")
def random():
    return Response(os.urandom(5000).hex().encode()[:5000], content_type="text/plain")


@app.get("/noise")
def noise():
    return Response(os.urandom(5000), content_type="text/plain")


@app.get("/typed/{kind:path}")
def typed(kind):
    return Response(TEXT, content_type=kind)


@app.get("/field/{name}/{value}")
def with_field(name, value):
    return Response(TEXT, headers={name: value})


@app.get("/status/{code:int}")
def status(code: int):
    return Response(TEXT if code != 304 else "", code)


gate = asyncio.Event()


@app.get("/stream")
async def stream():
    async def pieces():
        yield TEXT
        await gate.wait()
        yield TEXT[::-1]

    return Response(pieces(), content_type="text/plain")


@app.get("/open")
def open_gate():
    gate.set()
    return ""


@app.get("/events")
async def events():
    async def pieces():
        for number in range(3):
            yield f"data: {number}\n\n"

    return Response(pieces(), content_type="text/event-stream")


@app.get("/announced/{count:int}")
def announced(count: int):
    return Response(
        iter([TEXT, TEXT]), headers={"content-length": str(count)}, content_type="text/plain"
    )


@app.get("/file")
def file():
    with open("large", "w") as file:
        file.write(TEXT * 10)
    return Response(open("large", "rb"), content_type="text/plain")
