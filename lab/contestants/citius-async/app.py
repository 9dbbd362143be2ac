"""The contract on Citius, every handler a coroutine."""

import asyncio

import records_msgspec as records
import work
from citius import App, Response

app = App()


@app.get("/")
async def hello():
    return "Welcome!\n"


@app.get("/parse-msgpack")
async def parse_msgpack(texts: str = ""):
    return records.parse_msgpack(texts == "varied")


@app.get("/encode-json")
async def encode_json():
    return records.encode_json()


@app.get("/transfer-data")
async def transfer_data():
    return Response(records.JSON_ARRAY, content_type="application/json")


@app.get("/million-loop")
async def million_loop(seed: int = 1):
    return str(work.million_loop(seed))


@app.get("/async")
async def sleep():
    await asyncio.sleep(0.002)
    return "OK"


@app.get("/fibonacci")
async def fibonacci(first: int | None = None):
    return work.fibonacci_answer(first)


@app.get("/greet/{name}")
async def greet(name: str, times: int):
    return {"hello": [name] * times}


@app.get("/wait")
async def wait(ms: int):
    if ms:
        await asyncio.sleep(ms / 1000)
    return "OK"


@app.get("/classify/{path:path}")
async def classify(request):
    return Response(work.classify(request.raw_path), content_type="text/plain")
