"""The contract on Citius, native handlers: `def` where nothing waits, `async def` where it does."""

import asyncio

import records_citius
import records_msgspec as records
import work
from citius import App, Response

app = App()


@app.get("/")
def hello():
    return "Welcome!\n"


@app.get("/parse-msgpack")
def parse_msgpack():
    return records_citius.parse_msgpack()


@app.get("/encode-json")
def encode_json():
    return records.encode_json()


@app.get("/transfer-data")
def transfer_data():
    return Response(records.JSON_ARRAY, content_type="application/json")


@app.get("/million-loop")
def million_loop(seed: int = 1):
    return str(work.million_loop(seed))


@app.get("/async")
async def sleep():
    await asyncio.sleep(0.002)
    return "OK"


@app.get("/fibonacci")
def fibonacci():
    return work.fibonacci_answer()


@app.get("/classify/{path:path}")
def classify(request):
    return Response(work.classify(request.raw_path), content_type="text/plain")
